//===- ThreadOps.h - what a GPU's threads know and share --------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The operations of the NVVM dialect that passes use, as functions. Its header
// declares all of PTX, which takes longer to parse than everything else that a
// pass includes, so ThreadOps.cpp alone includes it.
//
// Of NVVMDialect.h this header has the dialect's class, for `dependentDialects`
// and the names of attributes. Who needs both includes NVVMDialect.h first.
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

// Numbers along x, i32.
mlir::Value buildThreadId(mlir::OpBuilder &b, mlir::Location loc);
mlir::Value buildBlockId(mlir::OpBuilder &b, mlir::Location loc);
mlir::Value buildBlockSize(mlir::OpBuilder &b, mlir::Location loc);
mlir::Value buildGridSize(mlir::OpBuilder &b, mlir::Location loc);
bool isThreadId(mlir::Operation *op);
bool isBlockId(mlir::Operation *op);

/// The most bytes of shared memory that a launch permits a block without asking
/// for more (CUDA programming guide, shared memory).
inline constexpr int64_t kSharedBytes = 48 << 10;
/// Memory of a block, of this shape.
mlir::Value allocShared(mlir::OpBuilder &b, mlir::Location loc,
                        llvm::ArrayRef<int64_t> shape, mlir::Type element);
/// The same for an exchange of the block's threads: they all meet between its
/// last load and whatever they store to shared memory next. So exchanges may
/// have the same memory.
mlir::Value allocScratch(mlir::OpBuilder &b, mlir::Location loc,
                         llvm::ArrayRef<int64_t> shape, mlir::Type element);
/// True if `allocScratch` made `alloca`.
bool isScratch(mlir::Operation *alloca);

/// The threads of a block wait for each other.
void buildBarrier(mlir::OpBuilder &b, mlir::Location loc);
/// A barrier; the bitwise or of the i32 `bits` of all threads of the block.
mlir::Value buildBarrierOr(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value bits);
/// The same with the bitwise and.
mlir::Value buildBarrierAnd(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value bits);
/// The threads of all blocks of a cluster wait for each other.
void buildClusterBarrier(mlir::OpBuilder &b, mlir::Location loc);
/// Says that this thread has begun.
void buildClusterArrive(mlir::OpBuilder &b, mlir::Location loc);
/// Waits until all threads of the cluster have said so.
void buildClusterWait(mlir::OpBuilder &b, mlir::Location loc);
/// True if `op` is a part of a barrier of a cluster.
bool isClusterBarrier(mlir::Operation *op);
/// `pointer`, to shared memory, as one to the same place in that of block
/// `block`, i32, of the cluster.
mlir::Value buildClusterPointer(mlir::OpBuilder &b, mlir::Location loc,
                                mlir::Value pointer, mlir::Value block);
/// The threads of a warp in the mask `mask`, i32, wait for each other.
void buildWarpBarrier(mlir::OpBuilder &b, mlir::Location loc, mlir::Value mask);

/// `value` of the thread whose number in the warp differs from this one's by
/// exclusive or with `distance`; `mask` take part, i32.
mlir::Value buildShuffleXor(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value mask, mlir::Value value,
                            int64_t distance);
/// `value` of the thread `distance` before this one in the warp, its own where
/// there is none; the whole warp takes part.
mlir::Value buildShuffleUp(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value value, int64_t distance);
/// `value` of the warp's thread number `lane`, i32; the whole warp takes part.
mlir::Value buildShuffleFrom(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::Value value, mlir::Value lane);
/// `value` of the warp's first thread; the whole warp takes part.
mlir::Value buildShuffleFirst(mlir::OpBuilder &b, mlir::Location loc,
                              mlir::Value value);
bool isShuffle(mlir::Operation *op);
/// A bit for each thread of the warp: whether its `predicate` (i1) holds, i32.
mlir::Value buildBallot(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value predicate);

/// The time in nanoseconds, the same for all of the device, i64.
mlir::Value buildGlobalTimer(mlir::OpBuilder &b, mlir::Location loc);

/// Waits for the preceding grid: `griddepcontrol.wait`.
void buildGridWait(mlir::OpBuilder &b, mlir::Location loc);
bool isGridWait(mlir::Operation *op);
/// Lets the next grid begin: `griddepcontrol.launch_dependents`.
void buildLaunchDependents(mlir::OpBuilder &b, mlir::Location loc);
/// True if `op` is one of these two.
bool isGridControl(mlir::Operation *op);

/// Four bytes of those of `low` and `high`, i32, which are numbered 0 to 7:
/// the four lowest digits of `selector` say which; 8 more take the byte's
/// highest bit eight times (PTX, `prmt`).
mlir::Value buildPermute(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Value low, mlir::Value high,
                         mlir::Value selector);
/// About 1 / x, f32, off by 1 unit in the last place at most; of subnormals and
/// to them 0 (PTX, `rcp.approx.ftz.f32`).
mlir::Value buildNearReciprocal(mlir::OpBuilder &b, mlir::Location loc,
                                mlir::Value x);

/// Two f32 as `type`, f8E4M3FN or f8E5M2, to the nearest, saturating:
/// vector<2xi8>.
mlir::Value buildNarrowFp8Pair(mlir::OpBuilder &b, mlir::Location loc,
                               mlir::Value low, mlir::Value high,
                               mlir::Type type);
/// The two f16 that `bytes`, vector<2xi8>, are as elements of `type`:
/// vector<2xf16>.
mlir::Value buildWidenFp8Pair(mlir::OpBuilder &b, mlir::Location loc,
                              mlir::Value bytes, mlir::Type type);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_THREADOPS_H
