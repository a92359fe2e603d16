//===- CudaDriver.h - The CUDA driver, opened at run time -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The table of its functions that launches need (CudaDriver.def). Others, for
// programs that use the driver beside the runtime: mlafix_cuda_function.
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

/// The driver's function lookup (cuGetProcAddress_v2): name, where to write the
/// function, CUDA version, flags, and where to write a status (may be null).
using GetProcAddress = CUresult (*)(const char *, void **, int, uint64_t,
                                    int *);

/// The driver's function table; tests supply their own.
struct CudaDriver {
  GetProcAddress getProcAddress = nullptr;
#define MLAFIX_CUDA_FUNCTION(NAME, VERSION, NEED, ...)                         \
  CUresult (*NAME)(__VA_ARGS__) = nullptr;
#include "CudaDriver.def"
};

/// Fills `driver` through `getProcAddress`. Returns the name of a missing
/// required function, else null.
const char *fillCudaDriver(GetProcAddress getProcAddress, CudaDriver &driver);

/// The driver, loaded and initialised, or NO_DRIVER with the reason.
mlafix_status getCudaDriver(const CudaDriver *&driver);

/// The driver if the process has loaded it already, else null (then no pointer
/// can be a device pointer). Never loads it.
const CudaDriver *getCudaDriverIfLoaded();

/// Replaces the driver by this table (null: restores the real one).
void setCudaDriverForTesting(const CudaDriver *driver);

/// Records "FUNCTION returned CUDA_ERROR_X (text)" as a DRIVER_ERROR (or
/// OUT_OF_MEMORY).
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
