//===- LoadChunksAhead.h - load the next chunk early ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_MERGES_LOADCHUNKSAHEAD_H
#define MLAFIX_TRANSFORMS_MERGES_LOADCHUNKSAHEAD_H

#include "dialect/Mlafix.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlafix {

/// A loop over chunks that lane groups share.
struct ChunkLoop {
  /// The branch at the end of the loop body, which merges a chunk into the
  /// running state.
  mlir::scf::IfOp end;
  /// The loop that finds the largest lse for the loop over chunks; null if
  /// there is none.
  mlir::scf::ForOp largest;
};

/// Loads the next chunk of `chunks` before the current chunk is merged, and the
/// first chunk before the loops. The plan of `kernel` limits the bytes that are
/// loaded ahead.
void loadChunksAhead(KernelOp kernel, ChunkLoop chunks);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_MERGES_LOADCHUNKSAHEAD_H
