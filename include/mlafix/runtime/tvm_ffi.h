/*===- tvm_ffi.h - kernels as functions of TVM-FFI ----------------*- C -*-===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Called by the sources that mlafix-opt writes (--emit=tvm-ffi,              *|
|* docs/Embedding.md). It is in libmlafix_tvm_ffi.a, beside the runtime       *|
|* itself, and not in libmlafix_runtime.so.                                   *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef MLAFIX_INCLUDE_RUNTIME_TVM_FFI_H
#define MLAFIX_INCLUDE_RUNTIME_TVM_FFI_H

#include "embedded.h"
#include "launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The body of a TVM-FFI function: launch the first of the kernels
 * `indices[0]` to `indices[num_indices - 1]` of `embedded` whose dtypes, ranks,
 * sizes and absent arguments are those of the call. `args` and `result` are
 * TVMFFIAny: tensors (DLTensor or TVM-FFI's own), None for an omitted argument,
 * int, float and bool for scalars. On a CUDA device the launch is on
 * TVMFFIEnvGetStream's stream. Returns 0, and None in `result`; or -1 with an
 * error of TVM-FFI raised: TypeError for an argument of another kind,
 * ValueError for what mlafix_launch calls INVALID_ARGUMENT, RuntimeError for
 * everything else. */
int mlafix_tvm_ffi_call(mlafix_embedded *embedded, const uint32_t *indices,
                        uint32_t num_indices, const void *args,
                        int32_t num_args, void *result) MLAFIX_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MLAFIX_INCLUDE_RUNTIME_TVM_FFI_H */
