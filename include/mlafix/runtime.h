/*===- runtime.h - C interface of the mlafix runtime --------------*- C -*-===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Loads units (.mlafix files, docs/UnitFormat.md), finds kernels in them,    *|
|* and launches the kernels on an NVIDIA GPU or on the CPU. This is plain     *|
|* C11. It needs no LLVM and no CUDA headers, and does not link to CUDA: it   *|
|* opens libcuda at the first use.                                            *|
|*                                                                            *|
|* Conventions                                                                *|
|*  - Every function that can fail returns a mlafix_status; the sentence that *|
|*    explains it is in mlafix_last_error() of the same thread.               *|
|*  - Every struct begins with its struct_size, which the caller sets to      *|
|*    sizeof of the struct it was compiled with; fields that a smaller size   *|
|*    leaves out take their default. Use the MLAFIX_*_INIT macros.            *|
|*  - Strings that the library returns are UTF-8, NUL-terminated and belong   *|
|*    to the library; each function says how long they live.                  *|
|*  - All functions may be called from any thread at any time, except that an *|
|*    object must not be destroyed or changed while another thread uses it.   *|
|*  - No C++ exception ever leaves the library.                               *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef MLAFIX_RUNTIME_H
#define MLAFIX_RUNTIME_H

#include "runtime/base.h"
#include "runtime/embedded.h"
#include "runtime/group.h"
#include "runtime/launch.h"
#include "runtime/machine.h"
#include "runtime/tensor.h"
#include "runtime/unit.h"

#endif /* MLAFIX_RUNTIME_H */
