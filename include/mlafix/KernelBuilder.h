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
  /// Scalar, or row element: "f32", "i32", "i64", "i8", "u8", "bool" or
  /// "index". Tensor: its dtype in memory.
  std::string dtype;
  /// The dim of a row or state: a name, a product "(G 128)", or a size if
  /// bound. Builder calls accept name and size alike.
  std::string dim;
  /// The base of a state's lse: "e", "2", or an unbound name.
  std::string base;
  /// True if a state may include an attention sink.
  bool sink = false;
  /// The names of a tensor's dims.
  std::vector<std::string> dims;

  /// The type as in diagnostics: "f32", "row of f32 along D", "state along D in
  /// base e with a sink".
  std::string str() const;
};

/// A tensor argument; include/mlafix/DTypes.def lists the dtypes. Its last dim
/// must have stride 1 if rows of it are read or written, and may have any
/// stride otherwise.
struct TensorArgument {
  std::string name;
  /// Names of the dims. Dims with equal names must agree at launch. Upper case:
  /// compile-time constant. "(G K)": a product of two upper-case names or
  /// numbers. Empty: no constraint.
  std::vector<std::string> dims;
  std::string dtype;
  /// A dtype variable; empty: the dtype is fixed.
  std::string dtypeName;
  /// "read", "write" (every element is written) or "update".
  std::string access;
  bool optional = false;
  /// Fixed sizes of the dims, 0 for others; may be empty.
  std::vector<std::int64_t> sizes;
  /// The value of elements that no store writes: a number ("0", "-inf") or
  /// "identity"; empty if stores write all.
  std::string fill = {};
  /// True if each rank passes a tensor; the first dim counts the ranks. The
  /// access is "read", or "update" if ranks exchange data through it.
  bool peers = false;
  /// The maximum number of tensors if the argument is a list, which requires
  /// access "read". The list's first dim counts them. 0 for a single tensor.
  std::int64_t most = 0;
  /// Tiled storage, "128x4" or "8x4": the rows (first dim) and columns (the
  /// other dims) lie in tiles of 128 or 8 rows and 4 columns. Empty: strides
  /// apply.
  std::string swizzle = {};
  /// Upper bounds of launch-time dims that rows may lie along, 0 for others;
  /// may be empty. A dim must have the same bound in all arguments.
  std::vector<std::int64_t> bounds = {};
};

struct ScalarArgument {
  std::string name;
  /// "index", "i64", "i32", "f32" or "bool".
  std::string dtype;
  /// The dim that bounds the scalar; may be empty.
  std::string atMost;
};

class KernelBuilder {
public:
  /// A value of the kernel under construction; not valid in other builders.
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
  /// Sets the default of `name` (a dtype variable, base or dim), used if a
  /// compilation does not bind it.
  bool setDefault(std::string_view name, std::string_view value,
                  const SourceLocation &location);
  /// Makes it an error if an access is not proved to be in bounds.
  bool proveBounds(const SourceLocation &location);
  /// Suppresses warnings about "races", "bounds" or "nan".
  bool allow(std::string_view kind, const SourceLocation &location);
  /// Overrides one of the compiler's decisions about code versions for GPUs by
  /// a field of their plans: "NAME=VALUE" or "VERSION.NAME=VALUE".
  bool plan(std::string_view field, const SourceLocation &location);
  /// Promises that the entries >= 0 of an integer tensor are distinct.
  bool distinct(Value tensor, const SourceLocation &location);
  /// The size of dim `position` of a tensor argument, of type index.
  Value dim(Value tensor, unsigned position, const SourceLocation &location);
  /// @}

  /// Promises that a condition holds; `text` spells it. Before the grid it may
  /// use only sizes and integer arguments, and launches check it. In the grid
  /// any condition is allowed.
  bool assume(Value condition, std::string_view text,
              const SourceLocation &location);

  /// In the grid: prints `text` in watched launches (docs/Proofs.md); each "{}"
  /// stands for one of `values`: scalars, rows or states.
  bool print(std::string_view text, const Values &values,
             const SourceLocation &location);

  /// In the grid: makes the row's stores to peers visible to the same row of
  /// every rank, and theirs to this one.
  bool exchange(const SourceLocation &location);
  /// In the grid: 0 or 1, alternating between launches of the group.
  Value turn(const SourceLocation &location);

  /// \name The grid
  ///
  /// A forall, or a ragged forall, whose predicate must be built before its
  /// body.
  ///
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
  ///
  /// @{

  /// `lower`, `upper` and `step` have one integer type. Returns the loop's
  /// index and carried values, as seen inside.
  Values beginFor(Value lower, Value upper, Value step, const Values &initial,
                  const SourceLocation &location);
  /// `next`: the values carried to the next iteration. Sets `results` to the
  /// loop's results.
  bool endFor(const Values &next, Values &results,
              const SourceLocation &location);
  bool beginIf(Value condition, const SourceLocation &location);
  bool beginElse(const Values &results, const SourceLocation &location);
  /// Ends the last beginIf; without a beginElse, `values` must be empty.
  bool endIf(const Values &values, Values &results,
             const SourceLocation &location);
  /// @}

