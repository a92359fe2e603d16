//===- PlanGrid.cpp - plans the launch of a code version's grid -----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Plan/PlanGrid.h"
#include "lib/Plan/ChooseLayout.h"
#include "lib/Plan/ResidentBlocks.h"
#include "lib/Plan/RowLoops.h"
#include "lib/Transforms/Grid/RaggedStores.h"
#include "lib/Transforms/Grid/RowOrder.h"
#include "lib/Transforms/Grid/RowsAhead.h"
#include "mlafix/UnitLimits.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlafix;

namespace {
/// Chooses the fields of one code version's plan.
class GridPlanner {
public:
  GridPlanner(KernelOp version, const MachineModel &machine)
      : version(version), machine(machine),
        layout(version.getPlanAttr().getLayout()),
        numbers(version.getPlanAttr().getNumbers()) {}

  FailureOr<PlanAttr> run(function_ref<void(MutableArrayRef<int64_t>)> adapt);

private:
  int64_t get(PlanField field) const {
    return numbers[static_cast<unsigned>(field)];
  }
  void set(PlanField field, int64_t value) {
    numbers[static_cast<unsigned>(field)] = value;
  }
  void planPacks(function_ref<void(MutableArrayRef<int64_t>)> adapt);
  void planDense(ForallOp forall);
  void planRowOrder(ForallOp forall);
  void planTables(ForallOp forall);
  void planRowsAhead(ForallOp forall);
  void planEarly();
  void planGroups(ForallOp forall);
  void planRagged(RaggedForallOp grid);
  bool mayPrefetchRowsAhead();
  LogicalResult check();
  LogicalResult checkBlock();

  KernelOp version;
  const MachineModel &machine;
  LayoutAttr layout;
  SmallVector<int64_t> numbers;
};
} // namespace

/// Returns the fewest threads with which a launch may start a block. Small
/// blocks let a few rows reach all multiprocessors. A block is halved while it
/// still holds whole warps and whole rows.
static int64_t getLeastThreads(const MachineModel &machine, LayoutAttr layout,
                               bool hasPlainRows) {
  int64_t least =
      hasPlainRows ? machine.leastPlainThreads : machine.leastLaunchThreads;
  int64_t threads = layout.getThreads();
  while (threads / 2 >= least && threads % (2 * limits::warpThreads) == 0 &&
         threads / 2 % layout.getLanes() == 0)
    threads /= 2;
  return threads;
}

/// True if an argument has floats of fewer than 32 bits.
static bool hasNarrowFloats(KernelOp version) {
  return llvm::any_of(version.getArgumentTypes(), [](Type type) {
    auto tensor = dyn_cast<MemRefType>(type);
    return tensor && isa<FloatType>(tensor.getElementType()) &&
           tensor.getElementTypeBitWidth() < 32;
  });
}

/// Plans in which order a lane processes its packs. `adapt` sets the fields
/// that a user gives. Of these, `row_loops` is needed already here, since other
/// fields follow from it.
void GridPlanner::planPacks(
    function_ref<void(MutableArrayRef<int64_t>)> adapt) {
  set(PlanField::RowLoops, chooseRowLoops(version, machine));
  SmallVector<int64_t> given(numbers);
  adapt(given);
  set(PlanField::RowLoops, given[static_cast<unsigned>(PlanField::RowLoops)]);
  if (get(PlanField::RowLoops)) {
    set(PlanField::KeptElements, machine.heldElements);
    set(PlanField::LoopElements, machine.loopElements);
  }
  set(PlanField::PacksInTurn, machine.narrowExtremes && machine.narrowWords &&
                                  hasNarrowFloats(version) &&
                                  layout.getPack() > 1 &&
                                  layout.getPacks() >= machine.inTurnPacks);
}

/// Plans the order of rows. If some rows may stay unchanged, interleaves the
/// halves of the grid, so that blocks without work run beside busy ones. A
/// kernel with an exchange keeps the order: the same block of each rank must
/// have the same rows, but the conditions that decide on interleaving at the
/// launch may differ between ranks.
void GridPlanner::planRowOrder(ForallOp forall) {
  set(PlanField::Interleaved,
      !getRowConditions(forall).empty() && !version.getExchange());
  set(PlanField::RowBundle,
      findTransposed(version, forall) ? machine.rowBundle : 1);
}

