//===- BatchRows.cpp - scalars of many rows at once -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The scalars of a row, such as its weights, take a long chain of operations,
// which a CPU would execute row by row. If an lse is [H, n], each row of a
// token reads a separate cache line. This line is evicted before the next token
// reads the neighbouring element in it. So rows are processed in batches:
// `batch` neighbours along the outermost extent, times `strip_rows` of the plan
// along the inner extents. A first loop computes the scalars of `batch` rows at
// once, as vectors, and stores the values that the rows need in buffers. Two
// more loops then process the rows in memory order.
//
//===----------------------------------------------------------------------===//

#include "dialect/Plan.h"
#include "lib/Transforms/Grid/RowRange.h"
#include "lib/Transforms/Grid/Strategies.h"
#include "lib/Transforms/GridLowering.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/Layout/RowInvariantScalars.h"
#include "lib/Transforms/Remarks.h"
#include "lib/Transforms/Rows/StackRows.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-lower-grid"

using namespace mlir;
using namespace mlafix;

/// Returns the number of rows in a full batch: `batch` rows along the outermost
/// extent times all rows along the inner ones. A call should get a multiple of
/// this number. Returns 1 if the number is unknown or too large.
static int64_t getBatchRows(ForallOp forall, int64_t batch) {
  int64_t most = getMachine(forall).rangeRows;
  int64_t rows = batch;
  for (Value extent : forall.getExtents().drop_front()) {
    APInt value;
    if (!matchPattern(extent, m_ConstantInt(&value)) ||
        value.getSExtValue() < 1 || value.getSExtValue() > most / rows)
      return 1;
    rows *= value.getSExtValue();
  }
  return rows;
}

namespace {

class BatchBuilder {
public:
  BatchBuilder(KernelOp kernel, ForallOp forall)
      : kernel(kernel), loc(forall.getLoc()), row(forall.getBody().front()),
        early(row), batch(kernel.getLayoutAttr().getRows()),
        strip(getPlanned(kernel, PlanField::StripRows)),
        extents(llvm::to_vector(forall.getExtents())) {
    LDBG() << kernel.getSymName() << ": " << batch << " times " << strip
           << " rows";
    remark::passed(loc, nameRemark("batch-rows", DEBUG_TYPE, kernel))
        << remark::add("the scalars of {0} rows along the outermost extent "
                       "are computed at once, as vectors, for up to {1} rows "
                       "along the inner ones, before these rows are moved",
                       batch, strip);
  }

  /// Builds loops over all complete batches in `range`. Returns the first row
  /// after these batches.
  Value run(OpBuilder &b, RowRange range);

private:
  void computeScalars(OpBuilder &b, Value first, Value position);
  void moveRow(OpBuilder &b, Value row, Value lane, Value position);

  SmallVector<Value> indicesOf(OpBuilder &b, Value first) {
    return IndexBuilder(b, loc).delinearize(first, extents);
  }
  /// Builds the grid's indices of the row that is `lane` rows after `first`
  /// along the outermost extent.
  SmallVector<Value> indicesOf(OpBuilder &b, Value first, Value lane) {
    SmallVector<Value> indices = indicesOf(b, first);
    indices.front() = IndexBuilder(b, loc).add(indices.front(), lane);
    return indices;
  }
  /// Returns `value` for all rows of the batch, as a vector.
  Value vectorOf(OpBuilder &b, Value value);
  /// Returns `value` for row `lane` of the batch.
  Value laneOf(OpBuilder &b, Value value, int64_t lane);
  /// Clones `op` with the values of its operands in row `lane` of the batch.
  Operation *cloneLane(OpBuilder &b, Operation *op, int64_t lane);
  bool varies(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return varying.contains(operand);
    });
  }

  KernelOp kernel;
  Location loc;
  Block &row;
  RowInvariantScalars early;
  int64_t batch, strip;
  SmallVector<Value> extents;
  IRMapping same; // values common to all rows of a batch
  // Values that differ between the rows of a batch.
  llvm::DenseSet<Value> varying;
  // Varying values as vectors, with an element per row of the batch.
  llvm::DenseMap<Value, Value> vectors;
  // Varying values as scalars, one for each row of the batch.
  llvm::DenseMap<Value, SmallVector<Value>> lanesOf;
  llvm::MapVector<Value, Value> buffers;
};

} // namespace

Value BatchBuilder::vectorOf(OpBuilder &b, Value value) {
  if (Value vector = vectors.lookup(value))
    return vector;
  auto type = VectorType::get({batch}, value.getType());
  if (!varying.contains(value))
    return vector::BroadcastOp::create(b, loc, type,
                                       same.lookupOrDefault(value));
  return vectors[value] =
             vector::FromElementsOp::create(b, loc, type, lanesOf[value]);
}

Value BatchBuilder::laneOf(OpBuilder &b, Value value, int64_t lane) {
  if (!varying.contains(value))
    return same.lookupOrDefault(value);
  auto lanes = lanesOf.find(value);
  return lanes != lanesOf.end()
             ? lanes->second[lane]
             : vector::ExtractOp::create(b, loc, vectors.lookup(value), lane);
}

