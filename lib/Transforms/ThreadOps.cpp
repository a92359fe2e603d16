//===- ThreadOps.cpp - GPU operations of threads and blocks ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/LLVMIR/NVVMDialect.h" // must precede ThreadOps.h

#include "dialect/MlafixThread.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/ThreadOps.h"
#include "mlafix/UnitLimits.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlafix;

Value mlafix::buildThreadId(OpBuilder &b, Location loc) {
  return NVVM::ThreadIdXOp::create(b, loc, b.getI32Type());
}

Value mlafix::buildBlockId(OpBuilder &b, Location loc) {
  return NVVM::BlockIdXOp::create(b, loc, b.getI32Type());
}

Value mlafix::buildBlockSize(OpBuilder &b, Location loc) {
  return NVVM::BlockDimXOp::create(b, loc, b.getI32Type());
}

Value mlafix::buildGridSize(OpBuilder &b, Location loc) {
  return NVVM::GridDimXOp::create(b, loc, b.getI32Type());
}

bool mlafix::isThreadId(Operation *op) { return isa<NVVM::ThreadIdXOp>(op); }

bool mlafix::isBlockId(Operation *op) { return isa<NVVM::BlockIdXOp>(op); }

static Value alloc(OpBuilder &b, Location loc, ArrayRef<int64_t> shape,
                   Type element, Attribute space) {
  return memref::AllocaOp::create(
      b, loc, MemRefType::get(shape, element, AffineMap(), space));
}

Value mlafix::allocShared(OpBuilder &b, Location loc, ArrayRef<int64_t> shape,
                          Type element) {
  return alloc(
      b, loc, shape, element,
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup));
}

Value mlafix::allocScratch(OpBuilder &b, Location loc, ArrayRef<int64_t> shape,
                           Type element) {
  return alloc(b, loc, shape, element, ScratchAttr::get(b.getContext()));
}

void mlafix::buildBarrier(OpBuilder &b, Location loc) {
  NVVM::BarrierOp::create(b, loc);
}

/// Builds a barrier that also reduces `bits` over all threads.
static Value buildBarrier(OpBuilder &b, Location loc,
                          NVVM::BarrierReduction reduction, Value bits) {
  auto kind = NVVM::BarrierReductionAttr::get(b.getContext(), reduction);
  return NVVM::BarrierOp::create(b, loc, TypeRange{b.getI32Type()}, Value(),
                                 Value(), kind, bits)
      .getRes();
}

Value mlafix::buildBarrierOr(OpBuilder &b, Location loc, Value bits) {
  return ::buildBarrier(b, loc, NVVM::BarrierReduction::OR, bits);
}

Value mlafix::buildBarrierAnd(OpBuilder &b, Location loc, Value bits) {
  return ::buildBarrier(b, loc, NVVM::BarrierReduction::AND, bits);
}

void mlafix::buildClusterBarrier(OpBuilder &b, Location loc) {
  NVVM::ClusterArriveOp::create(b, loc, b.getUnitAttr());
  buildClusterWait(b, loc);
}

void mlafix::buildClusterArrive(OpBuilder &b, Location loc) {
  NVVM::ClusterArriveRelaxedOp::create(b, loc, b.getUnitAttr());
}

void mlafix::buildClusterWait(OpBuilder &b, Location loc) {
  NVVM::ClusterWaitOp::create(b, loc, b.getUnitAttr());
}

bool mlafix::isClusterBarrier(Operation *op) {
  return isa<NVVM::ClusterArriveOp, NVVM::ClusterArriveRelaxedOp,
             NVVM::ClusterWaitOp>(op);
}

