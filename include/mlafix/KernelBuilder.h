//===- KernelBuilder.h - kernels made by calls ------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The interface with which front ends make kernels: each call appends to one
// kernel, with the location in the front end's source that errors of this
// builder, of the verifiers and of every later pass then have. The language is
// docs/Dialect.md's. This header needs no LLVM or MLIR header.
//
// A call that is not possible adds to diagnostics() and returns nothing (a
// Value that is false, an empty list, false); the builder then stays as it was.
// Not to be used by two threads at a time.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_KERNELBUILDER_H
#define MLAFIX_KERNELBUILDER_H

#include "mlafix/Diagnostic.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mlafix {

/// The kind, dtype and dim of a value.
struct ValueType {
  enum class Kind { None, Scalar, Row, State, Tensor };

  Kind kind = Kind::None;
  /// Of a scalar, or of the elements of a row: "f32", "i32", "i64", "i8", "u8",
  /// "bool" or "index". Of a tensor: its dtype in memory.
  std::string dtype;
  /// The dim of a row or state: its name, "(G 128)", or its size where that is
  /// fixed. Either stands for it in a call of the builder.
  std::string dim;
  /// The base of a state's lse: "e", "2", or a name to be bound.
  std::string base;
  /// True if a sink may be in a state.
  bool sink = false;
  /// The names of a tensor's dims.
  std::vector<std::string> dims;

  /// "f32", "row of f32 along D", "state along D in base e with a sink", as
  /// diagnostics spell it.
  std::string str() const;
};

/// A tensor argument; include/mlafix/DTypes.def lists the dtypes. Its last dim
/// must have stride 1 if rows of it are read or written, and may have any
/// stride otherwise.
struct TensorArgument {
  std::string name;
  /// Equal names must agree at launch. Upper case: a compile-time constant.
  /// "(G K)": a product of two, each an upper-case name or a number. Empty:
  /// ties nothing.
  std::vector<std::string> dims;
  std::string dtype;
  /// A variable that stands for the dtype; empty: the dtype is fixed.
  std::string dtypeName;
  /// "read", "write" (every element is written) or "update".
  std::string access;
  bool optional = false;
  /// The size of each dim that is fixed, 0 for the others; empty: none is.
  std::vector<std::int64_t> sizes;
  /// The value of elements that no store writes: a number ("0", "-inf") or
  /// "identity"; empty: there are none.
  std::string fill = {};
  /// True if each rank has such a tensor, of access "read", or "update" for one
  /// that `exchange` is for; the first of `dims` counts the ranks.
  bool peers = false;
  /// How many tensors a call passes at most, as a list, of access "read"; the
  /// first of `dims` counts them. 0: one tensor, and no list.
  std::int64_t most = 0;
  /// "128x4" or "8x4": rows, the first dim, and columns, the others, lie in
  /// tiles of 128 or 8 rows and 4 columns; empty: as the strides say.
  std::string swizzle = {};
  /// The bound of each dim that the launch knows and rows may lie along, 0 for
  /// the others; empty: none has one. A dim has it in all arguments.
  std::vector<std::int64_t> bounds = {};
};

struct ScalarArgument {
  std::string name;
  /// "index", "i64", "i32", "f32" or "bool".
  std::string dtype;
  /// The dim that bounds it; may be empty.
  std::string atMost;
};

class KernelBuilder {
public:
  /// A value of the kernel that is being built, and of no other.
  class Value {
  public:
    explicit operator bool() const { return id != 0; }

  private:
    friend class KernelBuilder;
    std::uint32_t id = 0;
  };
  using Values = std::vector<Value>;

  KernelBuilder(std::string_view name, const SourceLocation &location);
  ~KernelBuilder();
  KernelBuilder(KernelBuilder &&) noexcept;
  KernelBuilder &operator=(KernelBuilder &&) noexcept;

  ValueType type(Value value) const;
  const std::vector<Diagnostic> &diagnostics() const;

