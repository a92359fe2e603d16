//===- ChooseLayout.cpp - distributes rows over lanes ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Plan/ChooseLayout.h"
#include "lib/Analysis/Signature.h"
#include "lib/Transforms/Language/Iterations.h"
#include "lib/Transforms/Layout/LaneConflicts.h"
#include "lib/Transforms/Layout/LongRows.h"
#include "lib/Transforms/ThreadOps.h"
#include "mlafix/UnitLimits.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

void RowShape::addAccess(int64_t argument, DimAttr dim, int64_t bits) {
  auto width = [](DimAttr dim, int64_t bits) {
    return dim.getPack(MemoryAccess::kGroupBytes) * bits;
  };
  auto [known, isNew] = argDims.try_emplace(argument, dim);
  int64_t &size = elementBits[argument];
  if (!isNew && width(dim, bits) <= width(known->second, size))
    return;
  known->second = dim;
  size = bits;
}

/// Reports an error and returns true if `op` accesses a row with one element
/// per group, in a tensor where two elements share a byte.
static bool isHalfOfByte(Operation *op) {
  std::optional<MemoryAccess> access = getSingleAccess(op);
  if (!access || !access->isPerGroup() || !sharesByte(access->getElementType()))
    return false;
  auto kernel = op->getParentOfType<KernelOp>();
  op->emitError() << "expected a whole row or group of '"
                  << kernel.getArgName(access->getArgNumber()) << "', which is "
                  << getDTypeName(access->getElementType())
                  << " (two elements a byte), got a row of one element a group";
  return true;
}

/// Reports an error and returns true if `op` reads a row of unknown length into
/// another row.
static bool readsUnboundRow(Operation *op) {
  auto load = dyn_cast<LoadIntoOp>(op);
  if (!load)
    return false;
  DimAttr dim = load.getAccesses().front().getRowDim();
  if (!ShapedType::isDynamic(dim.getSize()))
    return false;
  op->emitError() << "expected a row of known size to read into another one, "
                     "got one along "
                  << dim.str() << ", which is not bound to a size";
  return true;
}

/// True if `op` is a loop of unknown trip count that carries rows.
static bool accumulatesRows(Operation *op) {
  auto loop = dyn_cast<scf::ForOp>(op);
  return loop && !loop.getStaticTripCount() &&
         llvm::any_of(loop.getResultTypes(), isRowTile);
}

/// Returns the grid index in which consecutive rows differ; null if the grid
/// has none.
static Value getLastIndex(KernelOp kernel) {
  Operation *grid = kernel.getGrid();
  if (!grid)
    return {};
  Block &body = grid->getRegion(0).front();
  return body.getNumArguments() ? Value(body.getArguments().back()) : Value();
}

bool mlafix::dependsOn(Value value, Value index, DenseMap<Value, bool> &known) {
  if (value == index)
    return true;
  auto [it, isNew] = known.try_emplace(value, false);
  if (!isNew)
    return it->second;
  auto onOperands = [&](Operation *op) {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return dependsOn(operand, index, known);
    });
  };
  bool depends = false;
  if (Operation *op = value.getDefiningOp())
    op->walk([&](Operation *inner) { depends |= onOperands(inner); });
  else if (Operation *loop = value.getParentBlock()->getParentOp();
           !isa<KernelOp, ForallOp, RaggedForallOp>(loop))
    depends = onOperands(loop);
  return known[value] = depends;
}

/// The largest count of countRepeats(), so that products do not overflow.
static constexpr int64_t kMostRepeats = 1 << 16;

