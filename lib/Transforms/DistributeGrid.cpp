//===- DistributeGrid.cpp - the grid becomes threads or loops -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/DistributeGrid.h"
#include "dialect/Guards.h"
#include "lib/Transforms/CPU/RowBatches.h"
#include "lib/Transforms/Target.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

//===----------------------------------------------------------------------===//
// Geometry
//===----------------------------------------------------------------------===//

/// The verifier has made sure that it is one.
ExtentAttr mlafix::describeExtent(Value extent) {
  MLIRContext *context = extent.getContext();
  APInt value;
  if (matchPattern(extent, m_ConstantInt(&value)))
    return ExtentAttr::ofConstant(context, value.getSExtValue());
  if (auto dim = extent.getDefiningOp<memref::DimOp>())
    return ExtentAttr::get(context,
                           getKernelArgument(dim.getSource()).getArgNumber(),
                           *dim.getConstantIndex());
  if (auto cast = extent.getDefiningOp<arith::IndexCastOp>())
    extent = cast.getIn();
  return ExtentAttr::ofScalar(context,
                              getKernelArgument(extent).getArgNumber());
}

SmallVector<ExtentAttr> mlafix::describeExtents(ValueRange extents) {
  return llvm::map_to_vector(extents, describeExtent);
}

/// Moves the ops of a grid's region, but for its terminator, to the insertion
/// point, with `indices` for its arguments.
void mlafix::inlineRow(OpBuilder &b, Block &row, ValueRange indices) {
  for (auto [argument, index] : llvm::zip(row.getArguments(), indices))
    argument.replaceAllUsesWith(index);
  Operation *point = &*b.getInsertionPoint();
  for (Operation &op : llvm::make_early_inc_range(row.without_terminator()))
    op.moveBefore(point);
}

/// A loop over first, first + step, … below `extent`.
void mlafix::buildLoop(OpBuilder &b, Location loc, Value first, Value extent,
                       Value step, function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(b, loc, first, extent, step);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(loop.getBody()->getTerminator());
  body(loop.getInductionVar());
}

Value mlafix::loadBoundary(OpBuilder &b, RaggedForallOp grid, Value segment) {
  Location loc = grid.getLoc();
  Value value = memref::LoadOp::create(b, loc, grid.getCuSeqlens(), segment);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
}

// Unsigned, a negative boundary is larger than any number of rows.
Value mlafix::selectWellFormed(OpBuilder &b, RaggedForallOp grid,
                               Value selected, Value start, Value end) {
  IndexBuilder x(b, grid.getLoc());
  selected = x.band(selected, x.compare(arith::CmpIPredicate::ule, start, end));
  return x.band(selected,
                x.compare(arith::CmpIPredicate::ule, end, grid.getRows()));
}

//===----------------------------------------------------------------------===//
// GPU
//===----------------------------------------------------------------------===//

Thread mlafix::buildThread(OpBuilder &b, Location loc, LayoutAttr layout) {
  IndexBuilder x(b, loc);
  Thread thread;
  thread.context.layout = layout;
  thread.context.isGPU = true;
  int64_t lanes = layout.getLanes();
  thread.id = NVVM::ThreadIdXOp::create(b, loc, b.getI32Type());
  thread.group = x.div(thread.id, x.i32(lanes));
  if (lanes == 1)
    return thread;
  bool isPower = llvm::isPowerOf2_64(lanes);
  Value lane = isPower ? x.band(thread.id, x.i32(lanes - 1))
                       : x.rem(thread.id, x.i32(lanes));
  thread.context.lane = x.toIndex(lane);
  if (!isPower) // the lanes never meet
    return thread;
  if (lanes >= 32) {
    thread.context.rowMask = x.i32(-1);
    return thread;
  }
  // The row's lanes within the warp: ones, shifted to where the row begins.
  Value begin = x.band(thread.id, x.i32(31 & ~(lanes - 1)));
  thread.context.rowMask =
      arith::ShLIOp::create(b, loc, x.i32((int64_t(1) << lanes) - 1), begin);
  return thread;
}

void mlafix::buildDependency(OpBuilder &b, Location loc, KernelOp kernel) {
  if (!getMachine(kernel).dependentLaunch)
    return;
  NVVM::GriddepcontrolOp::create(b, loc, NVVM::GridDepActionKind::wait);
  NVVM::GriddepcontrolOp::create(b, loc,
                                 NVVM::GridDepActionKind::launch_dependents);
}

