//===- CollectiveOrder.h - Collectives run one after the other --*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A collective kernel occupies its multiprocessors while it waits for the other
// ranks. Launches of two groups can therefore deadlock: each occupies the GPU
// that the other's peer needs. To prevent that, a collective begins only after
// the process's earlier collectives of other groups on the device are complete,
// whatever their streams. Those of its own group are ordered already, or belong
// to other ranks that it waits for (a process may be several ranks on one
// device).
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_COLLECTIVEORDER_H
#define MLAFIX_RUNTIME_COLLECTIVEORDER_H

#include "CudaDriver.h"
#include "Fork.h"

namespace mlafix::runtime {

struct CollectiveHistory;

/// Identifies the group and the rank that launch.
struct GroupRank {
  uint64_t group; ///< address of rank 0's workspace, unique per group
  uint32_t rank;
};

/// Held while a collective is enqueued on `stream` of the current context
/// (device `ordinal`): begin(), the launch, end(). Captured launches are
/// ordered after those captured for the same graph, other launches after
/// those not captured.
class CollectiveTurn {
public:
  CollectiveTurn(const CudaDriver &driver, int32_t ordinal, void *stream,
                 GroupRank self);

  /// Makes `stream` wait for collectives of other groups.
  mlafix_status begin();

  /// Records the launch, so that collectives of other groups wait for it.
  mlafix_status end();

private:
  const CudaDriver &driver;
  CollectiveHistory &history;
  ForkSafeLock lock;
  CUstream stream;
  GroupRank self;
  unsigned long long capture = 0; ///< id of the stream's capture; 0 for none
};

/// Drops all events, for tests that replace the driver.
void forgetCollectivesForTesting();

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_COLLECTIVEORDER_H