/// Returns the number of iterations of `op`, which is 1 if `op` is no loop. A
/// loop of unknown trip count has `unknown` iterations before it is unrolled.
static int64_t assumeIterations(Operation *op, int64_t unknown) {
  if (auto merges = dyn_cast<MergeLoopOp>(op))
    return std::max<int64_t>(1, unknown / merges.getStep());
  auto loop = dyn_cast<scf::ForOp>(op);
  if (!loop)
    return isa<scf::WhileOp>(op) ? unknown : 1;
  if (std::optional<APInt> trips = loop.getStaticTripCount())
    return trips->getLimitedValue(kMostRepeats);
  APInt step;
  if (!matchPattern(loop.getStep(), m_ConstantInt(&step)) || step.isZero())
    return unknown;
  return std::max<int64_t>(1, unknown / step.getLimitedValue(kMostRepeats));
}

int64_t mlafix::countRepeats(Operation *op, Operation *grid, int64_t unknown) {
  int64_t repeats = 1;
  for (; op && op != grid; op = op->getParentOp())
    repeats = std::min(repeats * assumeIterations(op, unknown), kMostRepeats);
  return repeats;
}

/// Returns the access of `op` if it moves a row in packs; else nullopt.
static std::optional<MemoryAccess> getPackedAccess(Operation *op) {
  std::optional<MemoryAccess> access = getSingleAccess(op);
  if (!access || !access->isRow || access->isPerGroup())
    return std::nullopt;
  return access;
}

/// Computes RowShape::movedByBits.
static std::map<int64_t, int64_t> countMovedBits(KernelOp kernel,
                                                 int64_t unknown) {
  std::map<int64_t, int64_t> moved;
  Value last = getLastIndex(kernel);
  DenseMap<Value, bool> ofRow;
  kernel.walk([&](Operation *op) {
    std::optional<MemoryAccess> access = getPackedAccess(op);
    if (!access)
      return;
    if (access->isWrite || llvm::any_of(op->getOperands(), [&](Value value) {
          return dependsOn(value, last, ofRow);
        }))
      moved[access->getMovedBits()] +=
          access->getMovedBits() * countRepeats(op, kernel.getGrid(), unknown);
  });
  return moved;
}

int64_t RowShape::packedBits(int64_t percent) const {
  int64_t widest = 8, all = movedBits(), narrower = 0;
  if (!peers.empty()) {
    for (int64_t index : peers)
      widest = std::max(widest, elementBits.at(index));
    return widest;
  }
  if (all == 0)
    return 8 * this->widest();
  for (auto [bits, moved] : movedByBits) {
    if (100 * narrower <= percent * all)
      widest = bits;
    narrower += moved;
  }
  return std::max<int64_t>(8, widest);
}

/// True if lanes exchange values in `op`. A row then needs a power of two of
/// lanes.
static bool exchangesLanes(Operation *op) {
  auto reduce = dyn_cast<ReduceOp>(op);
  return reduce ? !reduce.getInLane() : isa<ArgReduceOp, TopKOp, SwapOp>(op);
}

/// True if `op` is f32 arithmetic on each element of a row.
static bool isOperation(Operation *op) {
  if (op->getNumResults() != 1 || !isRowTile(op->getResult(0).getType()) ||
      getTileDim(op->getResult(0).getType()).isPerGroup())
    return false;
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
         getElementTypeOrSelf(op->getResult(0)).isF32() &&
         !isa<arith::ExtFOp, arith::TruncFOp, arith::ConstantOp>(op);
}

/// True if `op` divides a row by a number with correct rounding. Division by an
/// f8E8M0FNU number does not count: it is a power of two, whose inverse is
/// exact.
static bool dividesByNumber(Operation *op) {
  auto division = dyn_cast<arith::DivFOp>(op);
  if (!division || !isOperation(op) ||
      division.getFastmath() != arith::FastMathFlags::none)
    return false;
  auto splat = division.getRhs().getDefiningOp<SplatOp>();
  if (!splat)
    return false;
  auto power = splat.getOperand().getDefiningOp<arith::ExtFOp>();
  return !power || !isa<Float8E8M0FNUType>(power.getIn().getType());
}

