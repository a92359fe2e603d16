//===- CollectiveOrder.cpp - Collectives run one after the other ----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "CollectiveOrder.h"

#include "Unit.h"

#include <array>
#include <utility>
#include <vector>

using namespace mlafix::runtime;

namespace {

/// The latest collective of one rank. `event` is recorded after it.
struct Mark {
  uint32_t rank;
  CUstream stream;
  CUevent event;
};

/// `latest` has the latest collective of each rank of `group`. `before` has
/// those of the group whose collectives came before. The collectives of `group`
/// wait for those in `before`.
struct Order {
  uint64_t group = 0;             ///< GroupRank::group of `latest`
  unsigned long long capture = 0; ///< id of the capture of `latest`; 0: none
  std::vector<Mark> latest, before;
  std::vector<CUevent> spare; ///< events to use again

  Mark *find(uint32_t rank) {
    for (Mark &mark : latest)
      if (mark.rank == rank)
        return &mark;
    return nullptr;
  }
  void drop(std::vector<Mark> &marks) {
    for (const Mark &mark : marks)
      spare.push_back(mark.event);
    marks.clear();
  }
  /// Starts a list for another group or another capture. The current list
  /// becomes `before`, or is dropped if the capture changes.
  void turnTo(uint64_t next, unsigned long long nextCapture) {
    drop(before);
    std::swap(before, latest);
    if (nextCapture != capture)
      drop(before);
    group = next;
    capture = nextCapture;
  }
};

} // namespace

/// The collectives on one device: those launched, and those captured in a
/// graph.
struct mlafix::runtime::CollectiveHistory {
  std::mutex mutex;
  Order launched, captured;

  Order &of(unsigned long long capture) {
    return capture ? captured : launched;
  }
};

static std::array<CollectiveHistory, numDeviceSlots> histories;

/// Returns true if `stream` denotes the same queue on every thread, so that its
/// work executes in the order of submission.
static bool isOneStream(CUstream stream) {
  return stream != cuda::streamPerThread;
}

/// Returns true if `result` says that an event is no longer valid. Its context
/// was then destroyed, so the work before the event is not running.
static bool isGone(CUresult result) {
  return result == cuda::errorInvalidHandle ||
         result == cuda::errorContextIsDestroyed;
}

CollectiveTurn::CollectiveTurn(const CudaDriver &driver, int32_t ordinal,
                               void *stream, GroupRank self)
    : driver(driver), history(histories[1 + static_cast<size_t>(ordinal)]),
      lock(history.mutex), stream(static_cast<CUstream>(stream)), self(self) {}

mlafix_status CollectiveTurn::begin() {
  int status = cuda::captureStatusNone;
  MLAFIX_CUDA_TRY(driver, cuStreamGetCaptureInfo, stream, &status, &capture);
  if (status != cuda::captureStatusActive)
    capture = 0;
  Order &order = history.of(capture);
  bool isSame = order.group == self.group;
  if (order.capture != capture || (isSame && order.find(self.rank)))
    return MLAFIX_OK;
  for (const Mark &mark : isSame ? order.before : order.latest) {
    if (mark.stream == stream && isOneStream(stream))
      continue;
    CUresult result = driver.cuStreamWaitEvent(stream, mark.event, 0);
    if (result != cuda::success && !isGone(result))
      return cudaError(driver, "cuStreamWaitEvent", result);
  }
  return MLAFIX_OK;
}

mlafix_status CollectiveTurn::end() {
  Order &order = history.of(capture);
  if (order.group != self.group || order.capture != capture)
    order.turnTo(self.group, capture);
  Mark *mark = order.find(self.rank);
  if (!mark) {
    CUevent event = nullptr;
    if (!order.spare.empty()) {
      event = order.spare.back();
      order.spare.pop_back();
    }
    order.latest.push_back({self.rank, stream, event});
    mark = &order.latest.back();
  }
  mark->stream = stream;
  if (mark->event && driver.cuEventRecord(mark->event, stream) == cuda::success)
    return MLAFIX_OK;
  // The mark has no event yet, or its event belongs to another context of the
  // device. Create an event in the current context.
  if (mark->event)
    driver.cuEventDestroy(mark->event);
  mark->event = nullptr;
  MLAFIX_CUDA_TRY(driver, cuEventCreate, &mark->event,
                  cuda::eventDisableTiming);
  MLAFIX_CUDA_TRY(driver, cuEventRecord, mark->event, stream);
  return MLAFIX_OK;
}

void mlafix::runtime::forgetCollectivesForTesting() {
  for (CollectiveHistory &history : histories)
    history.launched = history.captured = Order();
}
