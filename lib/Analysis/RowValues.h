//===- RowValues.h - the elements of rows, on the host ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Computes the elements of rows, and reductions of them, one after the other
// with the compiler's own constant folders, and lses and payloads of states in
// f64. Records which operation made a NaN or an infinity from operands that
// were neither.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_ROWVALUES_H
#define MLAFIX_ANALYSIS_ROWVALUES_H

#include "dialect/Mlafix.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"

#include <array>
#include <functional>
#include <optional>
#include <vector>

namespace mlafix {

/// Returns the f32 with these bits.
inline float floatOf(int64_t bits) {
  return llvm::bit_cast<float>(static_cast<uint32_t>(bits));
}

/// Returns the bits of the f32 nearest to `value`.
inline int64_t bitsOf(double value) {
  return llvm::bit_cast<uint32_t>(static_cast<float>(value));
}

/// The f32 bits of -inf, the lse of an empty state.
inline constexpr int64_t kEmptyLse = 0xff800000;

/// Returns the lse of a loaded state, as f32 bits. Both infinities become -inf
/// (empty).
int64_t lseOfLoaded(int64_t bits);

/// Returns an integer or boolean as its value, and an f32 as its bits. Returns
/// nullopt for other attributes.
std::optional<int64_t> numberOf(mlir::Attribute attribute);

/// Returns the attribute for which numberOf() returns `number`. `type` is an
/// integer type, index or f32.
mlir::Attribute attributeOf(mlir::Type type, int64_t number);

/// Returns the result of a float function that MLIR itself does not fold.
/// Returns nullopt for other operations.
std::optional<int64_t> foldFloats(mlir::Operation *op,
                                  llvm::ArrayRef<mlir::Attribute> operands);

/// The kinds of floats that are not finite.
enum class OddFloat { NaN, Infinity };

/// True if the f32 with these bits is of the given kind.
bool isOdd(OddFloat kind, int64_t bits);

/// Says which operation made a NaN or an infinity, and from which operands.
struct OddOrigin {
  mlir::Operation *op = nullptr; ///< null if unknown
  bool isInput = false; ///< true if read from memory, an argument or a constant
  std::string how;      ///< the operands: "-inf and -inf"
};

class RowValues {
public:
  /// The elements of a row, or of the payload of a state. Floats are stored as
  /// the bits of an f32.
  using Row = std::vector<int64_t>;

  /// `get` must return the value of a scalar or the lse of a state; nullopt if
  /// it is unknown.
  explicit RowValues(std::function<std::optional<int64_t>(mlir::Value)> get)
      : getNumber(std::move(get)) {}

  /// Returns the row that `store_state` writes for a payload and an lse: zeros
  /// if the state is empty, NaN if its lse is NaN. Returns nullopt if the
  /// payload or the lse is unknown.
  static std::optional<Row> payloadOf(std::optional<Row> row,
                                      std::optional<int64_t> lse);

  /// Returns the elements of a row, or null if they are unknown.
  const Row *get(mlir::Value value) const;
  void set(mlir::Value value, std::optional<Row> row);
  /// Copies the rows and the origins of `sources` to `targets`, one by one.
  void copyAll(mlir::ValueRange targets, mlir::ValueRange sources);

  /// Computes and keeps the rows and payloads that `op` returns. Returns one
  /// entry for each result: the number if `op` reduces rows to a number, the
  /// lse of a state, or nullopt for a row or an unknown number. Returns no
  /// vector if the caller must compute the results itself, because `op`
  /// involves no rows and no states.
  std::optional<llvm::SmallVector<std::optional<int64_t>>>
  compute(mlir::Operation *op);

  /// Writes a number, the lse of a state, or a row. A long row is shortened to
  /// its ends, followed by the counts of NaN and of infinite elements.
  void write(llvm::raw_ostream &stream, mlir::Value value) const;

  /// Records where the NaNs and the infinities among the elements of `result`
  /// come from: one origin for each of the two kinds. Prefers that of the first
  /// element that the kernel made to that of the first element overall.
  void noteOrigins(mlir::Operation *op, mlir::Value result,
                   llvm::ArrayRef<int64_t> elements);
  /// Returns the origin of a NaN or an infinity (`kind`) in `value`.
  OddOrigin getOrigin(mlir::Value value, OddFloat kind) const {
    return origins.lookup(value)[unsigned(kind)];
  }

private:
  using Numbers = llvm::SmallVector<std::optional<int64_t>>;

  std::optional<Row> computeRow(mlir::Operation *op);
  std::optional<Row> computeElements(mlir::Operation *op);
  std::optional<Row> computePayload(mlir::Operation *op);
  /// Returns the lse, as f32 bits, of the state that `op` yields. The identity
  /// and every empty state have -inf (N1, N2). Merges are computed in f64 and
  /// rounded, although kernels compute in f32 (N10). If the base is not bound,
  /// the kernel's default is used, or else e. Returns nullopt if `op` depends
  /// on an unknown.
  std::optional<int64_t> computeLse(mlir::Operation *op) const;
  struct MergeWeights;
  /// Computes the weights of a merge. Returns nullopt if an lse is unknown.
  std::optional<MergeWeights> weighStates(MergeOp merge) const;
  std::optional<Row> mergePayloads(MergeOp merge);
  std::optional<Row> reduceGroups(ReduceOp op, size_t groups);
  std::optional<int64_t> foldElement(mlir::Operation *op, size_t index);
  /// Returns element `index` of a row, or the value of a scalar.
  std::optional<int64_t> getElement(mlir::Value value, size_t index) const;
  /// Returns the f32 elements of `operand` that element `index` of the result
  /// of `op` is computed from.
  Row elementsOf(mlir::Operation *op, mlir::Value operand, size_t index) const;
  /// Returns the origin of element `index` of the result of `op`. The element
  /// must be a NaN or an infinity (`kind`) and have the f32 bits `bits`.
  OddOrigin findOrigin(mlir::Operation *op, OddFloat kind, int64_t bits,
                       size_t index) const;
  std::string describeOperands(mlir::Operation *op, size_t index) const;

  std::function<std::optional<int64_t>(mlir::Value)> getNumber;
  llvm::DenseMap<mlir::Value, std::optional<Row>> rows;
  llvm::DenseMap<mlir::Value, std::array<OddOrigin, 2>> origins;
  int64_t elementsLeft = kMostElements;

  /// The largest total number of elements to compute. Once it is reached,
  /// further rows are unknown.
  static constexpr int64_t kMostElements = 1 << 21;
};

/// Reduces elements in the order that kernels use (N9).
int64_t reduceElements(ReduceKind kind, mlir::Type type,
                       llvm::ArrayRef<int64_t> elements);

/// Writes a number. Writes a float as the shortest text that reads back as the
/// same float, and nullopt as "?".
void writeNumber(llvm::raw_ostream &stream, mlir::Type type,
                 std::optional<int64_t> number);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_ROWVALUES_H
