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

/// Unit attribute of the scf.if at the end of a loop body that merges the
/// loop's chunk into the running state. Written by mlafix-lower-merge-loops;
/// mlafix-load-chunks-ahead reads and removes it.
constexpr llvm::StringLiteral kChunkEndAttr = "mlafix.chunk_end";

/// Unit attribute of the scf.for that finds the largest lse for another merge
/// loop, and of the branch that ends that loop's chunks. Written by
/// mlafix-lower-merge-loops; mlafix-load-chunks-ahead reads and removes it, and
/// loads the first chunk before both loops.
constexpr llvm::StringLiteral kLargestLseAttr = "mlafix.largest_lse";

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GPU_CHUNKEND_H
