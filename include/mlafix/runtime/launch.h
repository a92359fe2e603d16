/*===- launch.h - checks and launches -----------------------------*- C -*-===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Launch a kernel, once or many times.                                       *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef MLAFIX_INCLUDE_RUNTIME_LAUNCH_H
#define MLAFIX_INCLUDE_RUNTIME_LAUNCH_H

#include "unit.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mlafix_launch_flags {
  /** Also ask the driver about every pointer: kind of memory, device, and that
   * the tensor lies within its allocation. Costs about a microsecond each. */
  MLAFIX_LAUNCH_DEEP_CHECKS = 1,
  /** Launch without the programmatic-dependent-launch attribute, whatever the
   * code allows (as MLAFIX_NO_DEPENDENT_LAUNCH=1 does for the process). */
  MLAFIX_LAUNCH_NO_DEPENDENT = 2,
  /** The caller promises that written tensors overlap no others where the
   * runtime cannot tell from sizes and strides. A certain overlap is still an
   * error. */
  MLAFIX_LAUNCH_ASSUME_DISJOINT = 4
} mlafix_launch_flags;

/** Check the call and, if all is well, launch.
 *
 * CUDA: enqueued on `stream` (a CUstream or cudaStream_t; NULL is the legacy
 * default stream) of the current context; where no context is current, or one
 * of another device, the call uses the device's primary context. Once the
 * unit is prepared the call allocates nothing, does not synchronise and is
 * legal in stream capture. Dependent launch: kernels whose code waits for the
 * preceding grid are launched with programmatic stream serialization. CPU:
 * `stream` must be NULL; the call returns when the work is done. An empty grid
 * (no rows) launches nothing and succeeds.
 *
 * Errors: INVALID_ARGUMENT (the message names the argument, what was expected
 * and what was given), those of mlafix_unit_prepare, DRIVER_ERROR. Nothing is
 * launched when a check fails. */
MLAFIX_API mlafix_status mlafix_launch(const mlafix_kernel *kernel,
                                       const mlafix_arg *args,
                                       uint32_t num_args, mlafix_device device,
                                       void *stream,
                                       uint32_t flags) MLAFIX_NOEXCEPT;

/** Only the checks of mlafix_launch. Prepares nothing; touches the driver only
 * with MLAFIX_LAUNCH_DEEP_CHECKS. */
MLAFIX_API mlafix_status mlafix_validate(const mlafix_kernel *kernel,
                                         const mlafix_arg *args,
                                         uint32_t num_args,
                                         mlafix_device device,
                                         uint32_t flags) MLAFIX_NOEXCEPT;

/** Check the call once, prepare the unit, choose the code version and pack the
 * parameters, to launch many times. Sizes, strides and scalars are copied. On
 * success `*bound` is the caller's, to be destroyed with mlafix_bound_destroy,
 * before the unit. `flags` as in mlafix_launch, and kept. */
MLAFIX_API mlafix_status mlafix_bind(const mlafix_kernel *kernel,
                                     const mlafix_arg *args, uint32_t num_args,
                                     mlafix_device device, uint32_t flags,
                                     mlafix_bound **bound) MLAFIX_NOEXCEPT;

MLAFIX_API void mlafix_bound_destroy(mlafix_bound *bound) MLAFIX_NOEXCEPT;

/** Set new data pointers, `pointers[i]` for each of the `num_args` arguments.
 * Entries of scalars, lists and peers are ignored; lists and peers keep their
 * pointers. Checked like a launch (null, overlap, alignment); may select
 * another code version. On failure the bound is unchanged. Allocates nothing.
 * Not to be called while another thread uses the bound. */
MLAFIX_API mlafix_status
mlafix_bound_set_pointers(mlafix_bound *bound, void *const *pointers,
                          uint32_t num_args) MLAFIX_NOEXCEPT;

/** Set a new value for scalar argument `index`, under the same conditions. */
MLAFIX_API mlafix_status
mlafix_bound_set_scalar(mlafix_bound *bound, uint32_t index,
                        const mlafix_arg *value) MLAFIX_NOEXCEPT;

