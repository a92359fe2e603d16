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
|*  - A function that can fail returns a mlafix_status. mlafix_last_error()   *|
|*    on the same thread then returns a sentence that explains the failure.   *|
|*  - A struct begins with `struct_size`. The caller sets it to sizeof the    *|
|*    struct with which it was compiled. Fields beyond that size take their   *|
|*    defaults. Use the MLAFIX_*_INIT macros.                                 *|
|*  - Strings that the library returns are UTF-8, end with a NUL and belong   *|
|*    to the library. Each function says how long they live.                  *|
|*  - Any thread may call any function at any time. But an object must not    *|
|*    be destroyed or changed while another thread uses it.                   *|
|*  - No C++ exception leaves the library.                                    *|
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
