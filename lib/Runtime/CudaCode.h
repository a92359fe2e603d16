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

/// Makes a context of the device current while in scope. It keeps the current
/// context if that belongs to the device. Otherwise it uses the device's
/// primary context.
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

/// Lets this thread load code and make queries while some stream is captured.
/// Loading and queries are not stream operations. But a capture that is not in
/// relaxed mode may forbid the driver functions that they use.
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
/// recognise its handle. Does not create a context, since that takes memory.
mlafix_status retainActivePrimary(const CudaDriver &driver, int32_t ordinal);

/// Forgets the retained contexts. For tests that replace the driver.
void forgetContextsForTesting();

/// Sets `computeCapability` to that of a device, as 10 * major + minor.
mlafix_status readComputeCapability(const CudaDriver &driver, int32_t ordinal,
                                    int &computeCapability);

/// An image that may run on a device. rankImages() lists the images to try for
/// a compute capability (10 * major + minor), best first. See
/// docs/UnitFormat.md, "Choosing an image".
struct Candidate {
  const TargetCode *code;
  const Image *image;
};
std::vector<Candidate> rankImages(const KernelDesc &kernel,
                                  int computeCapability);

/// A launch of a one-dimensional grid.
struct CudaLaunch {
  void *function;
  uint32_t blocks, threads;
  void **params;  ///< the addresses of the parameters
  bool dependent; ///< true: use programmatic dependent launch
};

/// Enqueues a launch on `stream` of the current context.
mlafix_status launchOnCuda(const CudaDriver &driver, const CudaLaunch &launch,
                           void *stream);

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_CUDACODE_H
