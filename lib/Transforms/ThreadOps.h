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
// This header declares the dialect's class itself, for `dependentDialects` and
// the names of attributes. Who needs NVVMDialect.h, too, includes that first.
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

// Indices along x, as i32.
mlir::Value buildThreadId(mlir::OpBuilder &b, mlir::Location loc);
mlir::Value buildBlockId(mlir::OpBuilder &b, mlir::Location loc);
mlir::Value buildBlockSize(mlir::OpBuilder &b, mlir::Location loc);
mlir::Value buildGridSize(mlir::OpBuilder &b, mlir::Location loc);
bool isThreadId(mlir::Operation *op);
bool isBlockId(mlir::Operation *op);

/// Bytes of shared memory per block that a launch allows without opting in to
/// more (CUDA programming guide, shared memory).
inline constexpr int64_t kSharedBytes = 48 << 10;
/// Allocates shared memory of this shape.
mlir::Value allocShared(mlir::OpBuilder &b, mlir::Location loc,
                        llvm::ArrayRef<int64_t> shape, mlir::Type element);
/// Allocates shared memory for an exchange between the block's threads. It is
/// in the memory space #mlafix.scratch, and its uses must follow the rules of
/// that space.
mlir::Value allocScratch(mlir::OpBuilder &b, mlir::Location loc,
                         llvm::ArrayRef<int64_t> shape, mlir::Type element);

/// A block-wide barrier.
void buildBarrier(mlir::OpBuilder &b, mlir::Location loc);
/// A barrier that returns the bitwise or of the i32 `bits` of all threads.
mlir::Value buildBarrierOr(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value bits);
/// A barrier that returns the bitwise and.
mlir::Value buildBarrierAnd(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value bits);
/// A barrier of all threads of a cluster.
void buildClusterBarrier(mlir::OpBuilder &b, mlir::Location loc);
/// Arrives at the cluster barrier without waiting.
void buildClusterArrive(mlir::OpBuilder &b, mlir::Location loc);
/// Waits until all threads of the cluster have arrived.
void buildClusterWait(mlir::OpBuilder &b, mlir::Location loc);
/// True if `op` is part of a cluster barrier.
bool isClusterBarrier(mlir::Operation *op);
/// Maps `pointer` to shared memory to the same position in block `block` (i32)
/// of the cluster.
mlir::Value buildClusterPointer(mlir::OpBuilder &b, mlir::Location loc,
                                mlir::Value pointer, mlir::Value block);
/// A barrier of the threads of a warp in `mask`, i32.
void buildWarpBarrier(mlir::OpBuilder &b, mlir::Location loc, mlir::Value mask);

/// `value` of the thread whose lane number is this one's xor `distance`; the
/// threads in `mask` (i32) take part.
mlir::Value buildShuffleXor(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value mask, mlir::Value value,
                            int64_t distance);
/// `value` of the thread `distance` lanes below, or the thread's own if there
/// is none; the whole warp takes part.
mlir::Value buildShuffleUp(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value value, int64_t distance);
/// `value` of lane `lane` (i32); the whole warp takes part.
mlir::Value buildShuffleFrom(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::Value value, mlir::Value lane);
/// `value` of the warp's first lane; the whole warp takes part.
mlir::Value buildShuffleFirst(mlir::OpBuilder &b, mlir::Location loc,
                              mlir::Value value);
bool isShuffle(mlir::Operation *op);
/// An i32 with a bit per thread of the warp: its `predicate` (i1).
mlir::Value buildBallot(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value predicate);

/// The device-wide time in nanoseconds, i64.
mlir::Value buildGlobalTimer(mlir::OpBuilder &b, mlir::Location loc);

/// Waits for the preceding grid: `griddepcontrol.wait`.
void buildGridWait(mlir::OpBuilder &b, mlir::Location loc);
bool isGridWait(mlir::Operation *op);
/// Lets the next grid begin: `griddepcontrol.launch_dependents`.
void buildLaunchDependents(mlir::OpBuilder &b, mlir::Location loc);
/// True if `op` is one of the above two.
bool isGridControl(mlir::Operation *op);

/// Selects four of the eight bytes of `low` and `high` (i32) by the four lowest
/// hex digits of `selector`; adding 8 to a digit replicates the byte's sign bit
/// (PTX, `prmt`).
mlir::Value buildPermute(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Value low, mlir::Value high,
                         mlir::Value selector);
/// 1 / x in f32 within 1 ulp; flushes subnormals (PTX, `rcp.approx.ftz.f32`).
mlir::Value buildNearReciprocal(mlir::OpBuilder &b, mlir::Location loc,
                                mlir::Value x);

/// Converts two f32 to `type` (f8E4M3FN or f8E5M2), to nearest, saturating;
/// returns vector<2xi8>.
mlir::Value buildNarrowFp8Pair(mlir::OpBuilder &b, mlir::Location loc,
                               mlir::Value low, mlir::Value high,
                               mlir::Type type);
/// Converts two elements of `type`, given as vector<2xi8>, to vector<2xf16>.
mlir::Value buildWidenFp8Pair(mlir::OpBuilder &b, mlir::Location loc,
                              mlir::Value bytes, mlir::Type type);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_THREADOPS_H
