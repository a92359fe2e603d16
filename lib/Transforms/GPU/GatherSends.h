//===- GatherSends.h - scalars that rows store to the peers -----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GPU_GATHERSENDS_H
#define MLAFIX_TRANSFORMS_GPU_GATHERSENDS_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// Has neighbouring threads store the scalars that the rows of a block store to
/// the peers, rather than the first lane of each row its own: a link moves them
/// together then, where they are next to each other in memory. `program` holds
/// the row's program; all threads of the block execute it once.
///
/// Scalars in a loop, or whose place or predicate is read from memory or
/// computed from a row, stay where they are, and with them all that are stored
/// to the same tensor.
void gatherSends(KernelOp kernel, mlir::Operation *program);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GPU_GATHERSENDS_H
