/*===- unit.h - units and their kernels ---------------------------*- C -*-===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Functions that load a unit, find a kernel in it, and describe the kernel.  *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef MLAFIX_INCLUDE_RUNTIME_UNIT_H
#define MLAFIX_INCLUDE_RUNTIME_UNIT_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===----------------------------------------------------------------------===*\
|* Units                                                                      *|
\*===----------------------------------------------------------------------===*/

/** Compiled kernels for one or more targets, loaded from a .mlafix file. */
typedef struct mlafix_unit mlafix_unit;
/** One kernel of a unit. It belongs to the unit and is destroyed with it. */
typedef struct mlafix_kernel mlafix_kernel;
/** A call that can be launched many times: a kernel with checked arguments and
 * packed parameters. */
typedef struct mlafix_bound mlafix_bound;

/** Decides if the bytes of a unit can be trusted. Returns nonzero if they can.
 * A unit contains code, and its checksum is not a signature. The callback gets
 * the bytes before the library reads them. */
typedef int (*mlafix_verify_callback)(void *user, const void *bytes,
                                      size_t size);

typedef enum mlafix_load_flags {
  /** Fails with MLAFIX_REFUSED if the unit contains code for the CPU. */
  MLAFIX_LOAD_NO_CPU_CODE = 1
} mlafix_load_flags;

typedef struct mlafix_load_options {
  uint32_t struct_size;
  uint32_t flags;                /**< a combination of mlafix_load_flags */
  mlafix_verify_callback verify; /**< NULL: trust the bytes */
  void *verify_user;             /**< first argument of `verify` */
} mlafix_load_options;

#define MLAFIX_LOAD_OPTIONS_INIT                                               \
  { sizeof(mlafix_load_options), 0, NULL, NULL }

/** Loads a unit from a file. `options` may be NULL. On success, the caller owns
 * `*unit` and must destroy it with mlafix_unit_destroy. On failure, it is NULL.
 * Does not use the CUDA driver and starts no thread, so it is safe before a
 * fork. Errors: NOT_FOUND, IO_ERROR, BAD_UNIT, VERSION_MISMATCH, REFUSED,
 * OUT_OF_MEMORY. */
MLAFIX_API mlafix_status
mlafix_unit_load_file(const char *path, const mlafix_load_options *options,
                      mlafix_unit **unit) MLAFIX_NOEXCEPT;

/** Loads a unit as mlafix_unit_load_file does, but from `size` bytes in memory.
 * The bytes are copied. */
MLAFIX_API mlafix_status mlafix_unit_load_memory(
    const void *bytes, size_t size, const mlafix_load_options *options,
    mlafix_unit **unit) MLAFIX_NOEXCEPT;

/** Destroys the unit, its kernels and its CPU code. All mlafix_bound objects of
 * its kernels must have been destroyed. Code on CUDA devices stays loaded,
 * since graphs may use it (see mlafix_unit_unload). `unit` may be NULL. */
MLAFIX_API void mlafix_unit_destroy(mlafix_unit *unit) MLAFIX_NOEXCEPT;

/** Makes the unit's kernels ready on `device`.
 *
 * CUDA: Chooses an image (docs/UnitFormat.md, "Choosing an image"), loads it
 * and finishes loading its functions. This uses the current context if it
 * belongs to the device, else the device's primary context. It is legal during
 * stream capture. CPU: Maps the code.
 *
 * Further calls do nothing, and any thread may call it. A launch on a device
 * that is not prepared prepares it first. If only some kernels have code for
 * `device`, the call succeeds, and the others fail when they are launched.
 * Errors: NO_DRIVER, NOT_FOUND (the device does not exist), NO_IMAGE,
 * DRIVER_ERROR, BAD_UNIT (an image contradicts the manifest), OUT_OF_MEMORY. */
MLAFIX_API mlafix_status
mlafix_unit_prepare(mlafix_unit *unit, mlafix_device device) MLAFIX_NOEXCEPT;

