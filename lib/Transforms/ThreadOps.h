//===- ThreadOps.h - GPU operations of threads and blocks -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Functions that build those operations of the NVVM dialect that passes use.
// Passes include this header instead of NVVMDialect.h, which declares all of
// PTX and takes longer to parse than all other headers of a pass.
//
// Passes need the class NVVMDialect for `dependentDialects` and the names of
// attributes, so this header declares it. NVVMDialect.h declares the class,
// too. So a file that includes both headers must include NVVMDialect.h first.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_THREADOPS_H
#define MLAFIX_TRANSFORMS_THREADOPS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Dialect.h"

#ifndef MLIR_DIALECT_LLVMIR_NVVMDIALECT_H_
#include "mlir/Dialect/LLVMIR/NVVMOpsDialect.h.inc"
#endif

namespace mlafix {

// Build the number of the thread in its block, the number of the block, the
// threads per block and the blocks per grid, each along x, as i32.
mlir::Value buildThreadId(mlir::OpBuilder &b, mlir::Location loc);
mlir::Value buildBlockId(mlir::OpBuilder &b, mlir::Location loc);
mlir::Value buildBlockSize(mlir::OpBuilder &b, mlir::Location loc);
mlir::Value buildGridSize(mlir::OpBuilder &b, mlir::Location loc);
bool isThreadId(mlir::Operation *op);
bool isBlockId(mlir::Operation *op);

/// The bytes of shared memory per block that a launch may use without opting in
/// to more (CUDA programming guide, shared memory).
inline constexpr int64_t kSharedBytes = 48 << 10;
/// Allocates shared memory of shape `shape`.
mlir::Value allocShared(mlir::OpBuilder &b, mlir::Location loc,
                        llvm::ArrayRef<int64_t> shape, mlir::Type element);
/// Allocates shared memory for an exchange between the threads of a block. The
/// memory is in the memory space #mlafix_thread.scratch. Its uses must follow
/// the rules of that space.
mlir::Value allocScratch(mlir::OpBuilder &b, mlir::Location loc,
                         llvm::ArrayRef<int64_t> shape, mlir::Type element);

/// Builds a barrier of all threads of a block.
void buildBarrier(mlir::OpBuilder &b, mlir::Location loc);
/// Builds a barrier of all threads of a block that returns the bitwise or of
/// their `bits` (i32).
mlir::Value buildBarrierOr(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value bits);
/// Builds a barrier of all threads of a block that returns the bitwise and of
/// their `bits` (i32).
mlir::Value buildBarrierAnd(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value bits);
/// Builds a barrier of all threads of a cluster.
void buildClusterBarrier(mlir::OpBuilder &b, mlir::Location loc);
/// Builds this thread's arrival at the cluster barrier, without a wait. Does
/// not order memory accesses (PTX, `barrier.cluster.arrive.relaxed`).
void buildClusterArrive(mlir::OpBuilder &b, mlir::Location loc);
/// Builds a wait until all threads of the cluster have arrived at the barrier.
void buildClusterWait(mlir::OpBuilder &b, mlir::Location loc);
/// Returns true if `op` is part of a cluster barrier.
bool isClusterBarrier(mlir::Operation *op);
/// Converts `pointer`, a pointer to this block's shared memory, to a pointer to
/// the same position in the shared memory of block `block` (i32) of the
/// cluster.
mlir::Value buildClusterPointer(mlir::OpBuilder &b, mlir::Location loc,
                                mlir::Value pointer, mlir::Value block);
/// Builds the initialisation of the mbarrier `barrier`, a pointer to shared
/// memory. The mbarrier completes once it has counted `bytes` bytes.
void buildMbarrierInit(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value barrier, int64_t bytes);
/// Builds a fence between this thread's initialisations of mbarriers and its
/// arrival at a cluster barrier, behind which other blocks use the mbarriers.
void buildMbarrierFence(mlir::OpBuilder &b, mlir::Location loc);
/// Builds a store of `value` (32 or 64 bits) that the mbarrier `barrier`
/// counts. `place` and `barrier` point to the shared memory of one block of the
/// cluster (PTX, `st.async`, whose `complete_tx` has release semantics).
void buildCountedStore(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value value, mlir::Value place,
                       mlir::Value barrier);
/// Builds a wait for the mbarrier `barrier` of this block and returns an i1.
/// True: the mbarrier is complete, and this thread sees the stores that it has
/// counted. False: the time limit of the hardware has passed.
mlir::Value buildTryWait(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Value barrier);
/// Builds a barrier of those threads of a warp that are in `mask` (i32).
void buildWarpBarrier(mlir::OpBuilder &b, mlir::Location loc, mlir::Value mask);

/// Builds the `value` of the thread whose lane number is this thread's lane
/// number xor `distance`. The threads in `mask` (i32) take part.
mlir::Value buildShuffleXor(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value mask, mlir::Value value,
                            int64_t distance);
/// Builds the `value` of the thread `distance` lanes below, or this thread's
/// own if there is none. The whole warp takes part.
mlir::Value buildShuffleUp(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value value, int64_t distance);
/// Builds the `value` of lane `lane` (i32). The whole warp takes part.
mlir::Value buildShuffleFrom(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::Value value, mlir::Value lane);
/// Builds the `value` of the warp's first lane. The whole warp takes part.
mlir::Value buildShuffleFirst(mlir::OpBuilder &b, mlir::Location loc,
                              mlir::Value value);
bool isShuffle(mlir::Operation *op);
/// Builds an i32 whose bits are the `predicate` (i1) of each thread of the
/// warp.
mlir::Value buildBallot(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value predicate);

/// Builds inline PTX (LLVM::InlineAsmOp). PTX without effects may be moved, and
/// merged with equal PTX on the same operands.
mlir::Operation *buildAssembly(mlir::OpBuilder &b, mlir::Location loc,
                               mlir::TypeRange results,
                               mlir::ValueRange operands, llvm::StringRef text,
                               llvm::StringRef constraints,
                               bool hasEffects = true);

/// Builds the time of the device in nanoseconds, i64.
mlir::Value buildGlobalTimer(mlir::OpBuilder &b, mlir::Location loc);

/// Builds a wait for the preceding grid: `griddepcontrol.wait`.
void buildGridWait(mlir::OpBuilder &b, mlir::Location loc);
bool isGridWait(mlir::Operation *op);
/// Builds the op that lets the next grid begin:
/// `griddepcontrol.launch_dependents`.
void buildLaunchDependents(mlir::OpBuilder &b, mlir::Location loc);
/// Returns true if `op` is a grid wait or lets the next grid begin.
bool isGridControl(mlir::Operation *op);

/// Selects four of the eight bytes of `low` and `high` (i32) by the four lowest
/// hex digits of `selector`. A digit that is larger by 8 selects, instead of
/// the byte, eight copies of the byte's sign bit (PTX, `prmt`).
mlir::Value buildPermute(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Value low, mlir::Value high,
                         mlir::Value selector);
/// Builds 1 / x in f32 within 1 ulp, and flushes subnormals (PTX,
/// `rcp.approx.ftz.f32`).
mlir::Value buildNearReciprocal(mlir::OpBuilder &b, mlir::Location loc,
                                mlir::Value x);

/// Converts two f32 to `type` (f8E4M3FN or f8E5M2), rounded to nearest and
/// saturated. Returns a vector<2xi8>.
mlir::Value buildNarrowFp8Pair(mlir::OpBuilder &b, mlir::Location loc,
                               mlir::Value low, mlir::Value high,
                               mlir::Type type);
/// Converts two elements of `type`, given as vector<2xi8>, to vector<2xf16>.
mlir::Value buildWidenFp8Pair(mlir::OpBuilder &b, mlir::Location loc,
                              mlir::Value bytes, mlir::Type type);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_THREADOPS_H
