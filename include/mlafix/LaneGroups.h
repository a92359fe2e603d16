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

/// The lane groups of a kernel, as its code describes them.
struct LaneGroups {
  int64_t most = 1;         ///< groups, a power of two
  int64_t chunk = 1;        ///< pieces that a group does at a time
  int64_t leastThreads = 1; ///< of a group in a block
  int64_t threadsPerSm = 1; ///< from which on more groups gain nothing
};

struct GroupedGrid {
  int64_t groups;       ///< for each row
  int64_t groupThreads; ///< of a group in a block
  int64_t blocks;
};

/// The number of lane groups for each row: at most one per chunk, and no more
/// threads than the multiprocessors use well. A group has a warp of each block,
/// or a half or a quarter of one where that leaves less than a quarter of the
/// multiprocessors a block, or where a block has no more threads. Where these
/// hold all threads at once, the block is the largest of which one can hold two
/// and each has one. A row's result depends on neither.
///
/// lanes: of all rows.
/// pieces: of a row, which chunks are made of.
/// blockThreads: of a block, at most.
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
