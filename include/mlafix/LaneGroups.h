//===- LaneGroups.h - how lane groups share rows ----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The rule of docs/UnitFormat.md under "geometry", for the runtime that
// launches and for pages that explain a launch.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LANEGROUPS_H
#define MLAFIX_LANEGROUPS_H

#include "mlafix/UnitLimits.h"

namespace mlafix {

/// The limits of a kernel's lane groups, as its code states them. A row's lanes
/// may be replicated into groups that share its pieces.
struct LaneGroups {
  int64_t most = 1;         ///< most groups per row, a power of two
  int64_t chunk = 1;        ///< pieces that a group processes at a time
  int64_t leastThreads = 1; ///< fewest threads of a group in a block
  int64_t threadsPerSm = 1; ///< threads from which more groups gain nothing
};

struct GroupedGrid {
  int64_t groups;       ///< per row
  int64_t groupThreads; ///< threads of a group in a block
  int64_t blocks;
};

/// Chooses the number of lane groups per row: at most one per chunk, and not
/// more threads than the multiprocessors can use. A group usually has a warp
/// per block; half or a quarter if otherwise over three quarters of the
/// multiprocessors would get no block, or if the block has too few threads. If
/// all threads are resident at once, takes the largest block that fits twice on
/// a multiprocessor, as long as each multiprocessor gets a block. Results of
/// rows do not depend on this choice.
///
/// `lanes` is the number of lanes of all rows, `pieces` the number of pieces
/// per row (chunks consist of pieces), and `blockThreads` the most threads per
/// block.
inline GroupedGrid shareLanes(const LaneGroups &of, int64_t lanes,
                              int64_t pieces, int64_t blockThreads,
                              int64_t multiprocessors) {
  int64_t most = multiprocessors * of.threadsPerSm, groups = 1;
  while (groups < of.most && groups * of.chunk < pieces &&
         lanes <= most / (2 * groups))
    groups *= 2;
  int64_t threads =
      std::max(of.leastThreads, limits::leastGroupedBlock / groups);
  while (threads < limits::warpThreads &&
         2 * threads * groups <= blockThreads &&
         lanes / (2 * threads) >= multiprocessors / 4)
    threads *= 2;
  const int64_t mostThreads = std::min(blockThreads, of.threadsPerSm / 2);
  while (lanes <= most / groups && 2 * threads * groups <= mostThreads &&
         lanes / (2 * threads) >= multiprocessors)
    threads *= 2;
  return {groups, threads, lanes / threads + (lanes % threads != 0)};
}

} // namespace mlafix

#endif // MLAFIX_LANEGROUPS_H