/// True if several ops use the row that `op` computes. Lanes keep such a row
/// while warps wait for each other.
static bool isKept(Operation *op) {
  if (op->getNumResults() != 1 || !isRowTile(op->getResult(0).getType()) ||
      isa<LoadOp, SplatOp, BroadcastOp, IotaOp, arith::ConstantOp>(op))
    return false;
  llvm::SmallPtrSet<Operation *, 2> users(op->user_begin(), op->user_end());
  return users.size() > 1;
}

/// Reports an error at `op`, which has a row along `dim`, unless the size of
/// `dim` is known and small enough.
static LogicalResult checkSize(Operation *op, DimAttr dim) {
  if (ShapedType::isDynamic(dim.getSize())) {
    std::string name = dim.str();
    // Skip the quote before the name.
    bool isLower = name.size() > 1 && llvm::isLower(name[1]);
    return op->emitError()
           << "expected a size for dim " << name
           << ", which is the length of a row, got no binding of it"
           << (isLower ? " (calls bind names that begin with an upper-case "
                         "letter; others need a bound, as \"n<=1024\" in "
                         "Python)"
                       : "");
  }
  if (dim.getSize() > kMaxRowElements)
    return op->emitError() << "expected rows of at most " << kMaxRowElements
                           << " elements, whose indices are i32, got "
                           << dim.getSize();
  return success();
}

/// True if `op` requires all lanes of a row to be in one block: it uses shared
/// memory, or it has a row along a product or with one element per group. The
/// elements of these rows are distributed over lanes in another way than those
/// of other rows.
static bool keepsToBlock(Operation *op) {
  auto isOther = [](Type type) {
    if (!isRowTile(type))
      return false;
    DimAttr dim = getTileDim(type);
    return dim.isPerGroup() || dim.isProduct();
  };
  return isa<ScanOp, SwapOp, MergeLoopOp, RaggedForallOp>(op) ||
         llvm::any_of(op->getOperandTypes(), isOther) ||
         llvm::any_of(op->getResultTypes(), isOther);
}

/// Adds to `work` the rows that a lane keeps during `loop`: those that the loop
/// carries or uses, and those of its block that are used after it.
static void addKeptRows(Operation *loop, LoopWork &work) {
  llvm::SetVector<Value> kept = getKeptValues(loop);
  Block *block = loop->getBlock();
  for (Operation &before :
       llvm::make_range(block->begin(), loop->getIterator()))
    for (OpResult row : before.getResults())
      if (llvm::any_of(row.getUsers(), [&](Operation *user) {
            return loop->isBeforeInBlock(block->findAncestorOpInBlock(*user));
          }))
        kept.insert(row);
  for (Value row : kept) {
    Operation *op = row.getDefiningOp();
    if (isRowTile(row.getType()) && !(op && isUniform(op)))
      work.heldBits +=
          getElementTypeOrSelf(row.getType()).getIntOrFloatBitWidth();
  }
}

/// True if `op` takes many registers for a moment: it calls a function, or
/// divides by what is not a constant.
static bool isFunction(Operation *op) {
  if (auto division = dyn_cast<arith::DivFOp>(op))
    return !matchPattern(division.getRhs(), m_Constant());
  return isa<math::MathDialect>(op->getDialect()) &&
         !isa<math::Exp2Op, math::FmaOp, math::AbsFOp>(op);
}

