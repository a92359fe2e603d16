//===- RowBatches.cpp - scalars of many rows at once ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The scalars of a row, its weights for one, are a long chain of operations
// that a CPU would do for one row after the other; and where an lse is [H, n],
// each row of a token takes one from a cache line of its own, long gone when
// the next token wants the element beside it. So rows are done in batches: of
// `batch` neighbours along the outermost extent, times up to stripRows along
// the inner ones. First a loop over the strip computes the scalars of `batch`
// rows at once, as vectors, and leaves in buffers what the rows need; then two
// loops move the rows, in the order in which they lie in memory.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/CPU/RowBatches.h"
#include "dialect/Guards.h"
#include "lib/Analysis/Aliasing.h"
#include "lib/Transforms/DistributeGrid.h"
#include "lib/Transforms/DistributeLoops.h"
#include "lib/Transforms/LaneConflicts.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlafix;

namespace {

/// The scalar ops of a row that need no row, and so can run ahead of it.
class EarlyOps {
public:
  explicit EarlyOps(Block &row);

  bool contains(Operation *op) const { return ops.contains(op); }
  ArrayRef<Operation *> inOrder() const { return ops.getArrayRef(); }
  /// Whether `op` is cheap enough to do again: neither it nor what it uses
  /// reads memory or computes.
  bool isCheap(Operation *op) const { return cheap.contains(op); }
  /// Whether the row proper has its own copy of `op`.
  bool isRepeated(Operation *op) const {
    return isCheap(op) || compares.contains(op);
  }
  /// The other values that the row proper needs.
  ArrayRef<Value> kept() const { return needed.getArrayRef(); }

private:
  llvm::SetVector<Operation *> ops;
  llvm::SmallPtrSet<Operation *, 16> cheap;
  /// Comparisons of values that are kept with constants.
  llvm::SmallPtrSet<Operation *, 4> compares;
  llvm::SetVector<Value> needed;
};

} // namespace

static bool isElementwise(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1;
}

/// Ops that vectors of rows make worth the while.
static bool isLong(Operation *op) {
  return isa<arith::DivFOp, math::ExpOp, math::Exp2Op, math::LogOp,
             math::Log2Op, math::SqrtOp, math::RsqrtOp>(op);
}

EarlyOps::EarlyOps(Block &row) {
  auto isEarly = [&](Value value) {
    Operation *def = value.getDefiningOp();
    return !def || def->getBlock() != &row || ops.contains(def);
  };
  for (Operation &op : row.without_terminator()) {
    if (isTileOp(&op) || !llvm::all_of(op.getOperands(), isEarly))
      continue;
    ops.insert(&op);
    bool usesCheap = llvm::all_of(op.getOperands(), [&](Value operand) {
      Operation *def = operand.getDefiningOp();
      return !def || def->getBlock() != &row || cheap.contains(def);
    });
    if (usesCheap && isMemoryEffectFree(&op) && !isLong(&op))
      cheap.insert(&op);
  }

  for (Operation *op : ops)
    if (!isCheap(op) && op->getNumResults() == 1 &&
        llvm::any_of(op->getUsers(),
                     [&](Operation *user) { return !contains(user); }))
      needed.insert(op->getResult(0));
  for (Value value : needed) {
    auto compare = value.getDefiningOp<arith::CmpFOp>();
    if (compare && llvm::all_of(compare->getOperands(), [&](Value operand) {
          return needed.contains(operand) ||
                 matchPattern(operand, m_Constant());
        }))
      compares.insert(compare);
  }
  needed.remove_if(
      [&](Value value) { return compares.contains(value.getDefiningOp()); });
}

//===----------------------------------------------------------------------===//
// Which kernels
//===----------------------------------------------------------------------===//

/// Whether two arguments may be the same tensor in a call of `kernel`.
static bool mayBeSame(KernelOp kernel, ArrayAttr aliases, int64_t a,
                      int64_t b) {
  if (a == b)
    return true;
  if (areGuardedDistinct(kernel.getGuardsAttr(), a, b))
    return false;
  return isAliasPair(aliases, a, b);
}

static bool isBatchable(Operation *op) {
  if (op->getNumRegions() != 0)
    return false;
  if (isTileOp(op) ||
      isa<LoadOp, StoreOp, PresentOp, SameTensorOp, memref::DimOp>(op))
    return true;
  // A vector divides lane by lane, and a divisor of zero is excluded by a
  // select that knows one row.
  return isElementwise(op) &&
         !isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(
             op);
}