/// The fewest threads that a block may be launched with: few rows then still
/// reach all multiprocessors. Blocks are halved as long as they hold whole
/// warps of whole rows.
static int64_t getLeastThreads(const MachineModel &machine, LayoutAttr layout) {
  int64_t threads = layout.getThreads();
  while (threads / 2 >= machine.leastLaunchThreads && threads % 64 == 0 &&
         threads / 2 % layout.getLanes() == 0)
    threads /= 2;
  return threads;
}

/// The conditions that decide whether rows are stored or left alone.
static SetVector<Value> getRowConditions(ForallOp forall) {
  SetVector<Value> conditions;
  forall.walk([&](StoreOp store) {
    if (isRowTile(store.getValue().getType()))
      if (auto branch = store->getParentOfType<scf::IfOp>())
        conditions.insert(branch.getCondition());
  });
  return conditions;
}

/// Whether one of `conditions` is another for the last row than for the first,
/// i1; null where scalar arithmetic alone cannot tell. Built ahead of the grid.
static Value buildEndsDiffer(OpBuilder &b, ForallOp forall,
                             const SetVector<Value> &conditions) {
  Location loc = forall.getLoc();
  Block &body = forall.getBody().front();
  BackwardSliceOptions options;
  options.inclusive = true;
  options.filter = [&](Operation *op) { return forall->isProperAncestor(op); };
  SetVector<Operation *> slice;
  for (Value condition : conditions)
    if (failed(getBackwardSlice(condition, &slice, options)))
      return Value();
  if (!llvm::all_of(slice, [&](Operation *op) {
        return isMemoryEffectFree(op) && op->getNumRegions() == 0 &&
               op->getBlock() == &body &&
               llvm::none_of(op->getOperandTypes(), isRowTile);
      }))
    return Value();
  auto buildAt = [&](function_ref<Value(Value)> position) {
    IRMapping mapping;
    for (auto [index, extent] :
         llvm::zip(body.getArguments(), forall.getExtents()))
      mapping.map(index, position(extent));
    for (Operation *op : slice)
      b.clone(*op, mapping);
    return mapping;
  };
  Value zero = arith::ConstantIndexOp::create(b, loc, 0),
        one = arith::ConstantIndexOp::create(b, loc, 1);
  IRMapping first = buildAt([&](Value) { return zero; });
  IRMapping last = buildAt([&](Value extent) -> Value {
    return arith::SubIOp::create(b, loc, extent, one);
  });
  Value any;
  for (Value condition : conditions) {
    Value differs =
        arith::XOrIOp::create(b, loc, first.lookupOrDefault(condition),
                              last.lookupOrDefault(condition));
    any = any ? arith::OrIOp::create(b, loc, any, differs) : differs;
  }
  return any;
}

/// Blocks 0, 1, 2, … take the places 0, n / 2, 1, n / 2 + 1, …: rows that are
/// left alone lie together as a rule, and memory has less to do while blocks
/// find that out; so they run beside others. Where rows at both ends fare
/// alike, blocks keep their places: memory likes that better.
static Value interleaveHalves(OpBuilder &b, ForallOp forall, Value block) {
  SetVector<Value> conditions = getRowConditions(forall);
  if (conditions.empty())
    return block;
  Location loc = forall.getLoc();
  IndexBuilder x(b, loc);
  Value differs = buildEndsDiffer(b, forall, conditions);
  Value blocks = NVVM::GridDimXOp::create(b, loc, b.getI32Type());
  Value two = x.i32(2);
  Value half = x.div(x.add(blocks, x.i32(1)), two);
  Value place = x.add(x.div(block, two), x.mul(x.rem(block, two), half));
  return differs ? arith::SelectOp::create(b, loc, differs, place, block)
                 : place;
}

/// Appends an argument that a call does not have.
static Value addArgument(KernelOp kernel, StringRef name, Type type) {
  SmallVector<Attribute> names(kernel.getArgNames().getValue());
  unsigned position = kernel.getNumArguments();
  (void)kernel.insertArgument(position, type, {}, kernel.getLoc());
  names.push_back(StringAttr::get(kernel.getContext(), name));
  kernel.setArgNamesAttr(ArrayAttr::get(kernel.getContext(), names));
  return kernel.getArgument(position);
}

/// How many threads a multiprocessor holds at once, of those that hold the
/// current chunk's result beside the next chunk's rows.
static int64_t countGroupedThreads(const MachineModel &machine,
                                   LayoutAttr layout) {
  int64_t registers = machine.groupBaseRegisters +
                      machine.groupElementRegisters * layout.getPacks() *
                          layout.getPack();
  return std::min(machine.threadsPerMultiprocessor,
                  machine.registersPerMultiprocessor /
                      std::min(machine.groupMostRegisters, registers));
}