/// Decides if small tensors of scalars are prefetched. A single thread of a
/// block prefetches them, so more than mostEarlyTables would delay it.
void GridPlanner::planTables(ForallOp forall) {
  if (!machine.dependentLaunch || !machine.earlyTables ||
      version.isCollective())
    return;
  if (layout.isGrouped()) {
    // A group with a single chunk loads its lses as early as a prefetch would,
    // so a prefetch gains nothing.
    MergeLoopOp loop = *forall.getOps<MergeLoopOp>().begin();
    std::optional<int64_t> pieces = getConstantIntValue(loop.getUpper());
    if (pieces && *pieces <= static_cast<int64_t>(loop.getStep()))
      return;
  }
  int64_t tables = collectTables(version, forall).size();
  set(PlanField::EarlyTables, tables > 0 && tables <= machine.mostEarlyTables);
}

/// True if a block holds one row, several warps share and reduce this row, and
/// rows are in the order of their blocks.
bool GridPlanner::mayPrefetchRowsAhead() {
  auto forall = dyn_cast<ForallOp>(version.getGrid());
  return forall && !layout.isGrouped() &&
         layout.getLanes() > limits::warpThreads && layout.getRows() == 1 &&
         !version.isCollective() && getRowConditions(forall).empty() &&
         get(PlanField::RowBundle) == 1 && !get(PlanField::RowLoops) &&
         !forall.getOps<ReduceOp>().empty();
}

/// Plans how far ahead a block prefetches a row, as a number of blocks. Does
/// not plan it for rows that are too short or too long to gain.
void GridPlanner::planRowsAhead(ForallOp forall) {
  if (!mayPrefetchRowsAhead())
    return;
  // The number of blocks that share a multiprocessor and read their rows at the
  // same time.
  int64_t blocks =
      std::max<int64_t>(1, machine.registersPerMultiprocessor /
                               (machine.aheadRegisters * layout.getThreads()));
  int64_t bytes = findRowsOfGrid(version, forall).bytes;
  if (bytes < machine.aheadLeastBytes ||
      bytes * blocks > machine.aheadMostBytes)
    return;
  set(PlanField::RowsAhead,
      machine.aheadBlocks * (2 * bytes <= machine.aheadFarBytes ? 2 : 1));
}

/// Sets the fields of a dense grid in which each row has its own lanes.
void GridPlanner::planDense(ForallOp forall) {
  FailureOr<RowShape> shape = RowShape::of(version, machine);
  bool isPlain = succeeded(shape) && !shape->reduces() && !shape->converts();
  set(PlanField::PlainRows, isPlain);
  set(PlanField::LeastThreads, getLeastThreads(machine, layout, isPlain));
  // planRowOrder() calls findTransposed(), which reads PlainRows from the
  // plan attribute.
  version.setPlanAttr(
      version.getPlanAttr().with(PlanField::PlainRows, isPlain));
  planRowOrder(forall);
  planTables(forall);
  planRowsAhead(forall);
}

/// Returns the number of threads of lane groups for which a multiprocessor has
/// registers. Each thread holds the current chunk's result and the next chunk's
/// rows. A launch with fewer threads has too few loads in flight. In a launch
/// with more threads, the last blocks run alone.
static int64_t countGroupedThreads(const MachineModel &machine,
                                   LayoutAttr layout) {
  int64_t registers =
      machine.groupBaseRegisters +
      machine.groupElementRegisters * layout.getPacks() * layout.getPack();
  return std::min(machine.threadsPerMultiprocessor,
                  machine.registersPerMultiprocessor /
                      std::min(machine.groupMostRegisters, registers));
}

