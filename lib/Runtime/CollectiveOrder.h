//===- CollectiveOrder.h - Collectives run one after the other --*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A collective kernel occupies its multiprocessors while it waits for the other
// ranks. Collectives of two groups can therefore deadlock: each occupies the
// GPU that the other's peer needs. To prevent this, a collective waits until
// the process's earlier collectives of other groups on the device are complete,
// on all streams. It does not wait for collectives of its own group: the caller
// orders those of the same rank, and those of other ranks must run at the same
// time (a process may be several ranks on one device).
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_COLLECTIVEORDER_H
#define MLAFIX_RUNTIME_COLLECTIVEORDER_H

#include "CudaDriver.h"
#include "Fork.h"

namespace mlafix::runtime {

struct CollectiveHistory;

/// The group and the rank on whose behalf a launch is made.
struct GroupRank {
  uint64_t group; ///< address of rank 0's workspace, which is unique
  uint32_t rank;
};

/// Orders the launch of one collective on `stream` of the current context
/// (device `ordinal`). The caller calls begin(), launches, and calls end(). The
/// object locks the device's history of collectives from its construction to
/// its destruction. A captured launch is ordered after collectives captured for
/// the same graph. Any other launch is ordered after collectives that were not
/// captured.
class CollectiveTurn {
public:
  CollectiveTurn(const CudaDriver &driver, int32_t ordinal, void *stream,
                 GroupRank self);

  /// Makes `stream` wait for earlier collectives of other groups.
  mlafix_status begin();

  /// Records this launch, so that later collectives of other groups wait for
  /// it.
  mlafix_status end();

private:
  const CudaDriver &driver;
  CollectiveHistory &history;
  ForkSafeLock lock;
  CUstream stream;
  GroupRank self;
  unsigned long long capture =
      0; ///< id of the stream's capture; 0: not capturing
};

/// Forgets all collectives and their events. For tests that replace the driver.
void forgetCollectivesForTesting();

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_COLLECTIVEORDER_H