/// A launch shares out among lane groups the iterations of the kernel's merge
/// loops, which all have the same bound, or the first one's. With fewer threads
/// than multiprocessors hold, memory runs out of loads; with more, the last
/// blocks run alone.
static GroupsGeometryAttr describeGroups(KernelOp kernel, ForallOp forall) {
  MergeLoopOp loop = *forall.getOps<MergeLoopOp>().begin();
  LayoutAttr layout = kernel.getLayoutAttr();
  return GroupsGeometryAttr::get(
      kernel.getContext(), describeExtents(forall.getExtents()),
      layout.getLanes(), layout.getThreads(), /*most=*/layout.getGroups(),
      /*chunk=*/loop.getStep(), LayoutAttr::kLeastGrouped,
      /*threadsPerSm=*/countGroupedThreads(getMachine(kernel), layout),
      /*pieces=*/describeExtent(loop.getUpper()));
}

/// A dense grid in which groups of lanes share the chunks of merge loops. The
/// lanes of a row never meet, so that the grid's lanes are numbered through,
/// whatever the block; a block has as many groups of the same lanes as fit
/// `group_threads`, a parameter of the launch's own, into its threads. All
/// threads of a block take part in the exchange of chunks: those past the last
/// row do the last row once more. The first group does what comes after.
static RowContext distributeGroups(KernelOp kernel, ForallOp forall) {
  OpBuilder b(forall);
  Location loc = forall.getLoc();
  IndexBuilder x(b, loc);
  LayoutAttr layout = kernel.getLayoutAttr();
  kernel.setGeometryAttr(describeGroups(kernel, forall));

  Type i32 = b.getI32Type();
  RowContext context;
  context.layout = layout;
  context.isGPU = true;
  context.groupThreads = addArgument(kernel, "group_threads", i32);
  // A power of two: shifts are a fraction of what divisions cost.
  Value last = x.sub(context.groupThreads, x.i32(1));
  Value shift = math::CtPopOp::create(b, loc, last);
  Value id = NVVM::ThreadIdXOp::create(b, loc, i32);
  context.group = arith::ShRUIOp::create(b, loc, id, shift);
  context.member = x.band(id, last);
  context.groups = arith::ShRUIOp::create(
      b, loc, NVVM::BlockDimXOp::create(b, loc, i32), shift);
  bool narrow = hasRowBound(kernel.getGuardsAttr());
  auto toRowType = [&](Value value) {
    return narrow ? value : x.toIndex(value);
  };
  Value block = NVVM::BlockIdXOp::create(b, loc, i32);
  Value thread = x.add(x.mul(toRowType(block), toRowType(context.groupThreads)),
                       toRowType(context.member));
  Value lanes =
      narrow ? x.i32(layout.getLanes()) : x.constant(layout.getLanes());
  Value row = x.div(thread, lanes), lane = x.rem(thread, lanes);
  context.lane = narrow ? x.toIndex(lane) : lane;

  SmallVector<Value> extents;
  Value total;
  for (Value extent : forall.getExtents()) {
    extents.push_back(narrow ? x.toI32(extent) : extent);
    total = total ? x.mul(total, extents.back()) : extents.back();
  }
  Value one = narrow ? x.i32(1) : x.constant(1);
  Value isStored =
      x.band(x.ult(row, total),
             x.compare(arith::CmpIPredicate::eq, context.group, x.i32(0)));
  row = arith::MinUIOp::create(b, loc, row, x.sub(total, one));
  SmallVector<Value> indices = x.delinearize(row, extents);
  if (narrow)
    for (Value &index : indices)
      index = x.toIndex(index);
  buildDependency(b, loc, kernel);

  context.row = b.getInsertionBlock();
  inlineRow(b, forall.getBody().front(), indices);
  // What follows the last merge loop is one group's.
  Operation *loop = forall->getPrevNode();
  while (!isa<MergeLoopOp>(loop))
    loop = loop->getPrevNode();
  b.setInsertionPointAfter(loop);
  auto store = scf::IfOp::create(b, loc, isStored, /*withElseRegion=*/false);
  Operation *end = store.thenBlock()->getTerminator();
  for (Operation *op = store->getNextNode(); op != forall;) {
    Operation *next = op->getNextNode();
    op->moveBefore(end);
    op = next;
  }
  forall.erase();
  return context;
}