/// Sets the fields of a dense grid in which groups of lanes share a row.
void GridPlanner::planGroups(ForallOp forall) {
  set(PlanField::ThreadsPerMultiprocessor,
      countGroupedThreads(machine, layout));
  set(PlanField::ChunkAheadBytes, machine.chunkAheadBytes);
  set(PlanField::SingleChunk, true);
  set(PlanField::CollectedChunks, machine.collectedChunks);
  set(PlanField::AddedChunks, machine.addedChunks);
  set(PlanField::StreamedBytes,
      machine.streamedLoads ? machine.accessBytes : 0);
  planTables(forall);
}

/// Returns the number of segments whose predicates a thread evaluates at once
/// before the scan. If predicates have few ops, the loads of several predicates
/// then wait for memory together. Predicates of many ops are not bound by
/// memory, so they gain nothing.
static int64_t countSegmentsAhead(RaggedForallOp grid,
                                  const MachineModel &machine) {
  // Limits compile time on any machine: each segment has its own copy of the
  // predicate.
  constexpr int64_t kMostOps = 64;
  int64_t ops = 0;
  grid.getPredicate().walk([&](Operation *) { ++ops; });
  return std::clamp<int64_t>(kMostOps / ops, 1, machine.raggedAhead);
}

/// Sets the fields of a ragged grid. If rows are only stored, they are
/// scattered: all blocks together then write a small contiguous window of
/// memory. On an H200, a fill of 268 MB takes 60 us if a block writes 4 KB at a
/// time, and 64 us with 32 KB. If rows are loaded, blocks wait for memory. Such
/// a grid gets more blocks, which have more loads in flight.
void GridPlanner::planRagged(RaggedForallOp grid) {
  Block &body = grid.getBody().front();
  bool isAllScalars = storesScalarsAlone(body, findIndexStores(body));
  bool isOnlyStores = onlyStores(body);
  set(PlanField::Segments, machine.raggedSegments);
  set(PlanField::SegmentsAhead, countSegmentsAhead(grid, machine));
  set(PlanField::ScalarBundleRows, machine.raggedBundleRows);
  set(PlanField::ScatteredRows, isOnlyStores ? machine.raggedScatteredRows : 0);
  set(PlanField::PairsPerBlock,
      isAllScalars ? layout.getThreads() * machine.raggedScalars
                   : layout.getRows() * machine.raggedRows);
  bool isFew = isAllScalars || isOnlyStores;
  set(PlanField::RaggedBlocks,
      isFew ? machine.raggedBlocks : machine.raggedLoadBlocks);
  set(PlanField::RaggedBlocksFit, !isFew);
}

/// Plans the prefetches to issue while the preceding grid ends. If rows are
/// plain (neither reduced nor converted), each cache line is prefetched once.
void GridPlanner::planEarly() {
  if (!machine.dependentLaunch)
    return;
  set(PlanField::EarlyBytes, machine.earlyBytes);
  set(PlanField::EarlyThreads, machine.earlyThreads);
  set(PlanField::EarlyPackBytes, machine.earlyAccessBytes);
  set(PlanField::EarlyConditions, machine.earlyConditions);
  set(PlanField::EarlyFirstPacks, machine.earlyLongPacks);
  set(PlanField::EarlyLineBytes,
      get(PlanField::PlainRows) ? machine.earlyLineBytes : 0);
}

/// True if f32 rows are so short that caches should drop them first.
static bool streamsListedRows(LayoutAttr layout, const MachineModel &machine) {
  int64_t elements = layout.getLanes() * layout.getPacks() * layout.getPack();
  return elements * int64_t(sizeof(float)) <= machine.streamedRowBytes;
}

/// Fails if 'least_threads' cannot be reached by halving blocks, or is not a
/// number of whole warps and whole rows. Fails if a multiprocessor cannot hold
/// 'resident' blocks.
LogicalResult GridPlanner::checkBlock() {
  int64_t threads = layout.getThreads(), least = get(PlanField::LeastThreads),
          resident = get(PlanField::Resident);
  if (least < threads &&
      (!llvm::isPowerOf2_64(threads / std::max<int64_t>(1, least)) ||
       threads % least != 0 || least % limits::warpThreads != 0 ||
       least % layout.getLanes() != 0))
    return version.emitError()
           << "expected 'least_threads' to be the " << threads
           << " threads of a block divided by a power of two, and a multiple "
              "of "
           << limits::warpThreads << " and of the " << layout.getLanes()
           << " lanes of a row, got " << least;
  if (resident * threads > machine.threadsPerMultiprocessor)
    return version.emitError()
           << "expected 'resident' to be at most "
           << machine.threadsPerMultiprocessor / threads
           << ", since a multiprocessor holds "
           << machine.threadsPerMultiprocessor << " threads and a block has "
           << threads << ", got " << resident;
  return success();
}

