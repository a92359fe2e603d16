//===- RepeatRows.h - long rows that are made again -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_REPEATROWS_H
#define MLAFIX_TRANSFORMS_REPEATROWS_H

#include "dialect/Mlafix.h"

#include "llvm/ADT/DenseMap.h"

namespace mlafix {

/// The stages of a block's ops, in the order in which they are done: of one
/// stage the scalars first, then the rows pack by pack.
using Stages = llvm::DenseMap<mlir::Operation *, int64_t>;

/// Whether `row`, made in an earlier stage of its block, has the same elements
/// where it is made again, pack by pack, in stage `stage`, before all that the
/// stage does to these packs: out of rows that `isKept` says are at hand, and
/// of memory that holds then what it held.
bool canRepeat(KernelOp kernel, const Stages &stages, mlir::Value row,
               int64_t stage, llvm::function_ref<bool(mlir::Value)> isKept);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_REPEATROWS_H
