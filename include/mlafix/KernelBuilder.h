//===- KernelBuilder.h - kernels made by calls ------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Builds the IR of one kernel; front ends use it. Each call appends to the
// kernel and takes a location in the front end's source. Errors of the builder,
// of the verifiers and of all later passes have that location. docs/Dialect.md
// describes the language. This header includes no LLVM or MLIR header.
//
// If a call fails, it adds a message to diagnostics() and returns nothing: an
// empty Value, an empty list, or false. The builder then stays as it was. Two
// threads must not use a builder at the same time.
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
  /// The dtype: "f32", "i32", "i64", "i8", "u8", "bool" or "index" of a scalar
  /// or a row's elements. For a tensor, its dtype in memory.
  std::string dtype;
  /// The dim of a row or state: a name, a product such as "(G 128)", or a
  /// number if the name is bound. The builder's functions accept both the name
  /// and the number.
  std::string dim;
  /// The base of a state's lse: "e", "2", or an unbound name.
  std::string base;
  /// True if a state may include an attention sink.
  bool sink = false;
  /// The names of a tensor's dims.
  std::vector<std::string> dims;

  /// Returns the type as messages show it, for example "f32", "row of f32 along
  /// D" or "state along D in base e with a sink".
  std::string str() const;
};

/// A tensor argument. Its last dim must have stride 1 if the kernel reads or
/// writes rows of it; otherwise it may have any stride.
struct TensorArgument {
  std::string name;
  /// The names of the dims. Dims with the same name have the same size in every
  /// launch. An upper-case name is a compile-time constant. "(G K)" is a
  /// product of two upper-case names or numbers. An empty name stands for any
  /// size.
  std::vector<std::string> dims;
  std::string dtype;
  /// The dtype variable, or "" if the dtype is fixed.
  std::string dtypeName;
  /// The use of the tensor: "read", "write" (the kernel writes every element)
  /// or "update".
  std::string access;
  bool optional = false;
  /// Fixed sizes of the dims. A size is 0 if it is not fixed. If the list is
  /// empty, no size is fixed.
  std::vector<std::int64_t> sizes;
  /// The value of elements to which no store writes: a number ("0", "-inf") or
  /// "identity". It is empty if stores write all elements.
  std::string fill = {};
  /// True if each rank passes a tensor. The first dim then counts the ranks.
  /// The access is "read", or "update" if the ranks exchange data through it.
  bool peers = false;
  /// The maximum number of tensors if the argument is a list, or 0 if it is a
  /// single tensor. The first dim of a list counts the tensors, and the access
  /// of a list must be "read".
  std::int64_t most = 0;
  /// The tiled storage, "128x4" or "8x4": tiles of 128 or 8 rows and 4 columns.
  /// The first dim counts rows, and the other dims together count columns. The
  /// string is empty if the storage is not tiled.
  std::string swizzle = {};
  /// Upper bounds of dims whose size is known only at launch. Rows may lie
  /// along such a dim only if it has a bound. A bound of 0 stands for none. A
  /// dim must have the same bound in all arguments. If the list is empty, no
  /// dim has a bound.
  std::vector<std::int64_t> bounds = {};
};

struct ScalarArgument {
  std::string name;
  /// The dtype: "index", "i64", "i32", "f32" or "bool".
  std::string dtype;
  /// The name of the dim whose size the scalar must not exceed, or "".
  std::string atMost;
};

class KernelBuilder {
public:
  /// A value of the kernel that this builder builds. Other builders do not
  /// accept it.
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
  /// Sets the default of `name`, which is a dtype variable, a base or a dim.
  /// The default is used if a compilation does not bind the name.
  bool setDefault(std::string_view name, std::string_view value,
                  const SourceLocation &location);
  /// Makes every access that is not proved to be in bounds an error.
  bool proveBounds(const SourceLocation &location);
  /// Suppresses warnings of the given kind: "races", "bounds" or "nan".
  bool allow(std::string_view kind, const SourceLocation &location);
  /// Overrides one of the compiler's decisions about code versions for GPUs.
  /// `field` is "NAME=VALUE", or "VERSION.NAME=VALUE" for one version.
  bool plan(std::string_view field, const SourceLocation &location);
  /// Promises that no two entries of an integer tensor are equal, unless they
  /// are negative.
  bool distinct(Value tensor, const SourceLocation &location);
  /// Returns the size of dim `position` of a tensor argument, of type index.
  Value dim(Value tensor, unsigned position, const SourceLocation &location);
  /// @}