  /// \name Arguments, before the grid
  /// @{
  Value addTensor(const TensorArgument &argument,
                  const SourceLocation &location);
  Value addScalar(const ScalarArgument &argument,
                  const SourceLocation &location);
  /// The default of `name` (a dtype variable, a base or a dim), used where
  /// nobody says.
  bool setDefault(std::string_view name, std::string_view value,
                  const SourceLocation &location);
  /// Makes each access that is not proved to be in bounds an error.
  bool proveBounds(const SourceLocation &location);
  /// Keeps the compiler from warning of "races", "bounds" or "nan".
  bool allow(std::string_view kind, const SourceLocation &location);
  /// Promises that no two entries of a tensor of integers that are at least 0
  /// are equal.
  bool distinct(Value tensor, const SourceLocation &location);
  /// The size of dim `position` of a tensor argument: an index.
  Value dim(Value tensor, unsigned position, const SourceLocation &location);
  /// @}

  /// Promises that a condition holds, which `text` says: before the grid one of
  /// sizes and integer arguments, which launches check, in it any.
  bool assume(Value condition, std::string_view text,
              const SourceLocation &location);

  /// In the grid: a launch that is watched (docs/Proofs.md) shows `text`, in
  /// which each "{}" stands for one of `values`, scalars or states.
  bool print(std::string_view text, const Values &values,
             const SourceLocation &location);

  /// In the grid: what the row stored to the peers becomes visible to the same
  /// row of each rank, and theirs to this one.
  bool exchange(const SourceLocation &location);
  /// In the grid: 0 or 1, in turn from one launch of the group to the next.
  Value turn(const SourceLocation &location);

  /// \name The grid
  /// One forall, or one ragged forall, whose predicate is built first.
  /// @{
  Values beginForall(const Values &extents, const SourceLocation &location);
  /// Returns the segment's index, for the predicate.
  Value beginRaggedForall(Value cuSeqlens, Value rows, const Values &inner,
                          const SourceLocation &location);
  /// Ends the predicate; returns the indices of the body: segment, row, inner.
  Values beginRaggedBody(Value predicate, const SourceLocation &location);
  bool endGrid(const SourceLocation &location);
  /// @}

  /// \name Control flow inside the grid
  /// @{
  /// `lower`, `upper` and `step` have one integer type. Returns the loop's
  /// index and what it carries, as they are inside.
  Values beginFor(Value lower, Value upper, Value step, const Values &initial,
                  const SourceLocation &location);
  /// `next`: what the following iteration carries. Fills `results` with what
  /// the last one left.
  bool endFor(const Values &next, Values &results,
              const SourceLocation &location);
  bool beginIf(Value condition, const SourceLocation &location);
  bool beginElse(const Values &results, const SourceLocation &location);
  /// Ends what the last beginIf began; without a beginElse, `values` is empty.
  bool endIf(const Values &values, Values &results,
             const SourceLocation &location);
  /// @}

  /// \name Constants and arithmetic, before the grid too
  /// Operands are scalars or rows of one element type; a scalar beside a row
  /// stands for a row of it. `index` is signed. Integer division rounds down; a
  /// / 0 is a.
  /// @{
  Value constant(double value, const SourceLocation &location); // f32
  Value constant(std::int64_t value, std::string_view dtype,
                 const SourceLocation &location);
  /// neg, abs, not, and the functions of f32 in mlafix/Functions.def.
  Value unary(std::string_view op, Value operand,
              const SourceLocation &location);
  /// MLAFIX_BINARY of mlafix/Functions.def, and mod of integers.
  Value binary(std::string_view op, Value lhs, Value rhs,
               const SourceLocation &location);
  /// a * b + c with one rounding.
  Value fma(Value a, Value b, Value c, const SourceLocation &location);
  /// eq, ne, lt, le, gt, ge. NaN is unequal to everything, itself included.
  Value compare(std::string_view op, Value lhs, Value rhs,
                const SourceLocation &location);
  Value select(Value condition, Value ifTrue, Value ifFalse,
               const SourceLocation &location);
  /// To "f32", "i32", "i64", "index" or "bool" (is it not zero?). f32 to a
  /// narrower float of DTypes.def: the f32 that is read again of what a store
  /// of that dtype writes.
  Value convert(Value operand, std::string_view dtype,
                const SourceLocation &location);
  Value splat(Value scalar, std::string_view dim,
              const SourceLocation &location);
  /// A row of i32 along a dim: each element's index.
  Value iota(std::string_view dim, const SourceLocation &location);
  /// A row of f32, i32 or i64 to a scalar: add, max or min; of bools: max (does
  /// any hold?) or min (do all?). Of f32 or i32 argmax or argmin to i32, the
  /// index of the first NaN, else the lowest of those that have it. With
  /// `along`, the second factor of the row's dim: each group to an element of a
  /// row along the first one; empty: the whole row.
  Value reduce(std::string_view op, Value row, std::string_view along,
               const SourceLocation &location);
  /// The `count` greatest elements of a row of f32 or i32, the greatest first,
  /// and then their indices, i32: equal ones in the order of their indices, NaN
  /// before all numbers. `along` as for `reduce`.
  Values topK(Value row, std::int64_t count, std::string_view along,
              const SourceLocation &location);
  /// The running sum, maximum or minimum (add, max or min) of a row of f32 or
  /// i32, a row of the same type: element i is what `reduce` makes of the
  /// elements up to i, itself included. With `along`, of each group by itself.
  Value scan(std::string_view op, Value row, std::string_view along,
             const SourceLocation &location);
  /// A row of f32 or i32 whose neighbouring blocks of a power of two of
  /// elements have changed places: element i is element i xor `block`.
  Value swap(Value row, std::int64_t block, const SourceLocation &location);
  /// @}