bool mlafix::canBatchScalars(KernelOp kernel, ArrayAttr aliases) {
  auto forall = dyn_cast_or_null<ForallOp>(kernel.getGrid());
  if (!forall || forall.getExtents().empty())
    return false;
  Block &row = forall.getBody().front();
  if (!llvm::all_of(row.without_terminator(),
                    [](Operation &op) { return isBatchable(&op); }))
    return false;
  EarlyOps early(row);
  if (llvm::none_of(early.inOrder(), isLong))
    return false;
  if (llvm::any_of(early.kept(), [](Value value) {
        return !isa<FloatType, IntegerType>(value.getType());
      }))
    return false;
  // No row may read what another one's scalars have written already.
  for (Operation *op : early.inOrder()) {
    std::optional<MemoryAccess> mine = getSingleAccess(op);
    if (!mine)
      continue;
    for (Operation &other : row.without_terminator()) {
      std::optional<MemoryAccess> theirs = getSingleAccess(&other);
      if (!theirs || (!mine->isWrite && !theirs->isWrite) ||
          !mayBeSame(kernel, aliases, mine->getArgNumber(),
                     theirs->getArgNumber()))
        continue;
      bool bothEarlyWrites =
          mine->isWrite && theirs->isWrite && early.contains(&other);
      if (!bothEarlyWrites)
        return false;
    }
  }
  return true;
}

int64_t mlafix::getBatchRows(ForallOp forall, int64_t batch) {
  int64_t most = getMachine(forall).rangeRows;
  if (batch == 1)
    return 1;
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

//===----------------------------------------------------------------------===//
// The loops
//===----------------------------------------------------------------------===//

namespace {

class BatchBuilder {
public:
  BatchBuilder(KernelOp kernel, ForallOp forall)
      : kernel(kernel), loc(forall.getLoc()), row(forall.getBody().front()),
        early(row), machine(getMachine(kernel)),
        batch(kernel.getLayoutAttr().getRows()), strip(machine.stripRows),
        extents(llvm::to_vector(forall.getExtents())) {
    if (int64_t rows = getBatchRows(forall, batch) / batch)
      strip = std::min(strip, rows);
    int64_t bytes = 0;
    for (Value value : early.kept())
      bytes += getDTypeBytes(value.getType());
    while (strip > 1 && bytes * batch * strip > machine.batchBytes)
      strip /= 2;
  }

  Value run(OpBuilder &b, Value begin, Value end);

private:
  void computeScalars(OpBuilder &b, Value first, Value position);
  void moveRow(OpBuilder &b, Value row, Value lane, Value position);
  void prefetchRows(OpBuilder &b, Value row, Value lane,
                    const IRMapping &mapping);

  SmallVector<Value> indicesOf(OpBuilder &b, Value first) {
    return IndexBuilder(b, loc).delinearize(first, extents);
  }
  /// Of the row that is `lane` rows after row `first` along the outermost
  /// extent.
  SmallVector<Value> indicesOf(OpBuilder &b, Value first, Value lane) {
    SmallVector<Value> indices = indicesOf(b, first);
    indices.front() = IndexBuilder(b, loc).add(indices.front(), lane);
    return indices;
  }
  /// What `value` is in the rows of the batch: as a vector, and in one of them.
  Value vectorOf(OpBuilder &b, Value value);
  Value laneOf(OpBuilder &b, Value value, int64_t lane);
  /// `op` with what its operands are in one row.
  Operation *cloneLane(OpBuilder &b, Operation *op, int64_t lane);
  bool varies(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return varying.contains(operand);
    });
  }

  KernelOp kernel;
  Location loc;
  Block &row;
  EarlyOps early;
  MachineModel machine;
  int64_t batch, strip;
  SmallVector<Value> extents;
  IRMapping same; // values that are the same in all rows of a batch
  llvm::DenseSet<Value> varying;                     // those that are not
  llvm::DenseMap<Value, Value> vectors;              // of some that vary
  llvm::DenseMap<Value, SmallVector<Value>> lanesOf; // of the others
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

/// Computes the scalars of `batch` rows, `first` and those that follow it along
/// the outermost extent. What is to be kept lies in the buffers as the rows are
/// moved, one after the other: reading it across, a cache line for each value,
/// costs more than writing it across, lines that are at hand.
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
    // What is near to an address stays a scalar, as addresses are.
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
    for (int64_t lane = 0; lane < batch; ++lane)
      memref::StoreOp::create(
          b, loc, laneOf(b, value, lane), buffer,
          ValueRange{x.add(position, x.constant(lane * strip))});
}

