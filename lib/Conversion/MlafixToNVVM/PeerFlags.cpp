//===- PeerFlags.cpp - synchronises the ranks of a group ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/MlafixToNVVM/PeerFlags.h"

#include "dialect/Plan.h"
#include "lib/Conversion/Params.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/Speculation.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"
#include "mlafix/GroupLayout.h"
#include "mlafix/UnitLimits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlafix;
using LLVM::AtomicOrdering;

namespace {
/// The device-wide scope in NVPTX's spelling.
constexpr StringLiteral kDevice = "device";

/// Builds the synchronisation of ranks at the place of one op.
class PeerFlags {
public:
  PeerFlags(Operation *op, Value group, Type layout)
      : b(op), loc(op->getLoc()), x(b, loc), group(group), layout(layout),
        pointer(LLVM::LLVMPointerType::get(b.getContext(), kGlobalMemory)) {
    rank = field(kRank, b.getI32Type());
    ranks = field(kRanks, b.getI32Type());
    own = workspace(rank);
    thread = buildThreadId(b, loc);
  }

  Value wait();
  Value release(Value arrived);
  /// The results of `mlafix_thread.begin_exchange`.
  struct Begin {
    Value last; ///< number of the last collective (i64)
    Value turn; ///< half of the memory to use: `last` modulo 2 (index)
    Value sends;
  };
  Begin beginExchange();
  Value endExchange(Value last, Value sends);

private:
  /// The fields of the launch's group parameter, in order.
  enum Field { kRank, kRanks, kTimeout, kFailure, kWorkspaces };

  Value i64(int64_t value) {
    return arith::ConstantIntOp::create(b, loc, value, 64);
  }
  Value negate(Value p) {
    return arith::XOrIOp::create(b, loc, p,
                                 arith::ConstantIntOp::create(b, loc, true, 1));
  }
  Value toI64(Value i32) {
    return arith::ExtUIOp::create(b, loc, b.getI64Type(), i32);
  }
  /// Returns true (i1) if `p` holds in all threads of the block.
  Value holdsInBlock(Value p) {
    Value bits = arith::ExtUIOp::create(b, loc, b.getI32Type(), p);
    Value all = buildBarrierAnd(b, loc, bits);
    return x.compare(arith::CmpIPredicate::ne, all, x.i32(0));
  }

  Value field(Field index, Type type);
  Value workspace(Value ofRank);
  Value buildFirstSlot();
  Value at(Value workspace, int64_t offset, Value ofRank = {});
  Value load(Value address, AtomicOrdering ordering, StringRef scope = {});
  void store(Value value, Value address, AtomicOrdering ordering,
             StringRef scope = {});
  Value hasNotFailed();
  void tell(int64_t flags, Value epoch, Value first, Value step,
            AtomicOrdering ordering);
  Value waitForAll(int64_t flags, Value epoch, Value first, Value step,
                   Value failed);
  Value poll(Value flag, Value epoch);
  Value waitFor(Value flag, Value epoch);
  void reportFailure();
  Value countBlock();
  void finish(Value epoch, Value arrived);
  void countLaunch(Value epoch);
  void forEachRank(Value first, Value step, function_ref<void(Value)> build);
  void branch(Value condition, function_ref<void()> build);

  OpBuilder b;
  Location loc;
  IndexBuilder x;
  Value group;
  Type layout;
  Type pointer;
  Value rank, ranks;
  Value own; ///< this rank's workspace
  Value thread;
};
} // namespace

//===----------------------------------------------------------------------===//
// Exchanges
//
// Each block tells the block with the same number in every rank that its stores
// to that rank are complete. It then waits until these blocks have told it the
// same. No block waits until other ranks have read what it stored. Epochs
// number the launches of the group. In epoch e, a rank q stores to half
// (e - 1) % 2 (`turn`) of its part of rank p's memory. After p's waits, p reads
// that half. q does not overwrite a half that p still reads:
//
// 1. q stores in epoch e + 2 only if q's preceding epoch in the stream, e + 1,
//    is complete without a failure. If a block of q waits for a rank in vain or
//    finds a failure, the block writes the failure's code to q's workspace
//    before the grid is complete. `sends` is false from then on.
// 2. When q's epoch e + 1 is complete, every block of q has seen p's flags of
//    epoch e + 1; q has at least one block. p's blocks of epoch e + 1 run only
//    after p's epoch e, with all its reads, is complete. So p no longer reads
//    half (e - 1) % 2.
// 3. The stores of q in epoch e + 1 go to the other half.
//
// A block that sends sets its flags to e after its stores of epoch e. A block
// that does not send sets no flags. A flag is set to e + 1 only after the grid
// of epoch e is complete. So a block whose waits for epoch e have succeeded
// reads the data of epoch e, and need not look for failures again. A collective
// that pulls has an epoch like any other launch. Its flags in `arrived` also
// say that the preceding launch is complete.
//
//===----------------------------------------------------------------------===//

