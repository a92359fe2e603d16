//===- PeerExchange.cpp - ranks that store to each other ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Each block tells the same block of all ranks that what it stored to them is
// there, and waits for theirs. There is no wait at the end. With launches of
// the group numbered by epochs, a rank q stores in epoch e to the half e % 2 of
// its part of p's memory, and p reads that half in epoch e behind its waits:
//
// 1. q stores in epoch e + 2 only if its epoch e + 1 is complete without a
//    failure, in the order of q's stream: a block that lacks a rank, or finds
//    a failure, leaves the code in q's workspace before its grid is complete,
//    and `sends` is false from then on.
// 2. So every block of q has then seen p's flags of epoch e + 1, and a grid has
//    a block or more. p's blocks of epoch e + 1 run once p's epoch e is
//    complete, with all that it reads: the half e % 2 is free.
// 3. What q stores in epoch e + 1 meanwhile goes to the other half.
//
// A flag that has reached e means that the block stored what it sends in e:
// blocks that do not send tell nobody, and a flag of e + 1 follows the grid of
// e. Hence what a block reads behind its waits is right, and no later look at
// failures is needed. A collective that pulls counts as any other launch: its
// arrived flags say, as well, that the preceding launch is complete.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/MlafixToNVVM/PeerFlagsBuilder.h"
#include "mlafix/GroupLayout.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlafix;

using LLVM::AtomicOrdering;

PeerFlags::Begin PeerFlags::beginExchange() {
  Value last = load(at(own, group::epoch), AtomicOrdering::monotonic, kDevice);
  Value sends = hasNotFailed();
  Value turn = arith::AndIOp::create(b, loc, last, i64(1));
  return {last, arith::IndexCastOp::create(b, loc, b.getIndexType(), turn),
          sends};
}

/// Once all threads of all blocks have loaded the epoch: the next launch's.
/// Nothing of this launch waits for it, since the next one begins behind it.
void PeerFlags::countLaunch(Value epoch) {
  LLVM::FenceOp::create(b, loc, AtomicOrdering::acq_rel, kDevice);
  Value before = LLVM::AtomicRMWOp::create(b, loc, LLVM::AtomicBinOp::add,
                                           at(own, group::blocks), i64(1),
                                           AtomicOrdering::monotonic, kDevice);
  Value count =
      arith::ExtUIOp::create(b, loc, b.getI64Type(), buildGridSize(b, loc));
  Value isLast = compare(arith::CmpIPredicate::eq,
                         arith::AddIOp::create(b, loc, before, i64(1)), count);
  branch(isLast, [&] {
    store(i64(0), at(own, group::blocks), AtomicOrdering::monotonic, kDevice);
    store(epoch, at(own, group::epoch), AtomicOrdering::monotonic, kDevice);
  });
}

Value PeerFlags::endExchange(Value last, Value sends) {
  Type i32Type = b.getI32Type();
  Value step = buildBlockSize(b, loc);
  Value epoch = arith::AddIOp::create(b, loc, last, i64(1));
  // What all threads stored comes before the flags.
  Value sent =
      buildBarrierAnd(b, loc, arith::ExtUIOp::create(b, loc, i32Type, sends));
  sent = compare(arith::CmpIPredicate::ne, sent, i32(0));
  branch(sent, [&] {
    tell(group::slots, epoch, thread, step, AtomicOrdering::release);
  });
  // A thread that waits for no rank, where there is one.
  Value counts = compare(arith::CmpIPredicate::eq,
                         arith::AddIOp::create(b, loc, thread, i32(1)), step);
  branch(counts, [&] { countLaunch(epoch); });
  Value first = arith::SelectOp::create(b, loc, sent, thread, ranks);
  Value failed = arith::SelectOp::create(b, loc, sent, i64(0), i64(1));
  Value came = waitForAll(group::slots, epoch, first, step, failed);
  Value all =
      buildBarrierAnd(b, loc, arith::ExtUIOp::create(b, loc, i32Type, came));
  return compare(arith::CmpIPredicate::ne, all, i32(0));
}