SmallVector<LoopWork> mlafix::getLoopWork(KernelOp kernel) {
  llvm::MapVector<Operation *, LoopWork> loops;
  kernel.walk([&](Operation *op) {
    auto loop = op->getParentOfType<LoopLikeOpInterface>();
    if (!loop)
      return;
    LoopWork &work = loops[loop];
    if (std::optional<MemoryAccess> access = getPackedAccess(op);
        access && !access->isWrite) {
      int64_t bits = access->getMovedBits();
      work.loadedBits += bits * access->getRowDim().getSize();
      work.heldBits += bits;
      work.narrowest = std::min(work.narrowest, bits);
    }
    auto reduce = dyn_cast<ReduceOp>(op);
    if (reduce || isOperation(op))
      work.operations += getTileDim(reduce ? reduce.getSource().getType()
                                           : op->getResult(0).getType())
                             .getSize();
    work.reduces |= exchangesLanes(op);
    work.functions += isFunction(op);
  });
  SmallVector<LoopWork> found;
  llvm::SmallDenseSet<Location> locations;
  for (auto &[loop, work] : loops) {
    if (work.loadedBits == 0)
      continue;
    work.loop = loop;
    work.isRest = !locations.insert(loop->getLoc()).second;
    addKeptRows(loop, work);
    found.push_back(work);
  }
  return found;
}

LayoutAttr mlafix::getSharedLayout(KernelOp version,
                                   const MachineModel &machine) {
  constexpr int64_t kNarrowestTimed = 16;
  LayoutAttr layout = version.getPlanAttr().getLayout();
  int64_t lanes = layout.getLanes() / 2, pack = layout.getPack();
  if (layout.isGrouped() || layout.getLanes() > limits::warpThreads ||
      layout.getLanes() % 2 != 0 || layout.getPacks() != 1)
    return {};
  bool isBusy = false;
  for (const LoopWork &work : getLoopWork(version)) {
    // Other loops are given fewer registers (planResident).
    auto loop = dyn_cast<scf::ForOp>(work.loop);
    if (!loop || loop->getParentOp() != version.getGrid() ||
        !reducesRowsInFlight(loop))
      return {};
    if (2 * pack * work.heldBits > 32 * machine.sharedRegisters ||
        work.functions > 0 || work.narrowest < kNarrowestTimed ||
        lanes * pack * work.narrowest < 8 * machine.sectorBytes)
      return {};
    isBusy |= !work.isRest &&
              8 * work.operations > machine.sharedOperations * work.loadedBits;
  }
  return isBusy ? LayoutAttr::get(layout.getContext(), lanes, /*packs=*/2, pack,
                                  2 * layout.getRows(), /*groups=*/1)
                : LayoutAttr();
}

