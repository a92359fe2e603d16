//===- CudaDriver.h - The CUDA driver, opened at run time -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Holds the driver functions that launches need (CudaDriver.def). Programs that
// use other driver functions get them from mlafix_cuda_function().
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_CUDADRIVER_H
#define MLAFIX_RUNTIME_CUDADRIVER_H

#include "mlafix/CudaTypes.h"
#include "mlafix/runtime.h"

#include <cstddef>
#include <cstdint>

namespace mlafix::runtime {

using namespace driver;

/// The type of cuGetProcAddress_v2. Its parameters are the function's name,
/// where to write its address, a CUDA version, flags, and where to write a
/// status (may be null).
using GetProcAddress = CUresult (*)(const char *, void **, int, uint64_t,
                                    int *);

/// A table of driver functions. Tests supply their own table.
struct CudaDriver {
  GetProcAddress getProcAddress = nullptr;
#define MLAFIX_CUDA_FUNCTION(NAME, VERSION, NEED, ...)                         \
  CUresult (*NAME)(__VA_ARGS__) = nullptr;
#include "CudaDriver.def"
};

/// Fills `driver` with functions that `getProcAddress` finds. Returns the name
/// of a required function that is missing, or null if none is.
const char *fillCudaDriver(GetProcAddress getProcAddress, CudaDriver &driver);

/// Sets `driver` to the CUDA driver, loaded and initialised. Error: NO_DRIVER,
/// with the reason.
mlafix_status getCudaDriver(const CudaDriver *&driver);

/// Returns the driver if the process has loaded it already. Otherwise returns
/// null and does not load the driver. If the result is null, no pointer can be
/// a device pointer.
const CudaDriver *getCudaDriverIfLoaded();

/// Replaces the driver by a test's table. Null restores the real driver.
void setCudaDriverForTesting(const CudaDriver *driver);

/// Fails with "FUNCTION returned CUDA_ERROR_X (number: text)". The status is
/// OUT_OF_MEMORY if the driver ran out of memory, else DRIVER_ERROR.
mlafix_status cudaError(const CudaDriver &driver, const char *function,
                        CUresult result);

#define MLAFIX_CUDA_TRY(DRIVER, FUNCTION, ...)                                 \
  do {                                                                         \
    CUresult mlafixCudaResult = (DRIVER).FUNCTION(__VA_ARGS__);                \
    if (mlafixCudaResult != cuda::success)                                     \
      return cudaError(DRIVER, #FUNCTION, mlafixCudaResult);                   \
  } while (false)

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_CUDADRIVER_H