/** Unloads the unit's code from the device. No launch, bound or graph may use
 * the code any more. */
MLAFIX_API mlafix_status
mlafix_unit_unload(mlafix_unit *unit, mlafix_device device) MLAFIX_NOEXCEPT;

/** Returns the name and version of the compiler that wrote the unit, for
 * example "mlafix 0.1.0". The text lives as long as the unit. */
MLAFIX_API const char *
mlafix_unit_producer(const mlafix_unit *unit) MLAFIX_NOEXCEPT;

/** Returns the unit's manifest and sets `size` to its length in bytes. It is
 * JSON in UTF-8 (docs/UnitFormat.md) without a terminator. Returns NULL if
 * `unit` is NULL. The text lives as long as the unit. */
MLAFIX_API const char *mlafix_unit_manifest(const mlafix_unit *unit,
                                            size_t *size) MLAFIX_NOEXCEPT;

MLAFIX_API uint32_t mlafix_unit_num_kernels(const mlafix_unit *unit)
    MLAFIX_NOEXCEPT;

/** Returns the kernel at `index`, in the order of the file. Returns NULL if
 * `index` is out of range. */
MLAFIX_API const mlafix_kernel *
mlafix_unit_kernel_at(const mlafix_unit *unit, uint32_t index) MLAFIX_NOEXCEPT;

/** Finds a kernel by its name and bindings. `bindings` is text such as
 * "D=128,T=bf16", in any order; NULL or "" means none. It may omit bindings if
 * only one kernel matches. If several match, selects the one in which all other
 * names have their defaults and no optional argument is bound. Errors:
 * NOT_FOUND; INVALID_ARGUMENT (`bindings` is malformed, or several kernels
 * match). The message lists what the unit contains. */
MLAFIX_API mlafix_status mlafix_unit_find_kernel(
    const mlafix_unit *unit, const char *name, const char *bindings,
    const mlafix_kernel **kernel) MLAFIX_NOEXCEPT;

/*===----------------------------------------------------------------------===*\
|* A kernel. All strings and arrays live as long as the unit.                 *|
\*===----------------------------------------------------------------------===*/

typedef enum mlafix_access {
  MLAFIX_READ = 1,   /**< the kernel only reads it */
  MLAFIX_WRITE = 2,  /**< the kernel writes every element */
  MLAFIX_UPDATE = 3, /**< the kernel may write some elements */
  /** The specialisation has no such optional argument: a call must omit it. */
  MLAFIX_ABSENT = 4
} mlafix_access;

typedef struct mlafix_arg_info {
  uint32_t struct_size;
  int32_t kind;           /**< the mlafix_arg_kind that a call must pass */
  const char *name;       /**< name in the source */
  const char *dtype_name; /**< such as "bf16"; "index" for some scalars */
  int32_t dtype;          /**< a tensor's mlafix_dtype; 0 for a scalar */
  int32_t access;         /**< a tensor's mlafix_access; 0 for a scalar */
  /** 1 if a call may omit the tensor. It is 0 if the specialisation requires
   * an optional tensor. */
  int32_t optional;
  uint32_t ndim;           /**< a tensor's number of dims; 0 for a scalar */
  const char *const *dims; /**< `ndim` names; "": the dim has no name */
  const int64_t *shape;    /**< `ndim` sizes; -1: any size */
  const int64_t *strides;  /**< `ndim` strides in elements; -1: any stride */
  const char *at_most; /**< the dim that a scalar must not exceed, or NULL */
} mlafix_arg_info;

#define MLAFIX_ARG_INFO_INIT                                                   \
  { sizeof(mlafix_arg_info), 0, NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL }

MLAFIX_API const char *
mlafix_kernel_name(const mlafix_kernel *kernel) MLAFIX_NOEXCEPT;

/** Returns the kernel's bindings, for example "D=128,H=128,T=bf16,lse=absent",
 * sorted by name. Returns "" if there are none. */