/// Asks for the rows that follow in the tensors that no cache holds. Whether
/// they will be read is what is known of this one.
void BatchBuilder::prefetchRows(OpBuilder &b, Value row, Value lane,
                                const IRMapping &mapping) {
  IndexBuilder x(b, loc);
  llvm::SmallDenseMap<int64_t, SmallVector<Value>> indicesAhead;
  for (LoadOp load : this->row.getOps<LoadOp>()) {
    Value source = load.getSource(), predicate = load.getPredicate();
    bool isNext = isRowTile(load.getType()) &&
                  llvm::equal(load.getIndices(), this->row.getArguments());
    if (!isNext ||
        !isGuardedBeyondCache(kernel.getGuardsAttr(),
                              getKernelArgument(source).getArgNumber()) ||
        (predicate && !mapping.contains(predicate)))
      continue;
    int64_t bytes =
        getDTypeBytes(cast<MemRefType>(source.getType()).getElementType());
    int64_t rowBytes = bytes * getTileDim(load.getType()).getSize();
    int64_t ahead = std::max<int64_t>(1, machine.aheadBytes / rowBytes);
    SmallVector<Value> &indices = indicesAhead[ahead];
    if (indices.empty())
      indices = indicesOf(b, x.add(row, x.constant(ahead)), lane);
    OpBuilder::InsertionGuard guard(b);
    if (predicate)
      b.setInsertionPoint(
          scf::IfOp::create(b, loc, mapping.lookup(predicate)).thenYield());
    for (int64_t at = 0; at < std::min(rowBytes, machine.aheadBytes);
         at += machine.lineBytes) {
      SmallVector<Value> line(indices);
      line.push_back(IndexBuilder(b, loc).constant(at / bytes));
      memref::PrefetchOp::create(b, loc, source, line, /*isWrite=*/false,
                                 /*localityHint=*/3, /*isDataCache=*/true);
    }
  }
}

/// The program of the row that is `lane` rows after `row` along the outermost
/// extent, whose scalars are at `position` in the buffers.
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
  prefetchRows(b, row, lane, mapping);
  for (Operation &op : this->row.without_terminator())
    if (!early.contains(&op))
      b.clone(op, mapping);
}

Value BatchBuilder::run(OpBuilder &b, Value begin, Value end) {
  for (Value value : early.kept())
    buffers[value] = allocBuffer(kernel, value.getType(), strip * batch);
  IndexBuilder x(b, loc);
  Value zero = x.constant(0), one = x.constant(1), lanes = x.constant(batch);
  // From a row to the next one along the outermost extent.
  Value stride = one;
  for (Value extent : ArrayRef(extents).drop_front())
    stride = x.mul(stride, extent);
  stride = arith::MaxUIOp::create(b, loc, stride, one); // of no rows at all
  Value rows = x.mul(stride, lanes);
  Value last = x.add(begin, x.mul(x.div(x.sub(end, begin), rows), rows));
  buildLoop(b, loc, begin, last, rows, [&](Value base) {
    buildLoop(b, loc, zero, stride, x.constant(strip), [&](Value offset) {
      Value first = x.add(base, offset);
      Value width = arith::MinUIOp::create(b, loc, x.sub(stride, offset),
                                           x.constant(strip));
      buildLoop(b, loc, zero, width, one,
                [&](Value i) { computeScalars(b, x.add(first, i), i); });
      buildLoop(b, loc, zero, lanes, one, [&](Value lane) {
        buildLoop(b, loc, zero, width, one, [&](Value i) {
          moveRow(b, x.add(first, i), lane,
                  x.add(x.mul(lane, x.constant(strip)), i));
        });
      });
    });
  });
  return last;
}

Value mlafix::buildRowBatches(OpBuilder &b, KernelOp kernel, ForallOp forall,
                              Value begin, Value end) {
  return BatchBuilder(kernel, forall).run(b, begin, end);
}
