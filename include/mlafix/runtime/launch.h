/*===- launch.h - checks and launches -----------------------------*- C -*-===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Functions that launch a kernel, once or many times.                        *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef MLAFIX_INCLUDE_RUNTIME_LAUNCH_H
#define MLAFIX_INCLUDE_RUNTIME_LAUNCH_H

#include "unit.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mlafix_launch_flags {
  /** Also asks the driver about every pointer: its kind of memory, its device,
   * and that the tensor lies within its allocation. This takes about a
   * microsecond per pointer. */
  MLAFIX_LAUNCH_DEEP_CHECKS = 1,
  /** Launches without the programmatic-dependent-launch attribute, even if the
   * code allows it. MLAFIX_NO_DEPENDENT_LAUNCH=1 does this for the whole
   * process. */
  MLAFIX_LAUNCH_NO_DEPENDENT = 2,
  /** The caller promises that no written tensor overlaps another one where the
   * runtime cannot tell from sizes and strides. An overlap that is certain is
   * still an error. */
  MLAFIX_LAUNCH_ASSUME_DISJOINT = 4
} mlafix_launch_flags;

/** Checks the call and launches the kernel if every check passes. An empty grid
 * (no rows) launches nothing and succeeds.
 *
 * CUDA: The launch is enqueued on `stream` of the current context (a CUstream
 * or cudaStream_t; NULL is the legacy default stream). If there is no current
 * context, or it is of another device, the device's primary context is used.
 * Once the unit is prepared, the call allocates nothing, does not synchronise
 * and is legal during stream capture. If the code waits for the preceding grid,
 * the launch uses programmatic stream serialization (dependent launch).
 *
 * CPU: `stream` must be NULL. The call returns when the work is done.
 *
 * Errors: INVALID_ARGUMENT (the message names the argument, what was expected
 * and what was given), those of mlafix_unit_prepare, DRIVER_ERROR. Nothing is
 * launched if a check fails. */
MLAFIX_API mlafix_status mlafix_launch(const mlafix_kernel *kernel,
                                       const mlafix_arg *args,
                                       uint32_t num_args, mlafix_device device,
                                       void *stream,
                                       uint32_t flags) MLAFIX_NOEXCEPT;

/** Makes only the checks of mlafix_launch. Prepares nothing, and uses the
 * driver only with MLAFIX_LAUNCH_DEEP_CHECKS. */
MLAFIX_API mlafix_status mlafix_validate(const mlafix_kernel *kernel,
                                         const mlafix_arg *args,
                                         uint32_t num_args,
                                         mlafix_device device,
                                         uint32_t flags) MLAFIX_NOEXCEPT;

/** Prepares a call that is to be launched many times. Checks it once, prepares
 * the unit, chooses the code version and packs the parameters. Sizes, strides
 * and scalars are copied. On success the caller owns `*bound`, and must destroy
 * it with mlafix_bound_destroy before it destroys the unit. `flags` has the
 * meaning of mlafix_launch and holds for all launches of the bound. */
MLAFIX_API mlafix_status mlafix_bind(const mlafix_kernel *kernel,
                                     const mlafix_arg *args, uint32_t num_args,
                                     mlafix_device device, uint32_t flags,
                                     mlafix_bound **bound) MLAFIX_NOEXCEPT;

MLAFIX_API void mlafix_bound_destroy(mlafix_bound *bound) MLAFIX_NOEXCEPT;

/** Sets new data pointers: `pointers[i]` for argument i of `num_args`. Entries
 * for scalars, lists and peers are ignored; lists and peers keep their
 * pointers. The new pointers are checked like those of a launch (null, overlap,
 * alignment), and may select another code version. On failure, the bound is
 * unchanged. Allocates nothing. No other thread may use the bound meanwhile. */
MLAFIX_API mlafix_status
mlafix_bound_set_pointers(mlafix_bound *bound, void *const *pointers,
                          uint32_t num_args) MLAFIX_NOEXCEPT;

/** Sets a new value for the scalar argument `index`. The value is checked like
 * that of a launch, and may select another code version. On failure, the bound
 * is unchanged. No other thread may use the bound meanwhile. */
MLAFIX_API mlafix_status
mlafix_bound_set_scalar(mlafix_bound *bound, uint32_t index,
                        const mlafix_arg *value) MLAFIX_NOEXCEPT;