/** Set pointers and scalars together: `scalars[i]` is the value of scalar
 * argument i; entries of other arguments are ignored. If `scalars` is NULL,
 * scalars keep their values. Assumptions about several scalars are checked with
 * all new values. On failure the bound is unchanged. */
MLAFIX_API mlafix_status mlafix_bound_set_args(
    mlafix_bound *bound, void *const *pointers, const mlafix_arg *scalars,
    uint32_t num_args) MLAFIX_NOEXCEPT;

/** Launch. `stream` as in mlafix_launch; the only flag used is
 * MLAFIX_LAUNCH_NO_DEPENDENT. Several threads may launch a bound at the same
 * time. */
MLAFIX_API mlafix_status mlafix_bound_launch(const mlafix_bound *bound,
                                             void *stream,
                                             uint32_t flags) MLAFIX_NOEXCEPT;

/** The arguments of the driver's launch call, for graphs that are built by
 * hand. */
typedef struct mlafix_launch_info {
  uint32_t struct_size;
  uint32_t num_params;
  /** CUDA: a CUkernel: the `kern` member of CUDA_KERNEL_NODE_PARAMS, or cast to
   * CUfunction for cuLaunchKernel. CPU: the entry point,
   * void (*)(const uint64_t *params, int64_t begin, int64_t end).
   * Lives until the unit is unloaded (CUDA) or destroyed (CPU). */
  void *function;
  /** CUDA: `num_params` pointers, as kernelParams wants them. NULL on the CPU.
   */
  void *const *kernel_params;
  /** The parameter values, one 8-byte slot each (narrow values in the low
   * bytes), or several for parameters with a value per rank. Both arrays belong
   * to the bound and change with it. */
  const uint64_t *slots;
  int64_t rows;          /**< 0: nothing is to be launched */
  uint32_t grid_x;       /**< CUDA: blocks; the other dims are 1 */
  uint32_t block_x;      /**< CUDA: threads of a block */
  uint32_t variant;      /**< which of the code versions was chosen */
  int32_t dependent;     /**< 1: the code waits for its predecessor, so that
                              programmatic stream serialization is safe */
  const char *entry;     /**< name of the entry point */
  uint32_t num_slots;    /**< of `slots`: at least `num_params` */
  uint32_t num_variants; /**< code versions of which `variant` is one */
  /** Total bytes of the arguments read and of those written, counting each
   * element once. */
  uint64_t bytes_read, bytes_written;
  /** CUDA: memory bandwidth in bytes per second, from its clock and width; 0 if
   * the driver does not report these, and on the CPU. */
  int64_t bandwidth;
  const char *target;   /**< of the code: "sm_90", "x86-64-v3" */
  const char *kernel;   /**< its name */
  const char *bindings; /**< what it was compiled for: "D=128,T=bf16" */
} mlafix_launch_info;

#define MLAFIX_LAUNCH_INFO_INIT                                                \
  {                                                                            \
    sizeof(mlafix_launch_info), 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, 0,   \
        0, 0, 0, 0, NULL, NULL, NULL                                           \
  }

/** Fill in `info` (the caller sets struct_size). */
MLAFIX_API mlafix_status mlafix_bound_launch_info(
    const mlafix_bound *bound, mlafix_launch_info *info) MLAFIX_NOEXCEPT;

/** A code version considered for a bound call. They are tried in order; the
 * first that accepts the call is chosen. */
typedef struct mlafix_variant_info {
  uint32_t struct_size;
  int32_t is_chosen; /**< 1 for the one that a launch runs */
  const char *entry; /**< name of the entry point */
  /** The expectation and the actual value of the first guard that fails:
   * `expected stride 2048 in dim 0 of "suffix", got 4096`. Empty if this
   * version accepts the call. Valid until the thread asks again. */
  const char *refused;
} mlafix_variant_info;

#define MLAFIX_VARIANT_INFO_INIT                                               \
  { sizeof(mlafix_variant_info), 0, NULL, NULL }

/** Fill in `info` (the caller sets struct_size) of code version `index`, of
 * mlafix_launch_info::num_variants. */
MLAFIX_API mlafix_status
mlafix_bound_variant_info(const mlafix_bound *bound, uint32_t index,
                          mlafix_variant_info *info) MLAFIX_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MLAFIX_INCLUDE_RUNTIME_LAUNCH_H */
