//===- BuilderModule.cpp - mlafix.KernelBuilder in Python -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "BuilderModule.h"

#include "Errors.h"
#include "mlafix/KernelBuilder.h"
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;
using namespace mlafix;
using namespace mlafix::python;

using Value = KernelBuilder::Value;
using Values = KernelBuilder::Values;
using Text = std::string_view;

namespace {

[[noreturn]] void throwLast(const KernelBuilder &builder) {
  throwCompileError(builder.diagnostics(), {}, {});
}

/// Returns `result` if it is not empty, null or false. Otherwise throws the
/// builder's errors as an exception.
template <typename T> T checked(const KernelBuilder &builder, T result) {
  if (!static_cast<bool>(result))
    throwLast(builder);
  return result;
}

Values checked(const KernelBuilder &builder, Values result) {
  if (result.empty())
    throwLast(builder);
  return result;
}

/// Returns `*value`, or an empty Value if `value` is null (None in Python).
Value orNone(const Value *value) { return value ? *value : Value(); }

const char *spell(ValueType::Kind kind) {
  switch (kind) {
  case ValueType::Kind::None:
    return "none";
  case ValueType::Kind::Scalar:
    return "scalar";
  case ValueType::Kind::Row:
    return "row";
  case ValueType::Kind::State:
    return "state";
  case ValueType::Kind::Tensor:
    return "tensor";
  }
  return "none";
}

using Builder = KernelBuilder;
using Loc = SourceLocation;

/// Wraps a method of the builder in a function that throws the builder's
/// errors. If the method returns a bool, which is false on failure, the
/// function returns nothing.
template <typename Result, typename... Args>
auto valueOf(Result (Builder::*method)(Args...)) {
  return [method](Builder &b, Args... args) {
    if constexpr (std::is_same_v<Result, bool>)
      checked(b, (b.*method)(args...));
    else
      return checked(b, (b.*method)(args...));
  };
}

/// Wraps a method that ends a loop or a branch. The function returns the
/// method's results.
auto resultsOf(bool (Builder::*method)(const Values &, Values &, const Loc &)) {
  return [method](Builder &b, const Values &values, const Loc &loc) {
    Values results;
    checked(b, (b.*method)(values, results, loc));
    return results;
  };
}

void bindArguments(nb::class_<Builder> &builder) {
  builder
      .def(
          "add_tensor",
          [](Builder &b, std::string name, std::vector<std::string> dims,
             std::string dtype, std::string dtypeName, std::string access,
             bool optional, std::vector<std::int64_t> sizes, std::string fill,
             bool peers, std::int64_t most, std::string tiles,
             std::vector<std::int64_t> bounds, const Loc &at) {
            TensorArgument made{name,  dims, dtype, dtypeName, access, optional,
                                sizes, fill, peers, most,      tiles,  bounds};
            return checked(b, b.addTensor(made, at));
          },
          "name"_a, "dims"_a, "dtype"_a, "dtype_name"_a, "access"_a,
          "optional"_a, "sizes"_a, "fill"_a, "peers"_a, "most"_a, "swizzle"_a,
          "bounds"_a, "location"_a)
      .def("set_default", valueOf(&Builder::setDefault), "name"_a, "value"_a,
           "location"_a)
      .def(
          "add_scalar",
          [](Builder &b, std::string name, std::string dtype,
             std::string atMost, const Loc &loc) {
            return checked(b, b.addScalar({std::move(name), std::move(dtype),
                                           std::move(atMost)},
                                          loc));
          },
          "name"_a, "dtype"_a, "at_most"_a, "location"_a)
      .def("dim", valueOf(&Builder::dim), "tensor"_a, "position"_a,
           "location"_a);
}

void bindPromises(nb::class_<Builder> &builder) {
  builder.def("prove_bounds", valueOf(&Builder::proveBounds), "location"_a)
      .def("allow", valueOf(&Builder::allow), "kind"_a, "location"_a)
      .def("plan", valueOf(&Builder::plan), "field"_a, "location"_a)
      .def("distinct", valueOf(&Builder::distinct), "tensor"_a, "location"_a)
      .def("assume", valueOf(&Builder::assume), "condition"_a, "text"_a,
           "location"_a)
      .def("print", valueOf(&Builder::print), "text"_a, "values"_a,
           "location"_a)
      .def("exchange", valueOf(&Builder::exchange), "location"_a);
}

void bindGrid(nb::class_<Builder> &builder) {
  builder
      .def("begin_forall", valueOf(&Builder::beginForall), "extents"_a,
           "location"_a)
      .def("begin_ragged_forall", valueOf(&Builder::beginRaggedForall),
           "cu_seqlens"_a, "rows"_a, "inner"_a, "location"_a)
      .def("begin_ragged_body", valueOf(&Builder::beginRaggedBody),
           "predicate"_a, "location"_a)
      .def("end_grid", valueOf(&Builder::endGrid), "location"_a);
}

void bindControlFlow(nb::class_<Builder> &builder) {
  builder
      .def("begin_for", valueOf(&Builder::beginFor), "lower"_a, "upper"_a,
           "step"_a, "initial"_a, "location"_a)
      .def("end_for", resultsOf(&Builder::endFor), "next"_a, "location"_a)
      .def("begin_if", valueOf(&Builder::beginIf), "condition"_a, "location"_a)
      .def("begin_else", valueOf(&Builder::beginElse), "values"_a, "location"_a)
      .def("end_if", resultsOf(&Builder::endIf), "values"_a, "location"_a);
}

void bindArithmetic(nb::class_<Builder> &builder) {
  builder
      .def(
          "constant_float",
          [](Builder &b, double value, const Loc &loc) {
            return checked(b, b.constant(value, loc));
          },
          "value"_a, "location"_a)
      .def(
          "constant_int",
          [](Builder &b, std::int64_t value, Text dtype, const Loc &loc) {
            return checked(b, b.constant(value, dtype, loc));
          },
          "value"_a, "dtype"_a, "location"_a)
      .def("unary", valueOf(&Builder::unary), "op"_a, "operand"_a, "location"_a)
      .def("binary", valueOf(&Builder::binary), "op"_a, "lhs"_a, "rhs"_a,
           "location"_a)
      .def("fma", valueOf(&Builder::fma), "a"_a, "b"_a, "c"_a, "location"_a)
      .def("compare", valueOf(&Builder::compare), "op"_a, "lhs"_a, "rhs"_a,
           "location"_a)
      .def("select", valueOf(&Builder::select), "condition"_a, "if_true"_a,
           "if_false"_a, "location"_a);
}

void bindRows(nb::class_<Builder> &builder) {
  builder
      .def("convert", valueOf(&Builder::convert), "operand"_a, "dtype"_a,
           "location"_a)
      .def("splat", valueOf(&Builder::splat), "scalar"_a, "dim"_a, "location"_a)
      .def("iota", valueOf(&Builder::iota), "dim"_a, "location"_a)
      .def("reduce", valueOf(&Builder::reduce), "op"_a, "row"_a, "along"_a,
           "location"_a)
      .def("scan", valueOf(&Builder::scan), "op"_a, "row"_a, "along"_a,
           "location"_a)
      .def("top_k", valueOf(&Builder::topK), "row"_a, "count"_a, "along"_a,
           "location"_a)
      .def("swap", valueOf(&Builder::swap), "row"_a, "block"_a, "location"_a);
}

void bindMemory(nb::class_<Builder> &builder) {
  builder
      .def(
          "load",
          [](Builder &b, Value tensor, const Values &indices,
             const Value *predicate, const Value *other, Text dtype,
             const Loc &loc, const Value *group, const Value *member,
             std::int64_t begin, std::int64_t end) {
            Builder::Part part = {orNone(group), orNone(member), begin, end};
            Builder::Access place = {tensor, indices, orNone(predicate), part};
            return checked(b, b.load(place, loc, orNone(other), dtype));
          },
          "tensor"_a, "indices"_a, "predicate"_a.none(), "other"_a.none(),
          "dtype"_a, "location"_a, "group"_a = nb::none(),
          "member"_a = nb::none(), "begin"_a = 0, "end"_a = 0)
      .def(
          "load_into",
          [](Builder &b, Value tensor, const Values &indices,
             const Value *predicate, Text dim, std::int64_t first,
             std::int64_t each, Text dtype, const Loc &loc, std::int64_t begin,
             std::int64_t end) {
            Builder::Part part = {{}, {}, begin, end};
            Builder::Access place = {tensor, indices, orNone(predicate), part};
            return checked(b, b.loadInto(place, dim, first, each, loc, dtype));
          },
          "tensor"_a, "indices"_a, "predicate"_a.none(), "dim"_a, "first"_a,
          "each"_a, "dtype"_a, "location"_a, "begin"_a = 0, "end"_a = 0)
      .def(
          "store",
          [](Builder &b, Value value, Value tensor, const Values &indices,
             const Value *predicate, const Loc &loc, const Value *group,
             const Value *member, std::int64_t begin, std::int64_t end) {
            Builder::Part part = {orNone(group), orNone(member), begin, end};
            Builder::Access place = {tensor, indices, orNone(predicate), part};
            checked(b, b.store(value, place, loc));
          },
          "value"_a, "tensor"_a, "indices"_a, "predicate"_a.none(),
          "location"_a, "group"_a = nb::none(), "member"_a = nb::none(),
          "begin"_a = 0, "end"_a = 0)
      .def("turn", valueOf(&Builder::turn), "location"_a)
      .def("present", valueOf(&Builder::present), "tensor"_a, "location"_a);
}

void bindStates(nb::class_<Builder> &builder) {
  builder
      .def("identity", valueOf(&Builder::identity), "dim"_a, "base"_a,
           "location"_a)
      .def(
          "load_state",
          [](Builder &b, Value out, const Values &outIndices, Value lse,
             const Values &lseIndices, const Value *predicate, Text base,
             bool sink, const Loc &loc) {
            Builder::StateAccess place = {out, outIndices, lse, lseIndices,
                                          orNone(predicate)};
            return checked(b, b.loadState(place, base, sink, loc));
          },
          "out"_a, "out_indices"_a, "lse"_a, "lse_indices"_a,
          "predicate"_a.none(), "base"_a, "sink"_a, "location"_a)
      .def(
          "store_state",
          [](Builder &b, Value state, const Value *out,
             const Values &outIndices, const Value *lse,
             const Values &lseIndices, const Value *predicate,
             const Value *scale, const Loc &loc) {
            Builder::StateAccess place = {orNone(out), outIndices, orNone(lse),
                                          lseIndices, orNone(predicate)};
            checked(b, b.storeState(state, place, orNone(scale), loc));
          },
          "state"_a, "out"_a.none(), "out_indices"_a, "lse"_a.none(),
          "lse_indices"_a, "predicate"_a.none(), "scale"_a.none(), "location"_a)
      .def("make_state", valueOf(&Builder::makeState), "row"_a, "lse"_a,
           "base"_a, "sink"_a, "location"_a)
      .def("merge", valueOf(&Builder::merge), "states"_a, "location"_a)
      .def("mask", valueOf(&Builder::mask), "state"_a, "predicate"_a,
           "location"_a)
      .def("rebase", valueOf(&Builder::rebase), "state"_a, "base"_a,
           "location"_a)
      .def("payload", valueOf(&Builder::payload), "state"_a, "location"_a)
      .def("lse_of", valueOf(&Builder::lseOf), "state"_a, "location"_a);
}

} // namespace