PeerFlags::Begin PeerFlags::beginExchange() {
  Value last = load(at(own, group::epoch), AtomicOrdering::monotonic, kDevice);
  Value sends = hasNotFailed();
  Value turn = x.band(last, i64(1));
  return {last, arith::IndexCastOp::create(b, loc, b.getIndexType(), turn),
          sends};
}

/// Counts the blocks whose threads have all loaded the epoch. The last block
/// increments the epoch for the next launch. No thread of this launch waits for
/// the new epoch, since only the next launch reads it.
void PeerFlags::countLaunch(Value epoch) {
  LLVM::FenceOp::create(b, loc, AtomicOrdering::acq_rel, kDevice);
  Value before = LLVM::AtomicRMWOp::create(b, loc, LLVM::AtomicBinOp::add,
                                           at(own, group::blocks), i64(1),
                                           AtomicOrdering::monotonic, kDevice);
  Value count = toI64(buildGridSize(b, loc));
  Value isLast =
      x.compare(arith::CmpIPredicate::eq, x.add(before, i64(1)), count);
  branch(isLast, [&] {
    store(i64(0), at(own, group::blocks), AtomicOrdering::monotonic, kDevice);
    store(epoch, at(own, group::epoch), AtomicOrdering::monotonic, kDevice);
  });
}

