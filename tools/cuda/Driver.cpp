//===- Driver.cpp - The CUDA driver's functions, for the tools ------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "cuda/Driver.h"

#include "mlafix/runtime.hpp"

#include <map>
#include <stdexcept>

using namespace mlafix;
using namespace mlafix::tools;

namespace {
DriverFunction<CUresult, const char **> cuGetErrorName{"cuGetErrorName", 6000};
DriverFunction<CUresult, const char **> cuGetErrorString{"cuGetErrorString",
                                                         6000};
DriverFunction<CUcontext *, CUdevice> cuDevicePrimaryCtxRetain{
    "cuDevicePrimaryCtxRetain", 7000};
DriverFunction<CUcontext> cuCtxPushCurrent{"cuCtxPushCurrent", 4000};
DriverFunction<CUcontext *> cuCtxPopCurrent{"cuCtxPopCurrent", 4000};
} // namespace

mlafix_device mlafix::tools::parseDevice(const std::string &text) {
  if (text == "cpu")
    return {MLAFIX_CPU, 0};
  if (text == "cuda")
    return {MLAFIX_CUDA, 0};
  std::string digits = text.compare(0, 5, "cuda:") == 0 ? text.substr(5) : "";
  if (digits.empty() || digits.size() > 3 ||
      digits.find_first_not_of("0123456789") != digits.npos)
    throw std::runtime_error("--device: expected cpu or cuda:N, got \"" + text +
                             "\"");
  return {MLAFIX_CUDA, std::stoi(digits)};
}

std::string mlafix::tools::describeError(const char *function,
                                         CUresult result) {
  const char *name = nullptr, *text = nullptr;
  if (cuGetErrorName.call(result, &name) != driver::cuda::success || !name)
    name = "an unknown error";
  if (cuGetErrorString.call(result, &text) != driver::cuda::success || !text)
    text = "no description";
  return std::string(function) + " returned " + name + " (" +
         std::to_string(result) + ": " + text + ")";
}

void mlafix::tools::throwError(const char *function, CUresult result) {
  throw Error(result == driver::cuda::errorOutOfMemory ? MLAFIX_OUT_OF_MEMORY
                                                       : MLAFIX_DRIVER_ERROR,
              describeError(function, result));
}

mlafix_cuda_entry mlafix::tools::findFunction(const char *name, int version) {
  mlafix_cuda_entry entry = nullptr;
  check(mlafix_cuda_function(name, version, &entry));
  return entry;
}

PrimaryContext::PrimaryContext(int32_t ordinal) {
  int32_t count = 0;
  check(mlafix_cuda_device_count(&count));
  if (ordinal >= count)
    throw Error(MLAFIX_NOT_FOUND,
                "expected a CUDA device cuda:" + std::to_string(ordinal) +
                    ", got a machine with " + std::to_string(count) +
                    " of them");
  cuDeviceGet(&handle, ordinal);
  static std::map<CUdevice, CUcontext> retained;
  CUcontext &context = retained[handle];
  if (!context)
    cuDevicePrimaryCtxRetain(&context, handle);
  cuCtxPushCurrent(context);
}

PrimaryContext::~PrimaryContext() {
  CUcontext popped = nullptr;
  cuCtxPopCurrent.call(&popped);
}