void mlafix::python::bindBuilder(nb::module_ &module) {
  nb::class_<SourceLocation>(
      module, "Location",
      "A range of a source. Lines and columns count from 1; the end column is "
      "one past the last character.")
      .def(
          "__init__",
          [](SourceLocation *self, std::string file, unsigned line,
             unsigned column, unsigned endLine, unsigned endColumn) {
            new (self) SourceLocation{std::move(file), line, column, endLine,
                                      endColumn};
          },
          "file"_a, "line"_a, "column"_a, "end_line"_a, "end_column"_a)
      .def_ro("file", &SourceLocation::file)
      .def_ro("line", &SourceLocation::line)
      .def_ro("column", &SourceLocation::column)
      .def_ro("end_line", &SourceLocation::endLine)
      .def_ro("end_column", &SourceLocation::endColumn);
  nb::class_<Value>(module, "Value",
                    "A value of the kernel that is being built.");
  nb::class_<ValueType>(module, "ValueType", "The type of a Value.")
      .def_prop_ro(
          "kind", [](const ValueType &t) { return spell(t.kind); },
          "\"none\", \"scalar\", \"row\", \"state\" or \"tensor\".")
      .def_ro("dtype", &ValueType::dtype)
      .def_ro("dim", &ValueType::dim)
      .def_ro("base", &ValueType::base)
      .def_ro("sink", &ValueType::sink)
      .def_ro("dims", &ValueType::dims)
      .def("__str__", &ValueType::str);

  nb::class_<Builder> builder(
      module, "KernelBuilder",
      "include/mlafix/KernelBuilder.h in Python; an omitted value is None. "
      "Every method raises CompileError where the kernel is wrong.");
  builder
      .def(
          "__init__",
          [](Builder *self, Text name, const Loc &loc) {
            new (self) Builder(name, loc);
          },
          "name"_a, "location"_a)
      .def("type", &Builder::type, "value"_a)
      .def("finish", [](Builder &b) {
        std::string text = b.finish();
        if (text.empty())
          throwLast(b);
        return text;
      });
  bindArguments(builder);
  bindPromises(builder);
  bindGrid(builder);
  bindControlFlow(builder);
  bindArithmetic(builder);
  bindRows(builder);
  bindMemory(builder);
  bindStates(builder);
}