  /// \name Constants and arithmetic, before the grid too
  ///
  /// Operands are scalars or rows of one element type; scalars are broadcast to
  /// rows. `index` is signed. Integer division rounds down; a / 0 is a.
  ///
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
  /// Converts to "f32", "i32", "i64", "index" or "bool" (true if not zero).
  /// From f32 to a narrower float of DTypes.def: rounds as a store of that
  /// dtype does, and yields the rounded value as f32.
  Value convert(Value operand, std::string_view dtype,
                const SourceLocation &location);
  Value splat(Value scalar, std::string_view dim,
              const SourceLocation &location);
  /// A row of i32 along a dim that holds each element's index.
  Value iota(std::string_view dim, const SourceLocation &location);
  /// Reduces a row to a scalar. f32, i32, i64: add, max, min. bool: max (any)
  /// or min (all). f32, i32: argmax, argmin, which yield the i32 index of the
  /// first NaN, else of the first extreme element. `along` may name the second
  /// factor of the row's dim: each group is then reduced to an element of a row
  /// along the first factor.
  Value reduce(std::string_view op, Value row, std::string_view along,
               const SourceLocation &location);
  /// The `count` greatest elements of a row of f32 or i32 in descending order,
  /// and their i32 indices. Equal elements are ordered by index; NaN precedes
  /// all numbers. `along` as for reduce().
  Values topK(Value row, std::int64_t count, std::string_view along,
              const SourceLocation &location);
  /// The running sum, maximum or minimum (add, max, min) of a row of f32 or
  /// i32: element i reduces elements 0 to i. With `along`, within each group.
  Value scan(std::string_view op, Value row, std::string_view along,
             const SourceLocation &location);
  /// A row of f32 or i32 with neighbouring blocks exchanged: element i is the
  /// operand's element i xor `block`, a power of two.
  Value swap(Value row, std::int64_t block, const SourceLocation &location);
  /// @}

  /// \name Memory
  ///
  /// @{

  /// The part of a row to access. In a row along a product (G K) it is, with
  /// `group`, that group, a row along K; with `member`, that element of each
  /// group, a row along G; with both, one element; with neither, the whole row.
  /// In other rows it is the elements in [begin, end), or all if `end` is 0.
  struct Part {
    Value group = {}, member = {}; ///< of type index, or no value
    std::int64_t begin = 0, end = 0;
  };
  /// A row if there is one index less than the tensor has dims, else an
  /// element.
  struct Access {
    Value tensor;
    Values indices;
    Value predicate = {}; ///< no value: true
    Part part = {};
  };
  /// Floats become f32. `dtype` ("i32" or "i64") widens integers; empty: as in
  /// memory. `other`, if given, is the result where the predicate is false.
  Value load(const Access &place, const SourceLocation &location, Value other,
             std::string_view dtype);
  /// A row along `dim` that contains the row or slice at `place` from element
  /// `first` on, each element repeated `each` times, and periodically repeated
  /// to the end; elements before `first` are zero. Types as for load().
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
  ///
  /// A base is "e", "2", or an upper-case name to be bound. `sink` says that a
  /// state holds a sink. Where two states are alternatives (the halves of a
  /// branch, for example), one may have a sink and the other not; the result
  /// then has one.
  ///
  /// @{
  struct StateAccess {
    Value out;
    Values outIndices; ///< of the row
    Value lse;
    Values lseIndices;    ///< of the element
    Value predicate = {}; ///< no value: true
  };
  Value identity(std::string_view dim, std::string_view base,
                 const SourceLocation &location);
  Value loadState(const StateAccess &place, std::string_view base, bool sink,
                  const SourceLocation &location);
  /// Makes a state from a row and its lse, both f32.
  Value makeState(Value row, Value lse, std::string_view base, bool sink,
                  const SourceLocation &location);
  /// The tensors of `place` and `scale` are optional.
  bool storeState(Value state, const StateAccess &place, Value scale,
                  const SourceLocation &location);
  /// At most one of `states` may have a sink.
  Value merge(const Values &states, const SourceLocation &location);
  Value mask(Value state, Value predicate, const SourceLocation &location);
  Value rebase(Value state, std::string_view base,
               const SourceLocation &location);
  /// The normalised row of a state, f32.
  Value payload(Value state, const SourceLocation &location);
  /// The log-sum-exp of a state, f32.
  Value lseOf(Value state, const SourceLocation &location);
  /// @}

  /// Verifies the kernel and returns its MLIR text with locations; empty if it
  /// is invalid. Nothing can be added afterwards.
  std::string finish();

  struct Impl;

private:
  std::unique_ptr<Impl> impl;
};

} // namespace mlafix

#endif // MLAFIX_KERNELBUILDER_H