static RowContext distributeForallGPU(KernelOp kernel, ForallOp forall) {
  OpBuilder b(forall);
  Location loc = forall.getLoc();
  IndexBuilder x(b, loc);
  LayoutAttr layout = kernel.getLayoutAttr();
  int64_t leastThreads = getLeastThreads(getMachine(kernel), layout);
  bool isAdaptable = leastThreads < layout.getThreads();
  kernel.setGeometryAttr(GridGeometryAttr::get(
      b.getContext(), describeExtents(forall.getExtents()), layout.getRows(),
      layout.getThreads(), std::min(leastThreads, layout.getThreads())));

  Thread thread = buildThread(b, loc, layout);
  bool narrow = hasRowBound(kernel.getGuardsAttr());
  auto toRowType = [&](Value value) {
    return narrow ? value : x.toIndex(value);
  };
  Value rowsPerBlock = x.i32(layout.getRows());
  if (isAdaptable) // the launch chooses
    rowsPerBlock = x.div(NVVM::BlockDimXOp::create(b, loc, b.getI32Type()),
                         x.i32(layout.getLanes()));
  rowsPerBlock = toRowType(rowsPerBlock);
  Value block = toRowType(interleaveHalves(
      b, forall, NVVM::BlockIdXOp::create(b, loc, b.getI32Type())));
  Value row = x.add(x.mul(block, rowsPerBlock), toRowType(thread.group));

  SmallVector<Value> extents;
  Value total;
  for (Value extent : forall.getExtents()) {
    extents.push_back(narrow ? x.toI32(extent) : extent);
    total = total ? x.mul(total, extents.back()) : extents.back();
  }
  SmallVector<Value> indices = x.delinearize(row, extents);
  if (narrow)
    for (Value &index : indices)
      index = x.toIndex(index);

  Value isRow;
  if (layout.getRows() > 1)
    isRow = x.ult(row, total);
  // All that needs no memory has been computed: it overlaps the grid before.
  buildDependency(b, loc, kernel);

  // Threads past the last row skip the body rather than leave: they still take
  // part in what a whole block does.
  if (isRow) {
    auto guard = scf::IfOp::create(b, loc, isRow, /*withElseRegion=*/false);
    b.setInsertionPoint(guard.thenBlock()->getTerminator());
  }
  thread.context.row = b.getInsertionBlock();
  inlineRow(b, forall.getBody().front(), indices);
  forall.erase();
  return thread.context;
}

//===----------------------------------------------------------------------===//
// CPU
//===----------------------------------------------------------------------===//

/// Appends the arguments `begin` and `end`, the range of rows a call has to do.
static std::pair<Value, Value> addRange(KernelOp kernel) {
  Type index = IndexType::get(kernel.getContext());
  Value begin = addArgument(kernel, "begin", index);
  return {begin, addArgument(kernel, "end", index)};
}

static RowContext distributeForallCPU(KernelOp kernel, ForallOp forall) {
  auto [begin, end] = addRange(kernel);
  OpBuilder b(forall);
  Location loc = forall.getLoc();
  IndexBuilder x(b, loc);
  int64_t batch = kernel.getLayoutAttr().getRows();
  kernel.setGeometryAttr(CpuGeometryAttr::get(
      b.getContext(), /*isRagged=*/false, describeExtents(forall.getExtents()),
      getBatchRows(forall, batch)));
  // Rows that make no whole batch are done one by one.
  Value first =
      batch > 1 ? buildRowBatches(b, kernel, forall, begin, end) : begin;
  buildLoop(b, loc, first, end, x.constant(1), [&](Value row) {
    inlineRow(b, forall.getBody().front(),
              x.delinearize(row, llvm::to_vector(forall.getExtents())));
  });
  forall.erase();
  RowContext context;
  context.layout = kernel.getLayoutAttr();
  return context;
}

FailureOr<RowContext> mlafix::distributeGrid(KernelOp kernel,
                                             StringRef target) {
  Operation *grid = kernel.getGrid();
  if (!grid)
    return kernel.emitError() << "expected a grid to distribute, got none";
  if (auto forall = dyn_cast<ForallOp>(grid)) {
    if (!isGPU(target))
      return distributeForallCPU(kernel, forall);
    return kernel.getLayoutAttr().isGrouped()
               ? distributeGroups(kernel, forall)
               : distributeForallGPU(kernel, forall);
  }
  auto ragged = cast<RaggedForallOp>(grid);
  if (isGPU(target))
    return distributeRaggedGPU(kernel, ragged);
  auto [begin, end] = addRange(kernel);
  return distributeRaggedCPU(kernel, ragged, begin, end);
}