  /// \name Memory
  /// What is moved of a row along a product (G K): group `group`, a row along
  /// K; element `member` of each group, a row along G; both, one element;
  /// neither, all of it. Of a row along another dim, the elements from `begin`
  /// up to, not including, `end`; all of them where that is 0.
  /// @{
  struct Part {
    Value group = {}, member = {}; ///< of type index, or no value
    std::int64_t begin = 0, end = 0;
  };
  /// One index less than the tensor has dims names a row, else an element.
  struct Access {
    Value tensor;
    Values indices;
    Value predicate = {}; ///< no value: true
    Part part = {};
  };
  /// Floats become f32; integers may become wider: `dtype` is "i32", "i64", or
  /// empty for what is in memory. `other`, if it is a value, is the result
  /// where the predicate is false.
  Value load(const Access &place, const SourceLocation &location, Value other,
             std::string_view dtype);
  /// A row along `dim` that has the row, or the slice, at `place` from element
  /// `first` on, each element `each` times, and again from its beginning where
  /// it ends; zeros before `first`. Its elements are those of `load`.
  Value loadInto(const Access &place, std::string_view dim, std::int64_t first,
                 std::int64_t each, const SourceLocation &location,
                 std::string_view dtype);
  Value load(const Access &place, const SourceLocation &location) {
    return load(place, location, Value(), {});
  }
  bool store(Value value, const Access &place, const SourceLocation &location);
  Value present(Value tensor, const SourceLocation &location);
  /// @}

  /// \name States
  /// A base is "e", "2", or an upper-case name to be bound. `sink` says that a
  /// state holds a sink. Of two values for one result, as those of the two
  /// halves of a branch, one may be a state with a sink and the other one
  /// without: the result has one.
  /// @{
  struct StateAccess {
    Value out;
    Values outIndices; ///< of a row
    Value lse;
    Values lseIndices;    ///< of an element
    Value predicate = {}; ///< no value: true
  };
  Value identity(std::string_view dim, std::string_view base,
                 const SourceLocation &location);
  Value loadState(const StateAccess &place, std::string_view base, bool sink,
                  const SourceLocation &location);
  /// A state of a row and a scalar, both f32.
  Value makeState(Value row, Value lse, std::string_view base, bool sink,
                  const SourceLocation &location);
  /// The tensors of `place` and `scale` may be no value.
  bool storeState(Value state, const StateAccess &place, Value scale,
                  const SourceLocation &location);
  /// At most one of `states` holds a sink.
  Value merge(const Values &states, const SourceLocation &location);
  Value mask(Value state, Value predicate, const SourceLocation &location);
  Value rebase(Value state, std::string_view base,
               const SourceLocation &location);
  /// The normalised row of a state, f32.
  Value payload(Value state, const SourceLocation &location);
  /// Its log-sum-exp, f32.
  Value lseOf(Value state, const SourceLocation &location);
  /// @}

  /// Verifies the kernel. Returns its text in MLIR's syntax, with locations;
  /// empty where it is wrong. Nothing can be added after it.
  std::string finish();

  struct Impl;

private:
  std::unique_ptr<Impl> impl;
};

} // namespace mlafix

#endif // MLAFIX_KERNELBUILDER_H