Operation *BatchBuilder::cloneLane(OpBuilder &b, Operation *op, int64_t lane) {
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, laneOf(b, operand, lane));
  return b.clone(*op, mapping);
}

/// Computes the scalars of `batch` rows from `first` on along the outermost
/// extent. Stores them to the buffers from `position` on, in the order in which
/// moveRow() reads them. The stores here are therefore strided, but their cache
/// lines stay in the cache. In the other order, the loads of moveRow() would be
/// strided, with a cache line per value, which would cost more.
void BatchBuilder::computeScalars(OpBuilder &b, Value first, Value position) {
  SmallVector<Value> indices = indicesOf(b, first);
  for (auto [argument, index] : llvm::zip(row.getArguments(), indices))
    same.map(argument, index);
  Value outer = row.getArgument(0);
  varying.insert(outer);
  IndexBuilder x(b, loc);
  for (int64_t lane = 0; lane < batch; ++lane)
    lanesOf[outer].push_back(x.add(indices.front(), x.constant(lane)));

  for (Operation *op : early.inOrder()) {
    if (!varies(op) && !isa<StoreOp>(op)) {
      b.clone(*op, same);
      continue;
    }
    varying.insert(op->result_begin(), op->result_end());
    // Loads, stores and cheap ops, such as those that compute addresses, stay
    // scalar: they are cloned for each row.
    if (isa<LoadOp, StoreOp>(op) || early.isCheap(op)) {
      for (int64_t lane = 0; lane < batch; ++lane)
        for (Value result : cloneLane(b, op, lane)->getResults())
          lanesOf[op->getResult(0)].push_back(result);
      continue;
    }
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(vectorOf(b, operand));
    OperationState state(loc, op->getName(), operands,
                         {VectorType::get({batch}, op->getResult(0).getType())},
                         op->getAttrs());
    vectors[op->getResult(0)] = b.create(state)->getResult(0);
  }
  for (auto [value, buffer] : buffers)
    for (int64_t lane = 0; lane < batch; ++lane) {
      Value place = x.add(position, x.constant(lane * strip));
      memref::StoreOp::create(b, loc, laneOf(b, value, lane), buffer, place);
    }
}

/// Builds the program of the row that is `lane` rows after `row` along the
/// outermost extent, and whose scalars are at `position` in the buffers.
void BatchBuilder::moveRow(OpBuilder &b, Value row, Value lane,
                           Value position) {
  IRMapping mapping;
  for (auto [argument, index] :
       llvm::zip(this->row.getArguments(), indicesOf(b, row, lane)))
    mapping.map(argument, index);
  for (auto [value, buffer] : buffers)
    mapping.map(value,
                memref::LoadOp::create(b, loc, buffer, ValueRange{position}));
  for (Operation *op : early.inOrder())
    if (early.isRepeated(op))
      b.clone(*op, mapping);
  for (Operation &op : this->row.without_terminator())
    if (!early.contains(&op))
      b.clone(op, mapping);
}

Value BatchBuilder::run(OpBuilder &b, RowRange range) {
  for (Value value : early.kept())
    buffers[value] = allocBuffer(kernel, value.getType(), strip * batch);
  IndexBuilder x(b, loc);
  Value zero = x.constant(0), one = x.constant(1), lanes = x.constant(batch);
  // The distance in rows between neighbours along the outermost extent.
  Value stride = one;
  for (Value extent : ArrayRef(extents).drop_front())
    stride = x.mul(stride, extent);
  // If an inner extent is 0, the distance is 0, but a loop needs a step of at
  // least 1.
  stride = arith::MaxUIOp::create(b, loc, stride, one);
  Value rows = x.mul(stride, lanes);
  Value last = x.add(range.begin,
                     x.mul(x.div(x.sub(range.end, range.begin), rows), rows));
  buildLoop(b, loc, range.begin, last, rows, [&](Value base) {
    buildLoop(b, loc, zero, stride, x.constant(strip), [&](Value offset) {
      Value first = x.add(base, offset);
      Value width = arith::MinUIOp::create(b, loc, x.sub(stride, offset),
                                           x.constant(strip));
      buildLoop(b, loc, zero, width, one,
                [&](Value i) { computeScalars(b, x.add(first, i), i); });
      buildLoop(b, loc, zero, lanes, one, [&](Value lane) {
        buildLoop(b, loc, zero, width, one, [&](Value i) {
          Value place = x.add(x.mul(lane, x.constant(strip)), i);
          moveRow(b, x.add(first, i), lane, place);
        });
      });
    });
  });
  return last;
}

void mlafix::lowerToBatches(KernelOp kernel, ForallOp forall) {
  int64_t batch = kernel.getLayoutAttr().getRows();
  RowRange range = addRowRange(kernel);
  setRangeGeometry(kernel, forall, getBatchRows(forall, batch));
  OpBuilder b(forall);
  range.begin = BatchBuilder(kernel, forall).run(b, range);
  // Rows after the last complete batch are processed one by one.
  buildRowLoop(forall, range);
}
