//===- FakeCuda.h - A CUDA driver that records calls ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A FakeCuda object is the runtime's driver as long as it lives, so that tests
// of the CUDA path need no GPU. Device memory is host memory.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TEST_FAKECUDA_H
#define MLAFIX_TEST_FAKECUDA_H

#include "CudaDriver.h"

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace mlafix::test {

class FakeCuda {
public:
  /// The record of one launch.
  struct Launch {
    std::string entry, image;
    unsigned grid = 0, block = 0;
    void *stream = nullptr;
    runtime::CUcontext context = nullptr;
    bool dependent = false;
    std::vector<uint64_t> params; ///< one value for each element of paramSizes
  };
  struct Allocation {
    size_t size;
    int ordinal;
    unsigned memoryType;
    int managed;
  };
  struct Event {
    runtime::CUcontext context;
    int number;
  };

  FakeCuda();
  ~FakeCuda();

  /// The answers of the fake driver. Tests may change them.
  int numDevices = 2;
  int computeCapability = 90;
  int multiprocessors = 132;
  int maxThreads = 1024;
  bool hasParamInfo = true;
  int refusedQuestions = 0;     ///< questions about nonexistent parameters
  bool hasToolFunctions = true; ///< true if mlafix-run's memory functions exist
  std::vector<size_t> paramSizes = {8, 8, 8, 8, 8, 4};
  /// Maps a string to the error for images that contain it. For `refused`, the
  /// load of the image fails. For `refusedLazily`, the image is loaded, but
  /// requests for its functions fail, as in a driver that loads lazily.
  std::map<std::string, runtime::CUresult> refused, refusedLazily;
  std::set<std::string> missingEntries;
  runtime::CUresult launchResult = runtime::cuda::success;
  runtime::CUresult pointerResult = runtime::cuda::success;
  /// Maps each stream that is being captured to the number of its capture.
  std::map<void *, unsigned long long> captures;
  runtime::CUresult waitResult = runtime::cuda::success;

  int loadMilliseconds = 0; ///< how long the load of an image takes
  /// If false, launches are counted but not recorded, and allocate nothing.
  bool keepLaunches = true;

  /// Records of the runtime's calls.
  int numLaunches = 0;
  std::vector<Launch> launches;
  std::vector<std::string> loads;
  int unloads = 0, retains = 0, pushes = 0, pops = 0;
  int deviceQuestions = 0; ///< calls of cuCtxGetDevice
  /// Launches, event waits and event records as text, in order.
  std::vector<std::string> streamWork;
  int captureMode = 0; ///< the capture mode of the thread
  bool loadedInRelaxedMode = true, askedInRelaxedMode = true;
  int pointerQuestions = 0; ///< calls of cuPointerGetAttributes
  std::map<uint64_t, Allocation> allocations; ///< memory of the fake driver

  /// Returns the calling thread's context, which is initially null.
  static runtime::CUcontext &current();
  /// Returns the primary context of a device.
  runtime::CUcontext primary(int ordinal);
  /// Returns the context that the user created on a device.
  runtime::CUcontext own(int ordinal);

  const runtime::CudaDriver &table() const { return driver; }
  /// Rebuilds the driver's table. Call this after a change of hasParamInfo.
  void rebuildTable();

  // Objects of the fake driver.
  struct Library {
    std::string image;
  };
  struct Kernel {
    std::string entry, image;
  };
  std::vector<std::unique_ptr<Library>> libraries;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<std::unique_ptr<Event>> events;
  std::mutex mutex; ///< guards the records, since several threads launch

private:
  runtime::CudaDriver driver;
};

/// Returns the FakeCuda that currently exists.
FakeCuda &fakeCuda();

/// Adds the fake functions for events and captures.
void addFakeEvents(runtime::CudaDriver &driver);

} // namespace mlafix::test

#endif // MLAFIX_TEST_FAKECUDA_H
