//===- LoadChunksAhead.h - loads before the chunk before is merged -*- C++ -*-//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LOADCHUNKSAHEAD_H
#define MLAFIX_TRANSFORMS_LOADCHUNKSAHEAD_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// On the op of a merge loop's body that merges its chunk, once computed, into
/// the running state.
constexpr llvm::StringLiteral kChunkEndAttr = "mlafix.chunk_end";

/// Has the merge loops of `kernel` whose chunks end with kChunkEndAttr load the
/// next chunk where this one ends, so that memory has something to do while
/// chunks are exchanged and merged; the first chunk is loaded ahead of the
/// loop. A chunk all of whose pieces exist is loaded without predicates.
void loadChunksAhead(KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LOADCHUNKSAHEAD_H
