//===- GroupLayout.h - The workspace that a group's ranks share -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The layout of a workspace of a collective kernel (docs/UnitFormat.md). Every
// rank has a workspace, and the other ranks write to it. The kernels that the
// compiler makes use this layout. The runtime tells hosts how large a workspace
// is.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_GROUPLAYOUT_H
#define MLAFIX_GROUPLAYOUT_H

#include "mlafix/runtime.h"

namespace mlafix::group {

// Offsets in bytes of fields in a workspace. Every field is a u64. Fields that
// other ranks write are in cache lines of their own. The collectives of a group
// are numbered. A field that says which collective is the last one holds the
// number of that collective.

/// The last collective whose number all blocks of this rank have read.
constexpr int64_t epoch = 0;
/// The number of blocks of this rank that have counted themselves in the
/// current collective. A block counts itself after its reads from peers or, in
/// an exchange, after its stores to them. The last block resets the field to 0.
constexpr int64_t blocks = 8;
/// 0, or 1 + the rank that did not arrive.
constexpr int64_t failed = 128;
/// One field per rank: the last collective that the rank has begun.
constexpr int64_t arrived = 256;
/// One field per rank: the last collective in which the rank has finished
/// reading from its peers.
constexpr int64_t done = arrived + 8 * 80;
constexpr int64_t bytes = done + 8 * 80;
/// One field for each pair of a block of the grid and a rank: the last
/// collective in which this block of that rank has finished its stores to the
/// rank that owns the workspace.
constexpr int64_t slots = MLAFIX_GROUP_BYTES;

static_assert(MLAFIX_MAX_RANKS <= 80 && bytes <= MLAFIX_GROUP_BYTES,
              "a workspace has room for all ranks");

} // namespace mlafix::group

#endif // MLAFIX_GROUPLAYOUT_H