MLAFIX_API const char *
mlafix_kernel_bindings(const mlafix_kernel *kernel) MLAFIX_NOEXCEPT;

MLAFIX_API uint32_t mlafix_kernel_num_args(const mlafix_kernel *kernel)
    MLAFIX_NOEXCEPT;

/** Describes argument `index`. The caller sets info->struct_size, and at most
 * that many bytes are written. Error: INVALID_ARGUMENT (`index` is out of
 * range). */
MLAFIX_API mlafix_status
mlafix_kernel_arg_info(const mlafix_kernel *kernel, uint32_t index,
                       mlafix_arg_info *info) MLAFIX_NOEXCEPT;

/** Pairs of arguments that may be exactly the same tensor. The first function
 * returns their number, and the second one sets `a` and `b` to the arguments of
 * pair `index`. */
MLAFIX_API uint32_t mlafix_kernel_num_aliases(const mlafix_kernel *kernel)
    MLAFIX_NOEXCEPT;
MLAFIX_API mlafix_status mlafix_kernel_alias(const mlafix_kernel *kernel,
                                             uint32_t index, uint32_t *a,
                                             uint32_t *b) MLAFIX_NOEXCEPT;

/** The compiler's answer to a question about an argument (docs/Proofs.md). The
 * texts are for people, and a newer compiler may use other words. */
typedef struct mlafix_proof_info {
  uint32_t struct_size;
  uint32_t arg; /**< index of the argument */
  /** "coverage", "one writer", "independence", "written before read" or
   * "bounds". */
  const char *question;
  /** "proved", "promised", "unknown" or "refuted". */
  const char *verdict;
  /** The reason why it is not proved, or "" if it is. */
  const char *reason;
  /** An element that refutes it, such as "out[1]", or "" if there is none. */
  const char *element;
} mlafix_proof_info;

#define MLAFIX_PROOF_INFO_INIT                                                 \
  { sizeof(mlafix_proof_info), 0, NULL, NULL, NULL, NULL }

/** Returns the number of proofs in the unit about the kernel. Returns 0 if an
 * older compiler wrote the unit. */
MLAFIX_API uint32_t mlafix_kernel_num_proofs(const mlafix_kernel *kernel)
    MLAFIX_NOEXCEPT;
/** Describes proof `index`. The caller sets info->struct_size, and at most that
 * many bytes are written. Error: INVALID_ARGUMENT (`index` is out of range). */
MLAFIX_API mlafix_status
mlafix_kernel_proof(const mlafix_kernel *kernel, uint32_t index,
                    mlafix_proof_info *info) MLAFIX_NOEXCEPT;

/** The targets for which the kernel has code, for example "sm_90". The first
 * function returns their number. The second one returns the name of target
 * `index`, or NULL if `index` is out of range. */
MLAFIX_API uint32_t mlafix_kernel_num_targets(const mlafix_kernel *kernel)
    MLAFIX_NOEXCEPT;
MLAFIX_API const char *mlafix_kernel_target(const mlafix_kernel *kernel,
                                            uint32_t index) MLAFIX_NOEXCEPT;

/** Describes the code of a kernel that runs on a device. */
typedef struct mlafix_code_info {
  uint32_t struct_size;
  uint32_t num_variants;
  const char *target;    /**< name of the target, such as "sm_90" */
  const char *format;    /**< "cubin", "ptx" or "cpu" */
  const char *assembler; /**< assembler of a cubin; "" if unknown */
} mlafix_code_info;

#define MLAFIX_CODE_INFO_INIT                                                  \
  { sizeof(mlafix_code_info), 0, NULL, NULL, NULL }

/** Fills in `info` for the code that a launch of `kernel` on `device` runs.
 * Prepares the unit first if needed. */
MLAFIX_API mlafix_status
mlafix_kernel_code_info(const mlafix_kernel *kernel, mlafix_device device,
                        mlafix_code_info *info) MLAFIX_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MLAFIX_INCLUDE_RUNTIME_UNIT_H */
