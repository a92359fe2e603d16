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

// Offsets in bytes; every field is a u64. Fields that other ranks write have
// cache lines of their own.
constexpr int64_t epoch =
    0; ///< the last collective whose number all blocks of this rank have read
constexpr int64_t blocks =
    8; ///< blocks that have arrived at the current collective
constexpr int64_t failed = 128;  ///< 0, or 1 + the rank that did not arrive
constexpr int64_t arrived = 256; ///< per rank: the last collective that it
                                 ///< began
constexpr int64_t done = arrived + 8 * 80; ///< per rank: the last collective in
                                           ///< which it finished reading its
                                           ///< peers
constexpr int64_t bytes = done + 8 * 80;
/// At the end: for each block of a grid and each rank, the last collective in
/// which that rank's block has finished its stores to this rank.
constexpr int64_t slots = MLAFIX_GROUP_BYTES;

static_assert(MLAFIX_MAX_RANKS <= 80 && bytes <= MLAFIX_GROUP_BYTES,
              "a workspace has room for all ranks");

} // namespace mlafix::group

#endif // MLAFIX_GROUPLAYOUT_H
