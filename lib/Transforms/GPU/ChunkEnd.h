//===- ChunkEnd.h - where a chunk of a merge loop ends ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GPU_CHUNKEND_H
#define MLAFIX_TRANSFORMS_GPU_CHUNKEND_H

#include "llvm/ADT/StringRef.h"

namespace mlafix {

/// On the scf.if in a loop's body that merges the loop's chunk, once computed,
/// into the running state. mlafix-lower-merge-loops writes it,
/// mlafix-load-chunks-ahead reads and removes it.
constexpr llvm::StringLiteral kChunkEndAttr = "mlafix.chunk_end";

/// On the scf.for that finds the largest lse of what another loop merges, and
/// on the branch that ends that loop's chunks. mlafix-lower-merge-loops writes
/// it, mlafix-load-chunks-ahead reads and removes it: the first chunk is loaded
/// ahead of both loops.
constexpr llvm::StringLiteral kLargestLseAttr = "mlafix.largest_lse";

/// On an scf.if whose then branch is for code that groups with one chunk each
/// have of their own: elsewhere, the else branch does as well.
/// mlafix-lower-merge-loops writes it, mlafix-load-chunks-ahead reads and
/// removes it.
constexpr llvm::StringLiteral kOnlyChunkAttr = "mlafix.only_chunk";

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GPU_CHUNKEND_H