  /// Promises that a condition holds. `text` is the condition's text for
  /// messages. Before the grid, the condition may use only sizes and integer
  /// arguments, and each launch checks it. In the grid, any condition is
  /// allowed.
  bool assume(Value condition, std::string_view text,
              const SourceLocation &location);

  /// Prints `text` in watched launches (docs/Proofs.md). Call it in the grid.
  /// Each "{}" of the text stands for one of `values`: scalars, rows or states.
  bool print(std::string_view text, const Values &values,
             const SourceLocation &location);

  /// Exchanges a row's stores to peers' tensors between the ranks: makes the
  /// stores of this row on every rank visible to this row on every other rank.
  /// Call it in the grid.
  bool exchange(const SourceLocation &location);
  /// Returns 0 or 1, alternating between launches of the group. Call it in the
  /// grid.
  Value turn(const SourceLocation &location);

  /// \name The grid
  ///
  /// The grid is a forall, or a ragged forall. The predicate of a ragged forall
  /// is built before its body.
  ///
  /// @{
  Values beginForall(const Values &extents, const SourceLocation &location);
  /// Begins the predicate of a ragged forall. Returns the segment's index,
  /// which the predicate may use.
  Value beginRaggedForall(Value cuSeqlens, Value rows, const Values &inner,
                          const SourceLocation &location);
  /// Ends the predicate and begins the body. Returns the indices in the body:
  /// of the segment, of the row, and of each inner extent.
  Values beginRaggedBody(Value predicate, const SourceLocation &location);
  bool endGrid(const SourceLocation &location);
  /// @}

  /// \name Control flow inside the grid
  ///
  /// @{

  /// Begins a loop. `lower`, `upper` and `step` must have the same integer
  /// type. Returns the loop's index and then the carried values, as seen inside
  /// the loop.
  Values beginFor(Value lower, Value upper, Value step, const Values &initial,
                  const SourceLocation &location);
  /// Ends the loop. `next` are the values carried to the next iteration. Sets
  /// `results` to the loop's results.
  bool endFor(const Values &next, Values &results,
              const SourceLocation &location);
  bool beginIf(Value condition, const SourceLocation &location);
  bool beginElse(const Values &results, const SourceLocation &location);
  /// Ends the branch of the last beginIf(). If there was no beginElse(),
  /// `values` must be empty. An i32 constant that was given to beginElse()
  /// takes the type of its value here if that is f32, i64 or index.
  bool endIf(const Values &values, Values &results,
             const SourceLocation &location);
  /// @}

  /// \name Constants and arithmetic, allowed before the grid and in it
  ///
  /// Operands are scalars or rows with the same element type. A scalar is
  /// broadcast to a row. `index` is signed. Integer division rounds down, and
  /// division of a by 0 gives a.
  ///
  /// @{
  Value constant(double value, const SourceLocation &location); // of type f32
  Value constant(std::int64_t value, std::string_view dtype,
                 const SourceLocation &location);
  /// Creates neg, abs or not, or a function of f32 in mlafix/Functions.def.
  Value unary(std::string_view op, Value operand,
              const SourceLocation &location);
  /// Creates a function that MLAFIX_BINARY lists in mlafix/Functions.def, or
  /// mod of integers.
  Value binary(std::string_view op, Value lhs, Value rhs,
               const SourceLocation &location);
  /// Creates a * b + c with a single rounding.
  Value fma(Value a, Value b, Value c, const SourceLocation &location);
  /// Creates a comparison: eq, ne, lt, le, gt or ge. NaN is unequal to
  /// everything, even to itself.
  Value compare(std::string_view op, Value lhs, Value rhs,
                const SourceLocation &location);
  Value select(Value condition, Value ifTrue, Value ifFalse,
               const SourceLocation &location);
  /// Converts a scalar or row to "f32", "i32", "i64", "index" or "bool" (true
  /// if not zero). From f32, `dtype` may also be a narrower float of
  /// DTypes.def. The value is then rounded as a store to that dtype rounds it,
  /// and stays f32.
  Value convert(Value operand, std::string_view dtype,
                const SourceLocation &location);
  Value splat(Value scalar, std::string_view dim,
              const SourceLocation &location);
  /// Creates a row of i32 along `dim`. Each element is its own index.
  Value iota(std::string_view dim, const SourceLocation &location);
  /// Reduces a row to a scalar. f32, i32 and i64 have add, max and min. bool
  /// has max (true if any element is) and min (true if all are). f32 and i32
  /// have argmax and argmin, which return the i32 index of the first NaN, or
  /// else of the first extreme element. `along` may name the second factor of
  /// the row's dim. Then each group is reduced to one element of a row along
  /// the first factor.
  Value reduce(std::string_view op, Value row, std::string_view along,
               const SourceLocation &location);
  /// Returns the `count` greatest elements of a row of f32 or i32 in descending
  /// order, and their i32 indices. Equal elements are ordered by index, and NaN
  /// comes before all numbers. `along` has the same meaning as in reduce().
  Values topK(Value row, std::int64_t count, std::string_view along,
              const SourceLocation &location);
  /// Computes the running sum, maximum or minimum (add, max, min) of a row of
  /// f32 or i32. Element i of the result reduces elements 0 to i. If `along` is
  /// given, each group is scanned by itself.
  Value scan(std::string_view op, Value row, std::string_view along,
             const SourceLocation &location);
  /// Exchanges neighbouring blocks of a row of f32 or i32. Element i of the
  /// result is the operand's element i xor `block`. `block` is a power of two.
  Value swap(Value row, std::int64_t block, const SourceLocation &location);
  /// @}