FailureOr<RowShape> RowShape::of(KernelOp kernel, const MachineModel &machine) {
  RowShape shape;
  shape.staysInBlock = kernel.isCollective();
  shape.exchanges = bool(kernel.getExchange());
  shape.movedByBits = countMovedBits(kernel, machine.assumedIterations);
  WalkResult walk = kernel.walk([&](Operation *op) {
    if (isa<RaggedForallOp>(op))
      shape.isRagged = true;
    shape.reductions += exchangesLanes(op);
    shape.staysInBlock |= keepsToBlock(op);
    shape.operations += isOperation(op);
    shape.divides |= dividesByNumber(op);
    shape.keeps |= isKept(op);
    shape.accumulates |= accumulatesRows(op);
    for (Type type : llvm::concat<const Type>(op->getOperandTypes(),
                                              op->getResultTypes())) {
      if (!isRowTile(type))
        continue;
      if (failed(checkSize(op, getTileDim(type))))
        return WalkResult::interrupt();
      if (getTileDim(type).isPerGroup())
        continue;
      shape.dims.insert(getTileDim(type));
      Type element = getElementTypeOrSelf(type);
      shape.isWide |=
          element.isIntOrFloat() && element.getIntOrFloatBitWidth() > 32;
    }
    if (isHalfOfByte(op) || readsUnboundRow(op))
      return WalkResult::interrupt();
    if (std::optional<MemoryAccess> access = getPackedAccess(op)) {
      unsigned argument = access->getArgNumber();
      shape.addAccess(argument, access->getRowDim(), access->getMovedBits());
      (access->isShifted ? shape.shifted
       : access->isWrite ? shape.stored
                         : shape.loaded)
          .insert(argument);
      if (kernel.isArgPeers(argument))
        shape.peers.insert(argument);
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  shape.shifted.remove_if([&](int64_t argument) {
    return shape.loaded.contains(argument) || shape.stored.contains(argument);
  });
  kernel.getBody().walk([&](Block *block) {
    // The tensors, loaded or stored, of which an access to a member has been
    // counted. It moves all members, so accesses to the others do not count.
    llvm::SmallDenseSet<std::pair<Value, int>> ofMembers;
    int64_t moves = llvm::count_if(*block, [&](Operation &op) {
      std::optional<MemoryAccess> access = getPackedAccess(&op);
      return access && !access->isShifted &&
             (!access->getMovedMember() ||
              ofMembers.insert({access->memref, int(access->isWrite)}).second);
    });
    shape.moves = std::max(shape.moves, moves);
  });
  return shape;
}

int64_t mlafix::choosePack(const RowShape &shape, int64_t limit) {
  limit = std::max(limit, shape.leastPack());
  int64_t pack = 1;
  for (DimAttr dim : shape.dims)
    pack = std::max(pack, dim.getPack(limit));
  return pack;
}

int64_t mlafix::countPacks(const RowShape &shape, int64_t pack) {
  int64_t most = 1;
  for (DimAttr dim : shape.dims)
    most = std::max(most, dim.getPacks(pack));
  return most;
}

KernelOp mlafix::cloneCodeVersion(KernelOp kernel, StringRef suffix,
                                  PlanAttr plan, ArrayRef<Attribute> guards) {
  OpBuilder b(kernel);
  auto clone = cast<KernelOp>(b.clone(*kernel));
  clone.setSymName((kernel.getSymName() + "_" + suffix).str());
  clone.setPlanAttr(plan);
  SmallVector<Attribute> all(guards);
  if (ArrayAttr given = kernel.getGuardsAttr())
    llvm::append_range(all, given);
  clone.setGuardsAttr(b.getArrayAttr(all));
  return clone;
}

/// True if each lane should hold halfBytePacks packs: two elements of a row
/// share a byte, and rows are long enough.
static bool holdsHalfBytes(const MachineModel &machine, const RowShape &shape,
                           int64_t pack) {
  return shape.leastPack() > 1 &&
         countPacks(shape, pack) >= machine.halfByteRowPacks;
}

SharedWork mlafix::getSharedWork(const MachineModel &machine,
                                 const RowShape &shape, int64_t pack) {
  if (shape.reduces())
    return SharedWork::Reductions;
  if (shape.divides && shape.narrowestStored() >= 16 &&
      pack < machine.sharedDivisions &&
      pack * machine.sharedPacks >= machine.sharedDivisions)
    return SharedWork::Divisions;
  return shape.converts() &&
                 pack * shape.movedBits() < 8 * machine.convertedBytes
             ? SharedWork::Conversions
             : SharedWork::None;
}

/// Returns the least number of packs of each row that a lane should hold.
static int64_t getFewestPacks(const MachineModel &machine,
                              const RowShape &shape, int64_t pack,
                              AliasMode aliasMode) {
  if (shape.exchanges)
    return machine.exchangePacks;
  if (holdsHalfBytes(machine, shape, pack))
    return machine.halfBytePacks;
  bool hasSharedWork = getSharedWork(machine, shape, pack) != SharedWork::None;
  int64_t wanted = aliasMode == AliasMode::InPlace ? machine.inPlacePacks
                   : hasSharedWork                 ? machine.sharedPacks
                   : shape.accumulates             ? machine.mergedPacks
                                                   : 1;
  auto areHeld = [&](int64_t packs) {
    int64_t accesses = shape.moves * packs;
    return accesses <= machine.heldAccesses &&
           accesses * pack * shape.widest() <= machine.heldBytes;
  };
  bool isBusy = shape.reduces() && aliasMode != AliasMode::InPlace &&
                shape.operations >= machine.busyOperations &&
                countPacks(shape, pack) >= machine.busyRowPacks;
  if (isBusy && areHeld(machine.busyPacks))
    return machine.busyPacks;
  return areHeld(wanted) ? wanted : 1;
}

static BlockRule getBlockRule(const MachineModel &machine,
                              const RowShape &shape, int64_t pack,
                              AliasMode aliasMode) {
  if (shape.isRagged)
    return BlockRule::Ragged;
  if (shape.dims.empty())
    return BlockRule::NoRows;
  if (shape.exchanges)
    return BlockRule::Exchange;
  if (holdsHalfBytes(machine, shape, pack))
    return BlockRule::HalfBytes;
  return aliasMode == AliasMode::InPlace &&
                 getFewestPacks(machine, shape, pack, aliasMode) > 1
             ? BlockRule::InPlace
             : BlockRule::Bytes;
}

/// Returns the number of threads in a block that `rule` prescribes.
static int64_t chooseBlock(const MachineModel &machine, const RowShape &shape,
                           int64_t pack, BlockRule rule) {
  int64_t bytes = std::max<int64_t>(1, shape.moves * pack * shape.widest());
  switch (rule) {
  case BlockRule::Ragged:
    return machine.raggedBlockThreads;
  case BlockRule::NoRows:
    return machine.minBlockThreads;
  case BlockRule::Exchange:
    return shape.reduces() ? machine.reducedExchangeBlockThreads
                           : machine.exchangeBlockThreads;
  case BlockRule::HalfBytes:
    return machine.halfByteBlockThreads;
  case BlockRule::InPlace:
    return machine.inPlaceBlockThreads;
  case BlockRule::Bytes:
    return std::clamp<int64_t>(
        llvm::bit_floor<uint64_t>(machine.blockBytes / bytes),
        machine.minBlockThreads, machine.maxBlockThreads);
  }
  llvm_unreachable("all rules are handled");
}

/// True if the launch decides the length of a row, so that each of a lane's
/// packs has a predicate.
static bool isBounded(const RowShape &shape) {
  return llvm::any_of(shape.dims, [](DimAttr dim) { return dim.isBounded(); });
}

/// True if a lane holds two elements of a row per register: they have at most
/// 16 bits, and are widened again for each reduction. The predicates of a
/// bounded row take registers too. So one block never holds such a row in this
/// way, since it would spill, and a cluster only with up to two reductions.
static bool isPacked(const RowShape &shape, bool inCluster) {
  return shape.stored.empty() && shape.moves == 1 && shape.widest() <= 2 &&
         !shape.keeps &&
         (!isBounded(shape) || (inCluster && shape.reductions <= 2));
}

/// Returns the most elements of a row per lane if two blocks of half the
/// maximal threads share a multiprocessor's registers, or if a cluster holds
/// the row. Elements that take two registers allow half as many.
static int64_t getMostElements(const MachineModel &machine,
                               const RowShape &shape, bool inCluster) {
  int64_t most = isPacked(shape, inCluster) ? 2 * machine.sharedElements
                 : inCluster                ? machine.clusterElements
                                            : machine.sharedElements;
  return most / (shape.isWide ? 2 : 1);
}

/// Returns the elements per lane if `lanes` lanes hold a row of `needed` packs.
static int64_t countElements(int64_t needed, int64_t lanes, int64_t pack) {
  return static_cast<int64_t>(llvm::divideCeil(needed, lanes)) * pack;
}

/// Returns the most lanes for a row that exceeds a warp. For a row that is
/// reduced and not too long, this is half of a block's maximal threads. Two
/// such blocks share a multiprocessor's registers, so that one computes while
/// the other loads its row. In a ragged grid all blocks stay resident, so they
/// may be larger.
static int64_t getMostLanes(const MachineModel &machine, const RowShape &shape,
                            int64_t needed, int64_t pack) {
  int64_t half = machine.threadsPerBlock / 2;
  bool isShort = countElements(needed, half, pack) <=
                 getMostElements(machine, shape, /*inCluster=*/false);
  return shape.reduces() && !shape.isRagged && pack > 1 && isShort
             ? half
             : machine.threadsPerBlock;
}

/// Returns fewer than `lanes` lanes for a row that exceeds a warp, if that
/// costs less. Fewer lanes exchange less, repeat less work, and leave fewer
/// lanes without a pack. Rows that are reduced only once keep more lanes, so
/// that a lane holds at most reducedBytes of a row.
static int64_t chooseFewerLanes(const MachineModel &machine,
                                const RowShape &shape, int64_t needed,
                                int64_t pack, int64_t lanes) {
  if (!shape.reduces() || shape.isRagged || shape.exchanges || pack == 1)
    return lanes;
  auto rows = std::max<int64_t>(2, shape.loaded.size());
  int64_t slots = countElements(needed, lanes, pack) * lanes;
  for (int64_t fewer = lanes / 2; fewer > limits::warpThreads; fewer /= 2) {
    int64_t elements = countElements(needed, fewer, pack);
    if (elements * rows > 2 * machine.sharedElements ||
        (shape.reductions == 1 &&
         elements * shape.widest() > machine.reducedBytes))
      break;
    if (elements * fewer <= slots) {
      lanes = fewer;
      slots = elements * fewer;
    }
  }
  return lanes;
}

/// Returns the layout of a row of `needed` packs over a cluster, with the
/// fewest threads that can hold the row. Returns null if one block suffices, if
/// such a row cannot be in several blocks, or if no cluster is large enough.
static LayoutAttr chooseCluster(MLIRContext *context,
                                const MachineModel &machine,
                                const RowShape &shape, int64_t needed,
                                int64_t pack) {
  constexpr int64_t kFewestOf = 4; // a quarter of a block's maximal threads
  int64_t blocks = machine.clusterBlocks, threads = machine.threadsPerBlock;
  if (blocks < 2 || !shape.reduces() || shape.staysInBlock || shape.exchanges ||
      pack == 1 ||
      countElements(needed, threads, pack) <=
          getMostElements(machine, shape, /*inCluster=*/false))
    return {};
  int64_t most = getMostElements(machine, shape, /*inCluster=*/true);
  for (int64_t part = kFewestOf; part >= 1; part /= 2)
    if (int64_t lanes = blocks * threads / part;
        countElements(needed, lanes, pack) <= most)
      return LayoutAttr::get(context, lanes, llvm::divideCeil(needed, lanes),
                             pack, /*rows=*/1, /*groups=*/1, blocks,
                             /*parts=*/1);
  return {};
}

int64_t mlafix::getMostInBlock(MLIRContext *context,
                               const MachineModel &machine,
                               const RowShape &shape, int64_t needed,
                               int64_t pack) {
  return chooseCluster(context, machine, shape, needed, pack)
             ? machine.threadsPerBlock *
                   getMostElements(machine, shape, /*inCluster=*/false)
             : 0;
}

PlanAttr mlafix::chooseParts(MLIRContext *context, const MachineModel &machine,
                             const RowShape &shape, int64_t pack) {
  int64_t needed = countPacks(shape, pack);
  if (needed <= 2 * machine.threadsPerBlock)
    return {};
  int64_t threads = chooseBlock(machine, shape, pack, BlockRule::Bytes);
  int64_t most = std::max<int64_t>(1, machine.heldAccesses /
                                          std::max<int64_t>(1, shape.moves));
  int64_t packs = std::clamp<int64_t>(
      llvm::divideCeil(
          8 * machine.blockBytes,
          std::max<int64_t>(1, threads * pack * shape.movedBits())),
      1, most);
  int64_t parts = llvm::divideCeil(needed, threads * packs);
  return PlanAttr::get(LayoutAttr::get(context, threads, packs, pack,
                                       /*rows=*/1, /*groups=*/1, /*blocks=*/1,
                                       parts));
}

static LayoutAttr chooseLayoutForBlock(MLIRContext *context,
                                       const MachineModel &machine,
                                       const RowShape &shape, int64_t pack,
                                       AliasMode aliasMode, int64_t threads,
                                       bool lanesSynchronise) {
  int64_t needed = countPacks(shape, pack);
  int64_t sector =
      std::max<int64_t>(1, machine.sectorBytes / (pack * shape.widest()));
  int64_t lanes = 0, packs = 0, slots = 0;
  int64_t fewest = getFewestPacks(machine, shape, pack, aliasMode);
  if (aliasMode == AliasMode::OutOfPlace && !lanesSynchronise &&
      !shape.isRagged && needed <= limits::warpThreads) {
    bool holdsMore = getSharedWork(machine, shape, pack) != SharedWork::None &&
                     needed % fewest == 0 && needed / fewest >= sector;
    packs = holdsMore ? fewest : 1;
    lanes = needed / packs;
    int64_t rows = 1; // enough to fill whole warps and `threads` threads
    while (rows * lanes % limits::warpThreads != 0 || rows * lanes < threads)
      ++rows;
    return LayoutAttr::get(context, lanes, packs, pack, rows, /*groups=*/1);
  }
  for (int64_t p = 1; p <= machine.packsPerLane; ++p) {
    int64_t l = llvm::PowerOf2Ceil(llvm::divideCeil(needed, p));
    if (l > limits::warpThreads || (p > 1 && l < sector))
      continue;
    if (!slots || packs < fewest || l * p < slots) {
      lanes = l;
      packs = p;
      slots = l * p;
    }
  }
  if (!slots) { // row exceeds a warp
    if (LayoutAttr cluster =
            chooseCluster(context, machine, shape, needed, pack))
      return cluster;
    lanes = std::min<int64_t>(getMostLanes(machine, shape, needed, pack),
                              llvm::PowerOf2Ceil(llvm::divideCeil(needed, 2)));
    lanes = chooseFewerLanes(machine, shape, needed, pack, lanes);
    packs = llvm::divideCeil(needed, lanes);
  }
  int64_t rows = lanes > limits::warpThreads ? 1 : threads / lanes;
  return LayoutAttr::get(context, lanes, packs, pack, rows, /*groups=*/1);
}

PlanAttr mlafix::chooseLayout(MLIRContext *context, const MachineModel &machine,
                              const RowShape &shape, int64_t pack,
                              AliasMode aliasMode, bool lanesSynchronise) {
  BlockRule rule = getBlockRule(machine, shape, pack, aliasMode);
  int64_t threads = chooseBlock(machine, shape, pack, rule);
  LayoutAttr layout = chooseLayoutForBlock(
      context, machine, shape, pack, aliasMode, threads, lanesSynchronise);
  return PlanAttr::get(layout).with(PlanField::Block,
                                    static_cast<int64_t>(rule));
}

PlanAttr mlafix::getGroupedLayout(MLIRContext *context,
                                  const MachineModel &machine,
                                  const RowShape &shape, int64_t pack,
                                  int64_t loops) {
  int64_t needed = countPacks(shape, pack);
  int64_t packs = std::clamp<int64_t>(needed / machine.groupedLanes, 1,
                                      machine.groupedPacks);
  int64_t groups = machine.mostGroups;
  auto layout = [&] {
    return LayoutAttr::get(context, llvm::divideCeil(needed, packs), packs,
                           pack, /*rows=*/1, groups);
  };
  auto fits = [&] {
    // Floats in shared memory per thread: the largest maximum of the row, and
    // the maximum, the sum and the elements of the thread's chunk.
    int64_t floats = 1 + 2 + packs * pack;
    return loops * floats * 4 * layout().getThreads() <= kSharedBytes;
  };
  if (!fits())
    packs = 1;
  while (groups > 2 && !fits())
    groups /= 2;
  return PlanAttr::get(layout());
}
