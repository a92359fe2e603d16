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
    std::vector<uint64_t> params; ///< one for each of paramSizes
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

  /// Answers of the fake driver.
  int numDevices = 2;
  int computeCapability = 90;
  int multiprocessors = 132;
  int maxThreads = 1024;
  bool hasParamInfo = true;
  int refusedQuestions = 0;     ///< about nonexistent parameters
  bool hasToolFunctions = true; ///< memory functions, for mlafix-run
  std::vector<size_t> paramSizes = {8, 8, 8, 8, 8, 4};
  /// Errors for images that contain a string: when the image is loaded, or, as
  /// in a lazily loading driver, when a function is requested.
  std::map<std::string, runtime::CUresult> refused, refusedLazily;
  std::set<std::string> missingEntries;
  runtime::CUresult launchResult = runtime::cuda::success;
  runtime::CUresult pointerResult = runtime::cuda::success;
  /// Maps each stream that is being captured to the number of its capture.
  std::map<void *, unsigned long long> captures;
  runtime::CUresult waitResult = runtime::cuda::success;

  int loadMilliseconds = 0; ///< time to load an image
  /// If false, launches are counted but not recorded, and allocate nothing.
  bool keepLaunches = true;

  /// Records of the runtime's calls.
  int numLaunches = 0;
  std::vector<Launch> launches;
  std::vector<std::string> loads;
  int unloads = 0, retains = 0, pushes = 0, pops = 0;
  int deviceQuestions = 0; ///< calls of cuCtxGetDevice
  /// Launches, and waits for and records of events, as text in their order.
  std::vector<std::string> streamWork;
  int captureMode = 0; ///< of the thread
  bool loadedInRelaxedMode = true, askedInRelaxedMode = true;
  int pointerQuestions = 0; ///< calls of cuPointerGetAttributes
  std::map<uint64_t, Allocation> allocations; ///< memory of the fake driver

  /// The calling thread's context, initially null. primary(0) and primary(1)
  /// are the primary contexts of devices 0 and 1; own(…) are others.
  static runtime::CUcontext &current();
  runtime::CUcontext primary(int ordinal);
  runtime::CUcontext own(int ordinal);

  const runtime::CudaDriver &table() const { return driver; }
  /// To be called after a change of hasParamInfo.
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
  std::mutex mutex; ///< several threads launch

private:
  runtime::CudaDriver driver;
};

/// Returns the FakeCuda that currently exists.
FakeCuda &fakeCuda();

/// Adds the fake functions for events and captures.
void addFakeEvents(runtime::CudaDriver &driver);

} // namespace mlafix::test

#endif // MLAFIX_TEST_FAKECUDA_H
