//===- FakeEvents.cpp - Fake CUDA events and captures ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include <cstdio>

using namespace mlafix::runtime;
using namespace mlafix::test;

namespace {

/// Records a call as text, for example "wait 1 on 0x10" for event 1 and stream
/// 0x10.
void noteEvent(const char *verb, CUevent event, CUstream stream) {
  char text[64];
  std::snprintf(text, sizeof(text), "%s %d on %p", verb,
                reinterpret_cast<FakeCuda::Event *>(event)->number,
                static_cast<void *>(stream));
  fakeCuda().streamWork.push_back(text);
}

CUresult fakeStreamGetCaptureInfo(CUstream stream, int *status,
                                  unsigned long long *id) {
  auto found = fakeCuda().captures.find(stream);
  bool isCaptured = found != fakeCuda().captures.end();
  *status = isCaptured ? cuda::captureStatusActive : cuda::captureStatusNone;
  // Without a capture, the runtime must not use this number.
  *id = isCaptured ? found->second : 77;
  return cuda::success;
}
CUresult fakeEventCreate(CUevent *event, unsigned flags) {
  if (flags != cuda::eventDisableTiming)
    return cuda::errorInvalidValue;
  auto number = static_cast<int>(fakeCuda().events.size()) + 1;
  fakeCuda().events.push_back(std::make_unique<FakeCuda::Event>(
      FakeCuda::Event{FakeCuda::current(), number}));
  *event = reinterpret_cast<CUevent>(fakeCuda().events.back().get());
  return cuda::success;
}
CUresult fakeEventRecord(CUevent event, CUstream stream) {
  if (reinterpret_cast<FakeCuda::Event *>(event)->context !=
      FakeCuda::current())
    return cuda::errorInvalidHandle;
  noteEvent("record", event, stream);
  return cuda::success;
}
CUresult fakeEventDestroy(CUevent event) {
  noteEvent("destroy", event, nullptr);
  return cuda::success;
}
CUresult fakeStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  noteEvent("wait", event, stream);
  return fakeCuda().waitResult;
}

} // namespace

void mlafix::test::addFakeEvents(CudaDriver &driver) {
  driver.cuStreamGetCaptureInfo = fakeStreamGetCaptureInfo;
  driver.cuStreamWaitEvent = fakeStreamWaitEvent;
  driver.cuEventCreate = fakeEventCreate;
  driver.cuEventRecord = fakeEventRecord;
  driver.cuEventDestroy = fakeEventDestroy;
}
