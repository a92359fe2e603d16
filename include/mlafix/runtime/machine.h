/*===- machine.h - devices, threads, the driver -------------------*- C -*-===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Functions for the devices of the machine, the threads of CPU launches and  *|
|* the CUDA driver.                                                           *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef MLAFIX_INCLUDE_RUNTIME_MACHINE_H
#define MLAFIX_INCLUDE_RUNTIME_MACHINE_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sets `count` to the number of CUDA devices. Initialises the driver. Error:
 * NO_DRIVER; `*count` is then 0. */
MLAFIX_API mlafix_status mlafix_cuda_device_count(int32_t *count)
    MLAFIX_NOEXCEPT;

enum {
  MLAFIX_MAX_TARGET_NAME =
      32 /**< maximum bytes of a target's name, with the NUL */
};

/** Writes the name of the best target for `device` to `name`, for example
 * "sm_90" or "x86-64-v3". `name` has `capacity` bytes; MLAFIX_MAX_TARGET_NAME
 * are enough. Initialises the driver if `device` is a CUDA device. Errors:
 * INVALID_ARGUMENT, NO_DRIVER, NOT_FOUND (the device does not exist),
 * DRIVER_ERROR, NO_IMAGE (there is no target for the CPU). */
MLAFIX_API mlafix_status mlafix_device_target(mlafix_device device, char *name,
                                              size_t capacity) MLAFIX_NOEXCEPT;

/** A function that works on the rows [begin, end). */
typedef void (*mlafix_task)(void *context, int64_t begin, int64_t end);

/** A function that calls task(context, b, e) with ranges that cover [0, count)
 * exactly once. The calls may have any order and run on any threads. The
 * function returns when all calls are done. Ranges of fewer than `grain` rows
 * cost more than they gain. */
typedef void (*mlafix_parallel_for)(void *user, int64_t count, int64_t grain,
                                    mlafix_task task, void *context);

/** Makes CPU launches run on the host's threads, by `parallel_for`. With NULL,
 * they run in the library's own pool again, which is the default. No CPU launch
 * may run meanwhile.
 *
 * The pool starts with the first launch that needs it, and starts anew in a
 * forked child. It has as many threads as the process may use (affinity, cgroup
 * quota, MLAFIX_NUM_THREADS). The caller counts as one of them. */
MLAFIX_API void mlafix_set_parallel_for(mlafix_parallel_for parallel_for,
                                        void *user) MLAFIX_NOEXCEPT;

/** Returns the number of threads of the library's pool, at least 1. It is the
 * number that the process may use; mlafix_set_parallel_for does not change
 * it. */
MLAFIX_API int32_t mlafix_cpu_threads(void) MLAFIX_NOEXCEPT;

/** Returns the total bytes of the last-level caches that the threads of CPU
 * launches use, or the value of MLAFIX_CPU_CACHE_BYTES. A launch that moves
 * more than half of it uses streaming stores. Returns 0 if memory runs out. */
MLAFIX_API int64_t mlafix_cpu_cache_bytes(void) MLAFIX_NOEXCEPT;

/** Runs `task` over [0, count) on the threads of CPU launches, and returns when
 * all is done. The parameters have the meaning of mlafix_parallel_for. Errors:
 * INVALID_ARGUMENT (`task` is null, `count` is negative, or `grain` is less
 * than 1). */
MLAFIX_API mlafix_status mlafix_run_task(int64_t count, int64_t grain,
                                         mlafix_task task,
                                         void *context) MLAFIX_NOEXCEPT;

/** A function of the CUDA driver. Cast it to the function's own type. */
typedef void (*mlafix_cuda_entry)(void);

/** Sets `entry` to the CUDA driver's function `name`, for example "cuMemAlloc".
 * It is for programs that use the driver beside the runtime without linking to
 * CUDA. The function has the signature that CUDA `version` gave it (1000 *
 * major + 10 * minor), and uses the legacy default stream. Initialises the
 * driver. `*entry` is valid until the process ends. Errors: INVALID_ARGUMENT,
 * NO_DRIVER, NOT_FOUND (the driver has no such function; `*entry` is then
 * NULL). */
MLAFIX_API mlafix_status mlafix_cuda_function(const char *name, int32_t version,
                                              mlafix_cuda_entry *entry)
    MLAFIX_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MLAFIX_INCLUDE_RUNTIME_MACHINE_H */
