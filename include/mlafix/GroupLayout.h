//===- GroupLayout.h - The workspace that a group's ranks share -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// For the compiler, whose kernels use it, and for the runtime, which says how
// large it is. Every rank has one, which the others write: docs/UnitFormat.md.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_GROUPLAYOUT_H
#define MLAFIX_GROUPLAYOUT_H

#include "mlafix/runtime.h"

namespace mlafix::group {

// Offsets in bytes; everything is a u64. What other ranks write has cache lines
// of its own.
constexpr int64_t epoch =
    0; ///< the last collective whose number all blocks of this rank have read
constexpr int64_t blocks =
    8; ///< blocks of the current one that have counted themselves
constexpr int64_t failed = 128;  ///< 0, or 1 + a rank that did not come
constexpr int64_t arrived = 256; ///< for each rank, the last one it has begun
constexpr int64_t done = arrived + 8 * 80; ///< likewise, has read its peers in
constexpr int64_t bytes = done + 8 * 80;
/// Behind the rest: for each block of a grid, and for each rank, the last
/// collective for which that rank's block has stored what it sends.
constexpr int64_t slots = MLAFIX_GROUP_BYTES;

static_assert(MLAFIX_MAX_RANKS <= 80 && bytes <= MLAFIX_GROUP_BYTES,
              "a workspace has room for all ranks");

} // namespace mlafix::group

#endif // MLAFIX_GROUPLAYOUT_H
