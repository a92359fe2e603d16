//===- CollectiveOrder.h - Collectives run one after the other --*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A collective kernel keeps its multiprocessors while it waits for the other
// ranks. Of two groups, one rank may have begun the launch of the one, another
// rank that of the other, and each be filled by what it has begun: then both
// wait for what cannot begin. So a collective begins once those of other groups
// that the process launched before it on the device are complete, whatever
// streams they are in. Those of its own group are in order already, or are
// other ranks' (a process may be several ranks of a device), for which it
// waits.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_COLLECTIVEORDER_H
#define MLAFIX_RUNTIME_COLLECTIVEORDER_H

#include "CudaDriver.h"
#include "Fork.h"

namespace mlafix::runtime {

struct CollectiveHistory;

/// Who launches.
struct GroupRank {
  uint64_t group; ///< the address of rank 0's workspace, which is no other's
  uint32_t rank;
};

/// Held while a collective is enqueued on `stream` of the current context,
/// which is of device `ordinal`: begin(), the launch, end(). Launches that are
/// captured follow those captured before them for the same graph, others those
/// that were not captured.
class CollectiveTurn {
public:
  CollectiveTurn(const CudaDriver &driver, int32_t ordinal, void *stream,
                 GroupRank self);

  /// Has `stream` wait for the collectives of other groups.
  mlafix_status begin();

  /// The launch is what collectives of other groups wait for.
  mlafix_status end();

private:
  const CudaDriver &driver;
  CollectiveHistory &history;
  ForkSafeLock lock;
  CUstream stream;
  GroupRank self;
  unsigned long long capture = 0; ///< the number of the stream's; 0 for none
};

/// The events so far are those of a driver that is gone.
void forgetCollectivesForTesting();

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_COLLECTIVEORDER_H