  /// \name Memory
  ///
  /// @{

  /// The part of a row to access. For a row along a product (G K), `group`
  /// selects one group: a row along K. `member` selects that element of each
  /// group: a row along G. Both together select one element, and neither
  /// selects the whole row. For any other row, the part is the elements in
  /// [begin, end), or all if `end` is 0.
  struct Part {
    Value group = {}, member = {}; ///< of type index, or no value
    std::int64_t begin = 0, end = 0;
  };
  /// The place of a load or store. The place is a row if there is one index
  /// less than the tensor has dims. It is an element if there is one index per
  /// dim.
  struct Access {
    Value tensor;
    Values indices;
    Value predicate = {}; ///< no value means true
    Part part = {};
  };
  /// Loads a row or an element. Floats become f32. `dtype` ("i32" or "i64") is
  /// the type to which integers are widened; if empty, they keep their type.
  /// `other`, if given, is the result if the predicate is false.
  Value load(const Access &place, const SourceLocation &location, Value other,
             std::string_view dtype);
  /// Loads a row or slice into a longer row along `dim`. The elements before
  /// `first` are zero. From `first` on, each loaded element is repeated `each`
  /// times, and all of them repeat periodically to the end. Types are as for
  /// load().
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
  /// A base is "e", "2", or an upper-case name that is bound later. `sink` says
  /// if a state includes an attention sink. Alternative states, such as the two
  /// results of a branch, may differ in having a sink. The state that results
  /// from them then has a sink.
  ///
  /// @{
  struct StateAccess {
    Value out;
    /// The indices of the row of `out`.
    Values outIndices;
    Value lse;
    /// The indices of the element of `lse`.
    Values lseIndices;
    Value predicate = {}; ///< no value means true
  };
  Value identity(std::string_view dim, std::string_view base,
                 const SourceLocation &location);
  Value loadState(const StateAccess &place, std::string_view base, bool sink,
                  const SourceLocation &location);
  /// Makes a state from a row of f32 and its lse, a scalar f32.
  Value makeState(Value row, Value lse, std::string_view base, bool sink,
                  const SourceLocation &location);
  /// Stores a state. `scale` may be empty, and so may either `out` or `lse` of
  /// `place`.
  bool storeState(Value state, const StateAccess &place, Value scale,
                  const SourceLocation &location);
  /// Merges states. At most one of them may have a sink.
  Value merge(const Values &states, const SourceLocation &location);
  Value mask(Value state, Value predicate, const SourceLocation &location);
  Value rebase(Value state, std::string_view base,
               const SourceLocation &location);
  /// Returns the normalised row of a state, of f32.
  Value payload(Value state, const SourceLocation &location);
  /// Returns the log-sum-exp of a state, a scalar f32.
  Value lseOf(Value state, const SourceLocation &location);
  /// @}

  /// Verifies the kernel and returns its MLIR text with locations. Returns ""
  /// if the kernel is invalid. Nothing can be added afterwards.
  std::string finish();

  struct Impl;

private:
  std::unique_ptr<Impl> impl;
};

} // namespace mlafix

#endif // MLAFIX_KERNELBUILDER_H