/// Fails if a field has a value that the code version does not allow.
LogicalResult GridPlanner::check() {
  bool waits = get(PlanField::DependentLaunch);
  if (waits && !machine.dependentLaunch)
    return version.emitError() << "expected 'dependent_launch' to be no for a "
                                  "target that has no such launches, got yes";
  if (get(PlanField::EarlyTables) && (!waits || version.isCollective()))
    return version.emitError()
           << "expected 'early_tables' to be no in a grid without dependent "
              "launch, or whose ranks wait for each other, got yes";
  if (get(PlanField::Interleaved) && version.getExchange())
    return version.emitError() << "expected 'interleaved' to be no in a "
                                  "kernel with an exchange, got yes";
  if (int64_t ahead = get(PlanField::RowsAhead);
      ahead && !mayPrefetchRowsAhead())
    return version.emitError()
           << "expected 'rows_ahead' to be 0 unless each block reduces one row "
              "over several warps, in order, got "
           << ahead;
  if (get(PlanField::RowLoops) && !canLoopOverPacks(version))
    return version.emitError()
           << "expected 'row_loops' to be no unless a lane has several packs "
              "of a row, no scf.while carries rows, and no groups of lanes "
              "share merge loops, got yes";
  for (PlanField field : {PlanField::StripRows, PlanField::AheadBytes}) {
    const PlanFieldSpec &spec = getPlanFields()[static_cast<unsigned>(field)];
    if (get(field) != spec.initial)
      return version.emitError()
             << "expected '" << spec.name << "' to be " << spec.initial
             << " for a GPU, which has no batches of rows, got " << get(field);
  }
  if (int64_t added = get(PlanField::AddedChunks),
      collected = get(PlanField::CollectedChunks);
      collected > 0 && added % collected != 0)
    return version.emitError() << "expected 'added_chunks' to be a multiple of "
                                  "'collected_chunks', "
                               << collected << ", got " << added;
  if (int64_t rows = get(PlanField::ScalarBundleRows);
      rows > 0 && isa<RaggedForallOp>(version.getGrid()) &&
      layout.getThreads() % rows != 0)
    return version.emitError()
           << "expected 'scalar_bundle_rows' to divide the "
           << layout.getThreads() << " threads of a block, got " << rows;
  return checkBlock();
}

FailureOr<PlanAttr>
GridPlanner::run(function_ref<void(MutableArrayRef<int64_t>)> adapt) {
  planPacks(adapt);
  auto ragged = dyn_cast<RaggedForallOp>(version.getGrid());
  if (ragged)
    planRagged(ragged);
  else if (layout.isGrouped())
    planGroups(cast<ForallOp>(version.getGrid()));
  else
    planDense(cast<ForallOp>(version.getGrid()));
  planEarly();
  if (version.getExchange())
    set(PlanField::ExchangeLoads, machine.exchangeLoads);
  set(PlanField::StreamsListedRows, streamsListedRows(layout, machine));
  set(PlanField::Resident, planResident(version, layout, machine));
  set(PlanField::DependentLaunch, machine.dependentLaunch);
  adapt(numbers);
  if (failed(check()))
    return failure();
  PlanAttr plan = PlanAttr::getChecked([&] { return version.emitError(); },
                                       version.getContext(), layout,
                                       ArrayRef<int64_t>(numbers));
  if (!plan)
    return failure();
  return plan;
}

FailureOr<PlanAttr>
mlafix::planGrid(KernelOp version, const MachineModel &machine,
                 function_ref<void(MutableArrayRef<int64_t>)> adapt) {
  return GridPlanner(version, machine).run(adapt);
}
