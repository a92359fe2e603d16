/*===- machine.h - devices, threads, the driver -------------------*- C -*-===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* The devices of the machine, and the threads and the driver of launches.    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef MLAFIX_INCLUDE_RUNTIME_MACHINE_H
#define MLAFIX_INCLUDE_RUNTIME_MACHINE_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How many CUDA devices there are. Initialises the driver. Error: NO_DRIVER
 * (and `*count` is 0). */
MLAFIX_API mlafix_status mlafix_cuda_device_count(int32_t *count)
    MLAFIX_NOEXCEPT;

enum {
  MLAFIX_MAX_TARGET_NAME = 32 /**< bytes of a target's name, with the NUL */
};

/** Name of the target that `device` runs best, as the compiler spells it:
 * "sm_90", "x86-64-v3". Written to `name`, of `capacity` bytes
 * (MLAFIX_MAX_TARGET_NAME suffice). Initialises the driver for a CUDA device.
 * Errors: INVALID_ARGUMENT, NO_DRIVER, NOT_FOUND (no such device),
 * DRIVER_ERROR, NO_IMAGE (a CPU for which there is no target). */
MLAFIX_API mlafix_status mlafix_device_target(mlafix_device device, char *name,
                                              size_t capacity) MLAFIX_NOEXCEPT;

/** Work on rows [begin, end). */
typedef void (*mlafix_task)(void *context, int64_t begin, int64_t end);

/** Calls task(context, b, e) so that the ranges cover [0, count) exactly once,
 * in any order, on any threads, and returns when all are done. Ranges shorter
 * than `grain` rows cost more than they gain. */
typedef void (*mlafix_parallel_for)(void *user, int64_t count, int64_t grain,
                                    mlafix_task task, void *context);

/** Use the host's threads for CPU launches instead of the library's own pool
 * (NULL: the pool again). Not to be called while CPU launches run. The pool
 * starts with the first launch that needs it, has as many threads as the
 * process may use (affinity, cgroup quota, MLAFIX_NUM_THREADS), counts the
 * caller as one of them, and starts anew in a forked child. */
MLAFIX_API void mlafix_set_parallel_for(mlafix_parallel_for parallel_for,
                                        void *user) MLAFIX_NOEXCEPT;

/** Threads that run CPU launches: those that the process may use (see
 * mlafix_set_parallel_for, which does not change this number). At least 1. */
MLAFIX_API int32_t mlafix_cpu_threads(void) MLAFIX_NOEXCEPT;

/** Total bytes of the last-level caches that these threads use, or the value of
 * MLAFIX_CPU_CACHE_BYTES. Launches that move more than half of it use streaming
 * stores. 0 if memory runs out. */
MLAFIX_API int64_t mlafix_cpu_cache_bytes(void) MLAFIX_NOEXCEPT;

/** Run `task` over [0, count) as a CPU launch would, on the same threads, and
 * return when all is done: a mlafix_parallel_for. Errors: INVALID_ARGUMENT
 * (null task, `count` below 0, `grain` below 1). */
MLAFIX_API mlafix_status mlafix_run_task(int64_t count, int64_t grain,
                                         mlafix_task task,
                                         void *context) MLAFIX_NOEXCEPT;

/** A function of the CUDA driver, to be cast to its own type. */
typedef void (*mlafix_cuda_entry)(void);

/** The CUDA driver's function `name` ("cuMemAlloc") in the form that CUDA
 * `version` gave it (1000 x major + 10 x minor; a later version may have
 * another signature), with the legacy default stream: for programs that use the
 * driver beside the runtime and link to no part of CUDA. Initialises the
 * driver; `*entry` stays valid until the process ends. Errors:
 * INVALID_ARGUMENT, NO_DRIVER, NOT_FOUND (the driver has no such function; then
 * `*entry` is NULL). */
MLAFIX_API mlafix_status mlafix_cuda_function(const char *name, int32_t version,
                                              mlafix_cuda_entry *entry)
    MLAFIX_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MLAFIX_INCLUDE_RUNTIME_MACHINE_H */
