//===- LoadChunksAhead.h - the next chunk is loaded early -------*- C++ -*-===//
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
  /// Ends the loop's body: merges the chunk into the running state.
  mlir::scf::IfOp end;
  /// The loop that finds the largest lse for this one; null if there is none.
  mlir::scf::ForOp largest;
};

/// Loads the next chunk of `chunks` before the current one is merged, and the
/// first one before the loops, as the plan of `kernel` says.
void loadChunksAhead(KernelOp kernel, ChunkLoop chunks);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_MERGES_LOADCHUNKSAHEAD_H
