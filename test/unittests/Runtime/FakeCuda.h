//===- FakeCuda.h - A CUDA driver that only takes notes ---------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Installs itself as the runtime's driver while it lives, so that the CUDA path
// is tested without a GPU. Device memory is host memory.
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
    std::vector<uint64_t> params; ///< as many as the entry's paramSizes
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

  /// Told to the runtime.
  int numDevices = 2;
  int computeCapability = 90;
  int multiprocessors = 132;
  int maxThreads = 1024;
  bool hasParamInfo = true;
  int refusedQuestions = 0;     ///< for parameters that are not there
  bool hasToolFunctions = true; ///< memory, which only mlafix-run asks for
  std::vector<size_t> paramSizes = {8, 8, 8, 8, 8, 4};
  /// Images that contain a string are refused with an error: when loaded, or,
  /// as a lazily loading driver does, when a function is asked for.
  std::map<std::string, runtime::CUresult> refused, refusedLazily;
  std::set<std::string> missingEntries;
  runtime::CUresult launchResult = runtime::cuda::success;
  runtime::CUresult pointerResult = runtime::cuda::success;
  /// The number of the capture that a stream is in; none if it is not here.
  std::map<void *, unsigned long long> captures;
  runtime::CUresult waitResult = runtime::cuda::success;

  int loadMilliseconds = 0; ///< how long loading an image takes
  /// False: only count launches, and so allocate nothing for them.
  bool keepLaunches = true;

  /// Learnt from the runtime.
  int numLaunches = 0;
  std::vector<Launch> launches;
  std::vector<std::string> loads;
  int unloads = 0, retains = 0, pushes = 0, pops = 0;
  int deviceQuestions = 0; ///< calls of cuCtxGetDevice
  /// Launches, and waits and records of events, in words and in order.
  std::vector<std::string> streamWork;
  int captureMode = 0; ///< the thread's
  bool loadedInRelaxedMode = true, askedInRelaxedMode = true;
  int pointerQuestions = 0; ///< calls of cuPointerGetAttributes
  std::map<uint64_t, Allocation> allocations; ///< known to the "driver"

  /// The calling thread's context, null at first. Device 0's and 1's primary
  /// contexts are primary(0) and primary(1); own(…) are others.
  static runtime::CUcontext &current();
  runtime::CUcontext primary(int ordinal);
  runtime::CUcontext own(int ordinal);

  const runtime::CudaDriver &table() const { return driver; }
  /// After a change of hasParamInfo.
  void rebuildTable();

  // The driver's objects.
  struct Library {
    std::string image;
  };
  struct Kernel {
    std::string entry, image;
  };
  std::vector<std::unique_ptr<Library>> libraries;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<std::unique_ptr<Event>> events;
  std::mutex mutex; ///< launches come from several threads

private:
  runtime::CudaDriver driver;
};

/// The one that lives.
FakeCuda &fakeCuda();

/// Its functions for events and captures.
void addFakeEvents(runtime::CudaDriver &driver);

} // namespace mlafix::test

#endif // MLAFIX_TEST_FAKECUDA_H
