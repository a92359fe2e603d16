//===- RowValues.h - the elements of rows, on the host ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Computes rows and what is reduced from them, one element after the other, as
// the compiler folds constants; and remembers which operation made a NaN or an
// infinity of operands that are none.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_ROWVALUES_H
#define MLAFIX_ANALYSIS_ROWVALUES_H

#include "lib/Analysis/StateLse.h"

#include "llvm/ADT/DenseMap.h"

#include <array>
#include <functional>
#include <vector>

namespace mlafix {

/// An integer or boolean as its value, an f32 as its bits; none for others.
std::optional<int64_t> numberOf(mlir::Attribute attribute);

/// The reverse. `type` is an integer, an index or f32.
mlir::Attribute attributeOf(mlir::Type type, int64_t number);

/// The result of a function of floats that upstream does not fold, nullopt for
/// other operations.
std::optional<int64_t> foldFloats(mlir::Operation *op,
                                  llvm::ArrayRef<mlir::Attribute> operands);

/// The floats that are no numbers.
enum class OddFloat { NaN, Infinity };

/// True if the f32 with these bits is of the given kind.
bool isOdd(OddFloat kind, int64_t bits);

/// The origin of a NaN or an infinity: the operation that made it, and its
/// operands.
struct OddOrigin {
  mlir::Operation *op = nullptr; ///< null: not known
  bool isInput = false;          ///< from memory, an argument or a constant
  std::string how;               ///< "-inf and -inf"
};

class RowValues {
public:
  /// The elements of a row, or of the payload of a state: floats as the bits of
  /// f32.
  using Row = std::vector<int64_t>;

  /// `get` returns the value of a scalar, or the lse of a state.
  explicit RowValues(std::function<std::optional<int64_t>(mlir::Value)> get)
      : getNumber(std::move(get)) {}

  /// The row that `store_state` writes for a payload and an lse: zeros if the
  /// state is empty, NaN if its lse is NaN. Returns nullopt if either is
  /// unknown.
  static std::optional<Row> payloadOf(std::optional<Row> row,
                                      std::optional<int64_t> lse);

  /// The elements of a row. Null if they are unknown.
  const Row *get(mlir::Value value) const;
  void set(mlir::Value value, std::optional<Row> row);
  /// Gives targets the rows and the origins of sources.
  void copyAll(mlir::ValueRange targets, mlir::ValueRange sources);

  /// Computes the rows among the results of `op`, and the payload of states. If
  /// `op` reduces rows to numbers, returns these by result, with nullopt for
  /// unknown ones. Returns nullopt itself if `op` has nothing to do with rows.
  std::optional<llvm::SmallVector<std::optional<int64_t>>>
  compute(mlir::Operation *op);

  /// Writes a number, the lse of a state, or a row. Of a long row, only writes
  /// its ends, and how many elements are NaN or infinite.
  void write(llvm::raw_ostream &stream, mlir::Value value) const;

  /// Notes the origins of a NaN and of an infinity among the elements of a
  /// result: of the first that the kernel made, else of the first.
  void noteOrigins(mlir::Operation *op, mlir::Value result,
                   llvm::ArrayRef<int64_t> elements);
  /// The origin of the NaN, or of the infinity, in a value.
  OddOrigin getOrigin(mlir::Value value, OddFloat kind) const {
    return origins.lookup(value)[unsigned(kind)];
  }

private:
  using Numbers = llvm::SmallVector<std::optional<int64_t>>;

  std::optional<Row> computeRow(mlir::Operation *op);
  std::optional<Row> computeElements(mlir::Operation *op);
  std::optional<Row> computePayload(mlir::Operation *op);
  std::optional<Row> mergePayloads(MergeOp merge);
  std::optional<Row> reduceGroups(ReduceOp op, size_t groups);
  std::optional<int64_t> foldElement(mlir::Operation *op, size_t index);
  /// An element of a row, or a scalar.
  std::optional<int64_t> getElement(mlir::Value value, size_t index) const;
  /// The elements of an operand from which element `index` of a result is
  /// computed.
  Row elementsOf(mlir::Operation *op, mlir::Value operand, size_t index) const;
  /// The origin of element `index` of a result, which is `bits`.
  OddOrigin findOrigin(mlir::Operation *op, OddFloat kind, int64_t bits,
                       size_t index) const;
  std::string describeOperands(mlir::Operation *op, size_t index) const;

  std::function<std::optional<int64_t>(mlir::Value)> getNumber;
  llvm::DenseMap<mlir::Value, std::optional<Row>> rows;
  llvm::DenseMap<mlir::Value, std::array<OddOrigin, 2>> origins;
  int64_t elementsLeft = kMostElements;

  /// The most elements that are computed. Rows after that are unknown.
  static constexpr int64_t kMostElements = 1 << 21;
};

/// The result of a reduction of some elements, in its order (N9).
int64_t reduceElements(ReduceKind kind, mlir::Type type,
                       llvm::ArrayRef<int64_t> elements);

/// The text of a number: the shortest that is this float; "?" for nullopt.
void writeNumber(llvm::raw_ostream &stream, mlir::Type type,
                 std::optional<int64_t> number);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_ROWVALUES_H
