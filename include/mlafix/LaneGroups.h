//===- LaneGroups.h - how lane groups share rows ----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Chooses the lane groups of a launch, as docs/UnitFormat.md specifies under
// "geometry". The runtime uses this header. So does mlafix.explain, which shows
// the grid of a launch (through share_lanes() of the Python binding).
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LANEGROUPS_H
#define MLAFIX_LANEGROUPS_H

#include "mlafix/UnitLimits.h"

namespace mlafix {

/// The limits of lane groups that the manifest gives for a code version. The
/// lanes of a row may be replicated into several groups. The groups divide the
/// states of the row's running merge ("pieces" in the manifest) among
/// themselves.
struct LaneGroups {
  /// The maximum number of groups per row, a power of two.
  int64_t most = 1;
  /// The number of states that a group processes at a time.
  int64_t chunk = 1;
  /// The minimum number of threads of one group in a block.
  int64_t leastThreads = 1;
  /// The number of resident threads per multiprocessor beyond which further
  /// lane groups no longer make a launch faster.
  int64_t threadsPerSm = 1;
};

struct GroupedGrid {
  int64_t groups;       ///< number of groups per row
  int64_t groupThreads; ///< number of threads of one group in a block
  int64_t blocks;
};

/// Chooses the number of lane groups per row and the size of the blocks. The
/// number of groups is the least power of two that gives every chunk a group of
/// its own. It is smaller if it would otherwise exceed `of.most`, or if there
/// would be more threads than the multiprocessors can use.
///
/// In a block, a group usually has one warp. A group has only a part of a warp
/// if fewer than a quarter of the multiprocessors would otherwise get a block,
/// or if the block would otherwise exceed `blockThreads`. If all threads of the
/// launch are resident at once, the blocks are larger, but two of them still
/// fit on a multiprocessor, and each multiprocessor still gets one. The results
/// of rows do not depend on these choices.
///
/// `lanes` is the number of lanes of all rows together. `pieces` is the number
/// of states per row, of which `of.chunk` form a chunk. `blockThreads` is the
/// maximum number of threads per block.
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