Value PeerFlags::endExchange(Value last, Value sends) {
  Value step = buildBlockSize(b, loc);
  Value epoch = x.add(last, i64(1));
  // The barrier puts the stores of all threads before the flags.
  Value sent = holdsInBlock(sends);
  branch(sent, [&] {
    tell(group::slots, epoch, thread, step, AtomicOrdering::release);
  });
  // Let the last thread count the launch. It waits for no rank if the block has
  // more threads than there are ranks.
  Value counts =
      x.compare(arith::CmpIPredicate::eq, x.add(thread, x.i32(1)), step);
  branch(counts, [&] { countLaunch(epoch); });
  Value first = x.select(sent, thread, ranks);
  Value failed = x.select(sent, i64(0), i64(1));
  Value came = waitForAll(group::slots, epoch, first, step, failed);
  return holdsInBlock(came);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value PeerFlags::field(Field index, Type type) {
  Value address =
      LLVM::GEPOp::create(b, loc, group.getType(), layout, group,
                          ArrayRef<LLVM::GEPArg>{0, int32_t(index)});
  return LLVM::LoadOp::create(b, loc, type, address, /*alignment=*/4,
                              /*isVolatile=*/false, /*isNonTemporal=*/false,
                              /*isInvariant=*/true);
}

Value PeerFlags::workspace(Value ofRank) {
  Value address =
      LLVM::GEPOp::create(b, loc, group.getType(), layout, group,
                          ArrayRef<LLVM::GEPArg>{0, kWorkspaces, ofRank});
  return LLVM::LoadOp::create(b, loc, pointer, address, /*alignment=*/8,
                              /*isVolatile=*/false, /*isNonTemporal=*/false,
                              /*isInvariant=*/true);
}

/// Returns the index of this block's first flag among the flags of all blocks.
Value PeerFlags::buildFirstSlot() {
  Value block = toI64(buildBlockId(b, loc));
  Value count = toI64(ranks);
  return x.mul(block, count);
}

/// Returns the address of the u64 at `offset` in `workspace`. If `ofRank` is
/// given, `offset` is where flags begin, and the address is that of the flag of
/// rank `ofRank`.
Value PeerFlags::at(Value workspace, int64_t offset, Value ofRank) {
  Value index = i64(offset / 8);
  if (offset == group::slots)
    index = x.add(index, buildFirstSlot());
  if (ofRank)
    index = x.add(index, toI64(ofRank));
  return LLVM::GEPOp::create(b, loc, pointer, b.getI64Type(), workspace, index);
}

Value PeerFlags::load(Value address, AtomicOrdering ordering, StringRef scope) {
  return LLVM::LoadOp::create(b, loc, b.getI64Type(), address, /*alignment=*/8,
                              /*isVolatile=*/false, /*isNonTemporal=*/false,
                              /*isInvariant=*/false, /*isInvariantGroup=*/false,
                              ordering, scope);
}

void PeerFlags::store(Value value, Value address, AtomicOrdering ordering,
                      StringRef scope) {
  LLVM::StoreOp::create(b, loc, value, address, /*alignment=*/8,
                        /*isVolatile=*/false, /*isNonTemporal=*/false,
                        /*isInvariantGroup=*/false, ordering, scope);
}

Value PeerFlags::hasNotFailed() {
  Value failed = load(at(own, group::failed), AtomicOrdering::monotonic);
  return x.compare(arith::CmpIPredicate::eq, failed, i64(0));
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void PeerFlags::branch(Value condition, function_ref<void()> build) {
  auto op = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op.thenBlock()->getTerminator());
  build();
}

void PeerFlags::forEachRank(Value first, Value step,
                            function_ref<void(Value)> build) {
  auto loop = scf::ForOp::create(b, loc, first, ranks, step);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(loop.getBody()->getTerminator());
  build(loop.getInductionVar());
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

/// Announces to the ranks `first`, `first + step`, … that this rank is at
/// `epoch`. With release ordering, or after a fence, a rank that reads the flag
/// also sees earlier stores of this rank.
void PeerFlags::tell(int64_t flags, Value epoch, Value first, Value step,
                     AtomicOrdering ordering) {
  forEachRank(first, step, [&](Value other) {
    store(epoch, at(workspace(other), flags, rank), ordering);
  });
}

/// Tells all ranks and the host which rank did not arrive. A rank that knows of
/// the failure stops waiting, and may then overwrite memory that other ranks
/// still read. So the other ranks must know of the failure by then.
void PeerFlags::reportFailure() {
  Value code = load(at(own, group::failed), AtomicOrdering::monotonic);
  forEachRank(x.i32(0), x.i32(1), [&](Value other) {
    store(code, at(workspace(other), group::failed), AtomicOrdering::monotonic);
  });
  Value address = field(kFailure, pointer);
  Value isGiven = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ne, address,
                                       LLVM::ZeroOp::create(b, loc, pointer));
  branch(isGiven, [&] { store(code, address, AtomicOrdering::release); });
}

/// Polls `flag` a limited number of times. Returns true if it reached `epoch`.
Value PeerFlags::poll(Value flag, Value epoch) {
  // 64 polls take some tens of microseconds, so a timeout may be late by as
  // much.
  constexpr int64_t kTimes = 64;
  Type i1 = b.getI1Type(), i32Type = b.getI32Type();
  auto loop = scf::WhileOp::create(b, loc, TypeRange{i1, i32Type},
                                   ValueRange{x.i32(0)});
  OpBuilder::InsertionGuard guard(b);
  Block *before = b.createBlock(&loop.getBefore(), {}, {i32Type}, {loc});
  Value came = x.compare(arith::CmpIPredicate::uge,
                         load(flag, AtomicOrdering::acquire), epoch);
  Value times = x.add(before->getArgument(0), x.i32(1));
  Value isMore = x.ult(times, x.i32(kTimes));
  scf::ConditionOp::create(b, loc, x.band(negate(came), isMore),
                           ValueRange{came, times});
  Block *after = b.createBlock(&loop.getAfter(), {}, {i1, i32Type}, {loc, loc});
  scf::YieldOp::create(b, loc, after->getArgument(1));
  return loop.getResult(0);
}

/// Waits until `flag` reaches `epoch`, the timeout expires, or some rank has
/// failed. Returns true in the first case. The clock is read only if the flag
/// is not there soon, because reading it takes longer than reading a flag.
Value PeerFlags::waitFor(Value flag, Value epoch) {
  Type i1 = b.getI1Type(), i64Type = b.getI64Type();
  Value isSoon = poll(flag, epoch);
  auto op = scf::IfOp::create(b, loc, i1, isSoon, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.thenBlock());
  scf::YieldOp::create(b, loc, isSoon);
  b.setInsertionPointToStart(op.elseBlock());
  Value begin = buildGlobalTimer(b, loc);
  Value timeout = field(kTimeout, i64Type);
  auto loop = scf::WhileOp::create(b, loc, i1, ValueRange());
  b.createBlock(&loop.getBefore());
  Value came = poll(flag, epoch);
  Value now = buildGlobalTimer(b, loc);
  Value isEarly = x.ult(x.sub(now, begin), timeout);
  scf::ConditionOp::create(
      b, loc, x.band(negate(came), x.band(isEarly, hasNotFailed())), came);
  b.createBlock(&loop.getAfter(), {}, {i1}, {loc});
  scf::YieldOp::create(b, loc);
  b.setInsertionPointToEnd(op.elseBlock());
  scf::YieldOp::create(b, loc, loop.getResults());
  return op.getResult(0);
}

/// Waits until the ranks `first`, `first + step`, … reach `epoch`. Returns an
/// i1: true if all have arrived, and no rank had failed when `failed` was
/// loaded. `failed` is tested last, so that the waits do not depend on its
/// load.
Value PeerFlags::waitForAll(int64_t flags, Value epoch, Value first, Value step,
                            Value failed) {
  auto loop =
      scf::ForOp::create(b, loc, first, ranks, step,
                         Value(arith::ConstantIntOp::create(b, loc, true, 1)));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value other = loop.getInductionVar();
  Value came = waitFor(at(own, flags, other), epoch);
  branch(negate(came), [&] {
    branch(hasNotFailed(), [&] {
      Value code = x.add(toI64(other), i64(1));
      store(code, at(own, group::failed), AtomicOrdering::monotonic);
    });
  });
  scf::YieldOp::create(b, loc, x.band(loop.getRegionIterArg(0), came));
  b.setInsertionPointAfter(loop);
  Value all = x.band(loop.getResult(0),
                     x.compare(arith::CmpIPredicate::eq, failed, i64(0)));
  Value hasWaited = x.ult(thread, ranks);
  branch(x.band(negate(all), hasWaited), [&] { reportFailure(); });
  return all;
}

Value PeerFlags::wait() {
  Value step = buildBlockSize(b, loc);
  Value block = buildBlockId(b, loc);
  Value waits = x.ult(thread, ranks);
  Value mine = x.select(waits, thread, x.i32(0));
  // The three loads are in flight together. If the rank `mine` has already
  // arrived, it is not polled. In the later blocks of a large grid, most ranks
  // have arrived.
  Value last = load(at(own, group::epoch), AtomicOrdering::monotonic, kDevice);
  Value failed = load(at(own, group::failed), AtomicOrdering::monotonic);
  Value seen = load(at(own, group::arrived, mine), AtomicOrdering::acquire);
  Value epoch = x.add(last, i64(1));
  branch(x.compare(arith::CmpIPredicate::eq, block, x.i32(0)), [&] {
    tell(group::arrived, epoch, thread, step, AtomicOrdering::release);
  });
  Value isThere =
      x.band(waits, x.compare(arith::CmpIPredicate::uge, seen, epoch));
  Value first = x.select(isThere, x.add(thread, step), thread);
  Value came = waitForAll(group::arrived, epoch, first, step, failed);
  return holdsInBlock(came);
}

/// Releases the memory of other ranks. The block's first warp does this once
/// all warps have read what they need. Returns true if no rank has failed so
/// far.
Value PeerFlags::release(Value arrived) {
  Type i1 = b.getI1Type();
  buildBarrier(b, loc);
  auto first =
      scf::IfOp::create(b, loc, i1, x.ult(thread, x.i32(limits::warpThreads)),
                        /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(first.elseBlock());
    scf::YieldOp::create(b, loc,
                         Value(arith::ConstantIntOp::create(b, loc, true, 1)));
    b.setInsertionPointToStart(first.thenBlock());
    // Both loads are in flight while the fence waits for the stores of the
    // block.
    Value last =
        load(at(own, group::epoch), AtomicOrdering::monotonic, kDevice);
    Value isValid = x.band(arrived, hasNotFailed());
    Value epoch = x.add(last, i64(1));
    branch(countBlock(), [&] { finish(epoch, arrived); });
    scf::YieldOp::create(b, loc, isValid);
  }
  return holdsInBlock(first.getResult(0));
}

/// Counts this block as done. Returns an i1 that is the same in all threads of
/// the warp: true if this was the last block.
Value PeerFlags::countBlock() {
  Type i32Type = b.getI32Type(), i64Type = b.getI64Type();
  Value isFirst = x.compare(arith::CmpIPredicate::eq, thread, x.i32(0));
  auto count =
      scf::IfOp::create(b, loc, i64Type, isFirst, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(count.thenBlock());
    // A fence is needed, because NVPTX ignores the ordering of the atomic
    // itself.
    LLVM::FenceOp::create(b, loc, AtomicOrdering::acq_rel, kDevice);
    Value before = LLVM::AtomicRMWOp::create(
        b, loc, LLVM::AtomicBinOp::add, at(own, group::blocks), i64(1),
        AtomicOrdering::monotonic, kDevice);
    scf::YieldOp::create(b, loc, before);
    b.setInsertionPointToStart(count.elseBlock());
    scf::YieldOp::create(b, loc, i64(0));
  }
  Value mine = arith::TruncIOp::create(b, loc, i32Type, count.getResult(0));
  Value before = buildShuffleFirst(b, loc, mine);
  Value blocks = buildGridSize(b, loc);
  return x.compare(arith::CmpIPredicate::eq, x.add(before, x.i32(1)), blocks);
}

/// Ends a collective in its last block. Announces to all ranks that this rank
/// has finished reading, waits for the others to finish, and prepares the
/// workspace for the next collective.
void PeerFlags::finish(Value epoch, Value arrived) {
  Value isFirst = x.compare(arith::CmpIPredicate::eq, thread, x.i32(0));
  branch(arrived, [&] {
    branch(isFirst, [&] {
      // Only thread 0, which counted the blocks, sets the flags. The reads of
      // all blocks precede its count. This fence orders the count, and so these
      // reads, before the flags.
      LLVM::FenceOp::create(b, loc, AtomicOrdering::acq_rel, StringRef());
      tell(group::done, epoch, x.i32(0), x.i32(1), AtomicOrdering::monotonic);
    });
    buildWarpBarrier(b, loc, x.i32(-1));
    Value failed = load(at(own, group::failed), AtomicOrdering::monotonic);
    waitForAll(group::done, epoch, thread, x.i32(limits::warpThreads), failed);
  });
  buildWarpBarrier(b, loc, x.i32(-1));
  branch(isFirst, [&] {
    store(i64(0), at(own, group::blocks), AtomicOrdering::monotonic, kDevice);
    store(epoch, at(own, group::epoch), AtomicOrdering::monotonic, kDevice);
  });
}

//===----------------------------------------------------------------------===//
// Loads before waits
//===----------------------------------------------------------------------===//

static bool mayStore(Operation *op) {
  return anyOp(op, [](Operation *nested) {
    auto store = dyn_cast<LLVM::StoreOp>(nested);
    return store && isGlobal(store.getAddr());
  });
}

/// Returns the unconditional loads in `guard` that may move before it. If the
/// stores in `guard` go to the memory of other ranks (`toPeers`), no load reads
/// what they write, so all loads may move. Otherwise, only the loads before the
/// first store may.
static SmallVector<LLVM::LoadOp> collectLoads(scf::IfOp guard, bool toPeers) {
  SmallVector<LLVM::LoadOp> loads;
  for (Operation &op : *guard.thenBlock()) {
    if (!toPeers && mayStore(&op))
      break;
    if (auto load = dyn_cast<LLVM::LoadOp>(op);
        load && isGlobal(load.getAddr()))
      loads.push_back(load);
  }
  return loads;
}

/// True if `load` can become a predicated load, without a branch. It must load
/// 1, 2, 4 or 8 words of 32 bits, at an address aligned for GPU accesses.
static bool canBePredicated(LLVM::LoadOp load) {
  auto vector = dyn_cast<VectorType>(load.getType());
  uint64_t bits =
      vector ? vector.getNumElements() * vector.getElementTypeBitWidth()
             : load.getType().getIntOrFloatBitWidth();
  std::optional<uint64_t> alignment = load.getAlignment();
  return (bits == 32 || bits == 64 || bits == 128 || bits == 256) &&
         (!alignment || *alignment >= std::min<uint64_t>(bits / 8, 16));
}

/// Moves loads of this rank's own tensors out of `guard`, before `place`. Moves
/// at most as many loads as the plan's field ExchangeLoads allows.
static void loadAhead(scf::IfOp guard, ArrayRef<LLVM::LoadOp> loads,
                      Operation *place) {
  auto plan =
      place->getParentOfType<LLVM::LLVMFuncOp>()->getAttrOfType<PlanAttr>(
          kPlanAttr);
  int64_t most = plan.getNumber(PlanField::ExchangeLoads), count = 0;
  OpBuilder b(place);
  for (LLVM::LoadOp load : loads) {
    if (count == most)
      return;
    if (!moveBeforeWait(load.getAddr(), place) ||
        !moveBeforeWait(guard.getCondition(), place))
      continue;
    if (!canBePredicated(load))
      continue;
    load.replaceAllUsesWith(
        PredicatedLoadOp::create(b, load.getLoc(), load.getType(),
                                 load.getAddr(), guard.getCondition())
            .getResult());
    load.erase();
    ++count;
  }
}

/// True if `op`, or an op inside it, stores to this rank's own tensors. `op`
/// lies between the two ends of an exchange. Addresses of other ranks' tensors
/// come from a table, so they are not known before `begin`. A store whose
/// address is known before `begin` therefore goes to an own tensor.
static bool storesOwn(Operation *op, Operation *begin) {
  return anyOp(op, [&](Operation *nested) {
    auto store = dyn_cast<LLVM::StoreOp>(nested);
    return store && isGlobal(store.getAddr()) &&
           isKnownBefore(store.getAddr(), begin);
  });
}

/// Moves loads before the waits of an exchange. The rows to send are loaded
/// while `begin` finds out if they are sent. This rank's own rows, which are
/// merged with received rows, are loaded while this rank waits for the received
/// rows. Does nothing if the kernel stores to this rank's tensors before the
/// exchange ends.
static void loadAheadOfWaits(BeginExchangeOp begin) {
  Operation *end = begin;
  SmallVector<scf::IfOp> guards;
  for (; !isa<EndExchangeOp>(end); end = end->getNextNode()) {
    if (auto guard = dyn_cast<scf::IfOp>(end))
      guards.push_back(guard);
    if (storesOwn(end, begin))
      return;
  }
  for (scf::IfOp guard : guards)
    loadAhead(guard, collectLoads(guard, /*toPeers=*/true), begin);
  for (Operation *user : end->getResult(0).getUsers())
    if (auto arrived = dyn_cast<scf::IfOp>(user))
      for (auto guard : arrived.thenBlock()->getOps<scf::IfOp>())
        loadAhead(guard, collectLoads(guard, /*toPeers=*/false), end);
}

//===----------------------------------------------------------------------===//
// The ops
//===----------------------------------------------------------------------===//

/// Lowers `op` and returns true if it synchronises ranks. Lowering
/// `mlafix_thread.begin_exchange` sets `last` to the number that the op loads.
/// Lowering `mlafix_thread.end_exchange` uses this number.
static bool lowerOp(Operation *op, function_ref<PeerFlags()> flags,
                    Value &last) {
  if (auto wait = dyn_cast<WaitPeersOp>(op)) {
    wait.getArrived().replaceAllUsesWith(flags().wait());
  } else if (auto release = dyn_cast<ReleasePeersOp>(op)) {
    release.getValid().replaceAllUsesWith(
        flags().release(release.getArrived()));
  } else if (auto begin = dyn_cast<BeginExchangeOp>(op)) {
    loadAheadOfWaits(begin);
    PeerFlags::Begin built = flags().beginExchange();
    last = built.last;
    begin.getTurn().replaceAllUsesWith(built.turn);
    begin.getSends().replaceAllUsesWith(built.sends);
  } else if (auto end = dyn_cast<EndExchangeOp>(op)) {
    end.getArrived().replaceAllUsesWith(
        flags().endExchange(last, end.getSends()));
  } else {
    return false;
  }
  return true;
}

void mlafix::lowerPeerFlags(LLVM::LLVMFuncOp function,
                            ArrayRef<ParamAttr> params) {
  const auto *found = llvm::find_if(params, [](ParamAttr param) {
    return param.getKind() == ParamKind::Group;
  });
  if (found == params.end())
    return;
  Value group = function.getArgument(found - params.begin());
  Type layout = getTableType(*found);
  Value last;
  function.walk([&](Operation *op) {
    auto flags = [&] { return PeerFlags(op, group, layout); };
    if (lowerOp(op, flags, last))
      op->erase();
  });
}