/** Sets new pointers and scalars together. `scalars[i]` is the value of scalar
 * argument i; entries for other arguments are ignored. If `scalars` is NULL,
 * scalars keep their values. Conditions on several scalars are checked with all
 * new values. On failure, the bound is unchanged. */
MLAFIX_API mlafix_status mlafix_bound_set_args(
    mlafix_bound *bound, void *const *pointers, const mlafix_arg *scalars,
    uint32_t num_args) MLAFIX_NOEXCEPT;

/** Launches the bound call. `stream` has the meaning of mlafix_launch. The only
 * flag used is MLAFIX_LAUNCH_NO_DEPENDENT. Several threads may launch a bound
 * at the same time. */
MLAFIX_API mlafix_status mlafix_bound_launch(const mlafix_bound *bound,
                                             void *stream,
                                             uint32_t flags) MLAFIX_NOEXCEPT;

/** The arguments of the driver's launch call, for graphs that are built by
 * hand. */
typedef struct mlafix_launch_info {
  uint32_t struct_size;
  uint32_t num_params;
  /** CUDA: a CUkernel. Use it as `kern` of CUDA_KERNEL_NODE_PARAMS, or cast it
   * to CUfunction for cuLaunchKernel. It lives until the unit is unloaded.
   *
   * CPU: the entry point, void (*)(const uint64_t *params, int64_t begin,
   * int64_t end). It lives until the unit is destroyed. */
  void *function;
  /** CUDA: the addresses of `num_params` parameters, for kernelParams. CPU:
   * NULL. */
  void *const *kernel_params;
  /** The values of the parameters in 8-byte slots. A narrow value is in the low
   * bytes of its slot. A parameter with a value per rank has several slots.
   * `kernel_params` and `slots` belong to the bound and change with it. */
  const uint64_t *slots;
  int64_t rows;     /**< number of rows; 0: nothing to launch */
  uint32_t grid_x;  /**< CUDA: number of blocks, in one dimension */
  uint32_t block_x; /**< CUDA: number of threads per block */
  uint32_t variant; /**< index of the code version that runs */
  /** 1 if the code waits for the preceding grid, so that programmatic stream
   * serialization is safe; else 0. */
  int32_t dependent;
  const char *entry;     /**< name of the entry point */
  uint32_t num_slots;    /**< length of `slots`, at least `num_params` */
  uint32_t num_variants; /**< number of code versions to choose from */
  /** The total bytes of arguments that are read, and that are written. Each
   * element counts once. */
  uint64_t bytes_read, bytes_written;
  /** CUDA: the memory bandwidth in bytes per second, computed from the memory's
   * clock and width. It is 0 on the CPU, and if the driver does not report
   * it. */
  int64_t bandwidth;
  const char *target;   /**< the code's target, such as "sm_90" */
  const char *kernel;   /**< name of the kernel */
  const char *bindings; /**< the kernel's bindings: "D=128,T=bf16" */
} mlafix_launch_info;

#define MLAFIX_LAUNCH_INFO_INIT                                                \
  {                                                                            \
    sizeof(mlafix_launch_info), 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, 0,   \
        0, 0, 0, 0, NULL, NULL, NULL                                           \
  }

/** Fills in `info`. The caller must have set its struct_size. */
MLAFIX_API mlafix_status mlafix_bound_launch_info(
    const mlafix_bound *bound, mlafix_launch_info *info) MLAFIX_NOEXCEPT;

/** A code version that is considered for a bound call. The first version that
 * accepts the call is chosen, in the order of their indices. */
typedef struct mlafix_variant_info {
  uint32_t struct_size;
  int32_t is_chosen; /**< 1 if a launch runs this version, else 0 */
  const char *entry; /**< name of the entry point */
  /** The first guard that fails: its requirement and the actual value,
   * `expected stride 2048 in dim 0 of "suffix", got 4096`. It is "" if this
   * version accepts the call. The text is valid until this thread asks
   * again. */
  const char *refused;
} mlafix_variant_info;

#define MLAFIX_VARIANT_INFO_INIT                                               \
  { sizeof(mlafix_variant_info), 0, NULL, NULL }

/** Fills in `info` for code version `index`, which is less than
 * mlafix_launch_info::num_variants. The caller must have set its
 * struct_size. */
MLAFIX_API mlafix_status
mlafix_bound_variant_info(const mlafix_bound *bound, uint32_t index,
                          mlafix_variant_info *info) MLAFIX_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MLAFIX_INCLUDE_RUNTIME_LAUNCH_H */
