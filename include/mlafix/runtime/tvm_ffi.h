/*===- tvm_ffi.h - kernels as functions of TVM-FFI ----------------*- C -*-===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* The sources that mlafix-opt writes call this function (--emit=tvm-ffi,     *|
|* docs/Embedding.md). It is in libmlafix_tvm_ffi.a, which also contains the  *|
|* runtime, and not in libmlafix_runtime.so.                                  *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef MLAFIX_INCLUDE_RUNTIME_TVM_FFI_H
#define MLAFIX_INCLUDE_RUNTIME_TVM_FFI_H

#include "embedded.h"
#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Implements a TVM-FFI function. Launches the first kernel that matches the
 * call in dtypes, ranks, sizes and absent arguments. The candidates are the
 * kernels `indices[0]` to `indices[num_indices - 1]` of `embedded`. `args` and
 * `result` are TVMFFIAny. An argument is a tensor (DLTensor or TVM-FFI's own),
 * None if omitted, or an int, float or bool for a scalar. On a CUDA device, the
 * launch is on the stream of TVMFFIEnvGetStream.
 *
 * On success, returns 0 and sets `result` to None. On failure, returns -1 and
 * raises an error of TVM-FFI. This is TypeError for an argument of a wrong
 * kind, ValueError if mlafix_launch fails with INVALID_ARGUMENT, and
 * RuntimeError for every other error. */
int mlafix_tvm_ffi_call(mlafix_embedded *embedded, const uint32_t *indices,
                        uint32_t num_indices, const void *args,
                        int32_t num_args, void *result) MLAFIX_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MLAFIX_INCLUDE_RUNTIME_TVM_FFI_H */