Value mlafix::buildClusterPointer(OpBuilder &b, Location loc, Value pointer,
                                  Value block) {
  auto type = LLVM::LLVMPointerType::get(
      b.getContext(),
      static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
  return NVVM::MapaOp::create(b, loc, type, pointer, block);
}

void mlafix::buildMbarrierInit(OpBuilder &b, Location loc, Value barrier,
                               int64_t bytes) {
  IndexBuilder x(b, loc);
  NVVM::MBarrierInitOp::create(b, loc, barrier, /*count=*/x.i32(1),
                               /*predicate=*/Value());
  NVVM::MBarrierArriveExpectTxOp::create(b, loc, /*res=*/Type(), barrier,
                                         /*txcount=*/x.i32(bytes),
                                         NVVM::MemScopeKind::CTA,
                                         /*relaxed=*/false,
                                         /*predicate=*/Value());
}

void mlafix::buildMbarrierFence(OpBuilder &b, Location loc) {
  NVVM::FenceMbarrierInitOp::create(b, loc);
}

void mlafix::buildCountedStore(OpBuilder &b, Location loc, Value value,
                               Value place, Value barrier) {
  bool isWide = value.getType().getIntOrFloatBitWidth() == 64;
  if (isa<FloatType>(value.getType()))
    value = arith::BitcastOp::create(b, loc, b.getI32Type(), value);
  // LLVM has no intrinsic for this instruction.
  std::string text = "st.async.shared::cluster.mbarrier::complete_tx::bytes." +
                     std::string(isWide ? "b64" : "b32") + " [$0], $1, [$2];";
  buildAssembly(b, loc, TypeRange(), {place, value, barrier}, text,
                isWide ? "l,l,l,~{memory}" : "l,r,l,~{memory}");
}

Value mlafix::buildTryWait(OpBuilder &b, Location loc, Value barrier) {
  IndexBuilder x(b, loc);
  return NVVM::MBarrierTryWaitOp::create(
      b, loc, b.getI1Type(), barrier, /*stateOrPhase=*/x.i32(0),
      /*ticks=*/Value(), NVVM::MemScopeKind::CLUSTER, /*relaxed=*/false);
}

void mlafix::buildWarpBarrier(OpBuilder &b, Location loc, Value mask) {
  NVVM::SyncWarpOp::create(b, loc, mask);
}

Value mlafix::buildShuffleXor(OpBuilder &b, Location loc, Value mask,
                              Value value, int64_t distance) {
  IndexBuilder x(b, loc);
  // The halves of a 64-bit integer are shuffled separately.
  if (value.getType().isInteger(64)) {
    Type i32 = b.getI32Type();
    Value width = arith::ConstantIntOp::create(b, loc, 32, 64);
    Value low = arith::TruncIOp::create(b, loc, i32, value);
    Value high = arith::TruncIOp::create(
        b, loc, i32, arith::ShRUIOp::create(b, loc, value, width));
    low = arith::ExtUIOp::create(b, loc, value.getType(),
                                 buildShuffleXor(b, loc, mask, low, distance));
    high = arith::ExtUIOp::create(
        b, loc, value.getType(), buildShuffleXor(b, loc, mask, high, distance));
    return arith::OrIOp::create(
        b, loc, arith::ShLIOp::create(b, loc, high, width), low);
  }
  return NVVM::ShflOp::create(b, loc, value.getType(), mask, value,
                              x.i32(distance), x.i32(limits::warpThreads - 1),
                              NVVM::ShflKind::bfly, UnitAttr());
}

Value mlafix::buildShuffleUp(OpBuilder &b, Location loc, Value value,
                             int64_t distance) {
  IndexBuilder x(b, loc);
  return NVVM::ShflOp::create(b, loc, value.getType(), x.i32(-1), value,
                              x.i32(distance), x.i32(0), NVVM::ShflKind::up,
                              UnitAttr());
}

Value mlafix::buildShuffleFrom(OpBuilder &b, Location loc, Value value,
                               Value lane) {
  IndexBuilder x(b, loc);
  return NVVM::ShflOp::create(b, loc, value.getType(), x.i32(-1), value, lane,
                              x.i32(limits::warpThreads - 1),
                              NVVM::ShflKind::idx, UnitAttr());
}

Value mlafix::buildShuffleFirst(OpBuilder &b, Location loc, Value value) {
  return buildShuffleFrom(b, loc, value, IndexBuilder(b, loc).i32(0));
}

bool mlafix::isShuffle(Operation *op) { return isa<NVVM::ShflOp>(op); }

Value mlafix::buildBallot(OpBuilder &b, Location loc, Value predicate) {
  return NVVM::VoteSyncOp::create(b, loc, b.getI32Type(),
                                  IndexBuilder(b, loc).i32(-1), predicate,
                                  NVVM::VoteSyncKind::ballot);
}

Operation *mlafix::buildAssembly(OpBuilder &b, Location loc, TypeRange results,
                                 ValueRange operands, StringRef text,
                                 StringRef constraints, bool hasEffects) {
  return LLVM::InlineAsmOp::create(
      b, loc, results, operands, text, constraints, hasEffects,
      /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
      LLVM::AsmDialectAttr(), ArrayAttr());
}

Value mlafix::buildGlobalTimer(OpBuilder &b, Location loc) {
  return NVVM::GlobalTimerOp::create(b, loc, b.getI64Type());
}

void mlafix::buildGridWait(OpBuilder &b, Location loc) {
  NVVM::GriddepcontrolOp::create(b, loc, NVVM::GridDepActionKind::wait);
}

bool mlafix::isGridWait(Operation *op) {
  auto control = dyn_cast<NVVM::GriddepcontrolOp>(op);
  return control && control.getKind() == NVVM::GridDepActionKind::wait;
}

void mlafix::buildLaunchDependents(OpBuilder &b, Location loc) {
  NVVM::GriddepcontrolOp::create(b, loc,
                                 NVVM::GridDepActionKind::launch_dependents);
}

bool mlafix::isGridControl(Operation *op) {
  return isa<NVVM::GriddepcontrolOp>(op);
}

Value mlafix::buildPermute(OpBuilder &b, Location loc, Value low, Value high,
                           Value selector) {
  return NVVM::PermuteOp::create(b, loc, b.getI32Type(), low, high, selector,
                                 NVVM::PermuteMode::DEFAULT);
}

Value mlafix::buildNearReciprocal(OpBuilder &b, Location loc, Value x) {
  return NVVM::RcpApproxFtzF32Op::create(b, loc, b.getF32Type(), x);
}

Value mlafix::buildNarrowFp8Pair(OpBuilder &b, Location loc, Value low,
                                 Value high, Type type) {
  // cvt puts its first operand in the upper byte, so `high` comes first.
  return NVVM::ConvertF32x2ToF8x2Op::create(
      b, loc, VectorType::get({2}, b.getI8Type()), high, low,
      NVVM::FPRoundingMode::RN, NVVM::SaturationMode::SATFINITE,
      /*relu=*/false, type);
}

Value mlafix::buildWidenFp8Pair(OpBuilder &b, Location loc, Value bytes,
                                Type type) {
  return NVVM::ConvertF8x2ToF16x2Op::create(
      b, loc, VectorType::get({2}, b.getF16Type()), bytes, /*relu=*/false,
      type);
}
