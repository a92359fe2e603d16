//===- CudaCode.h - CUDA: contexts, code, launches --------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_CUDACODE_H
#define MLAFIX_RUNTIME_CUDACODE_H

#include "CudaDriver.h"
#include "UnitModel.h"

namespace mlafix::runtime {

/// While in scope, a context of the device is current: the previous one if it
/// belongs to the device, else the device's primary context.
class ContextScope {
public:
  ContextScope(const CudaDriver &driver) : driver(driver) {}
  ContextScope(const ContextScope &) = delete;
  ContextScope &operator=(const ContextScope &) = delete;
  ~ContextScope();
  mlafix_status enter(int32_t ordinal);

private:
  const CudaDriver &driver;
  bool pushed = false;
};

/// Loading and queries are no stream operations, but may call functions that a
/// stream capture in another mode forbids to the thread.
class RelaxedCapture {
public:
  RelaxedCapture(const CudaDriver &driver) : driver(driver) {
    active = driver.cuThreadExchangeStreamCaptureMode(&mode) == cuda::success;
  }
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;
  ~RelaxedCapture() {
    if (active)
      driver.cuThreadExchangeStreamCaptureMode(&mode);
  }

private:
  const CudaDriver &driver;
  int mode = cuda::captureModeRelaxed;
  bool active;
};

/// Retains the device's primary context if it is active, so that launches can
/// recognise it by its handle. Does not create one: that takes memory.
mlafix_status retainActivePrimary(const CudaDriver &driver, int32_t ordinal);

/// Drops retained contexts, for tests that replace the driver.
void forgetContextsForTesting();

/// Reads the compute capability of a device, as 10 x major + minor.
mlafix_status readComputeCapability(const CudaDriver &driver, int32_t ordinal,
                                    int &computeCapability);

/// The images to try on a device of a compute capability (10 x major + minor),
/// best first: docs/UnitFormat.md, "Choosing an image".
struct Candidate {
  const TargetCode *code;
  const Image *image;
};
std::vector<Candidate> rankImages(const KernelDesc &kernel,
                                  int computeCapability);

/// A one-dimensional grid of `blocks` blocks with `threads` threads each.
struct CudaLaunch {
  void *function;
  uint32_t blocks, threads;
  void **params;  ///< the address of each parameter
  bool dependent; ///< uses programmatic dependent launch
};

/// Enqueues a launch on `stream` of the current context.
mlafix_status launchOnCuda(const CudaDriver &driver, const CudaLaunch &launch,
                           void *stream);

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_CUDACODE_H
