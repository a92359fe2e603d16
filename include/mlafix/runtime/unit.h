/*===- unit.h - units and their kernels ---------------------------*- C -*-===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Load a unit, look a kernel up, ask what it is.                             *|
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

/** Compiled kernels for several targets, loaded from a .mlafix file. */
typedef struct mlafix_unit mlafix_unit;
/** One kernel of a unit; belongs to the unit and is destroyed with it. */
typedef struct mlafix_kernel mlafix_kernel;
/** A kernel with checked arguments and packed parameters. */
typedef struct mlafix_bound mlafix_bound;

/** Decides whether the bytes of a unit are to be trusted (a unit is code, and
 * its checksum is no signature): nonzero means yes. Called before anything in
 * the unit is looked at. */
typedef int (*mlafix_verify_callback)(void *user, const void *bytes,
                                      size_t size);

typedef enum mlafix_load_flags {
  /** Refuse (MLAFIX_REFUSED) a unit that holds code for the CPU. */
  MLAFIX_LOAD_NO_CPU_CODE = 1
} mlafix_load_flags;

typedef struct mlafix_load_options {
  uint32_t struct_size;
  uint32_t flags;                /**< of mlafix_load_flags */
  mlafix_verify_callback verify; /**< NULL: trust the bytes */
  void *verify_user;             /**< first argument of `verify` */
} mlafix_load_options;

#define MLAFIX_LOAD_OPTIONS_INIT                                               \
  { sizeof(mlafix_load_options), 0, NULL, NULL }

/** Load a unit from a file. `options` may be NULL. On success `*unit` is the
 * caller's, to be destroyed with mlafix_unit_destroy; on failure it is NULL.
 * Touches no CUDA driver, starts no thread: safe before a fork.
 * Errors: NOT_FOUND, IO_ERROR, BAD_UNIT, VERSION_MISMATCH, REFUSED,
 * OUT_OF_MEMORY. */
MLAFIX_API mlafix_status
mlafix_unit_load_file(const char *path, const mlafix_load_options *options,
                      mlafix_unit **unit) MLAFIX_NOEXCEPT;

/** The same from `size` bytes in memory, which are copied. */
MLAFIX_API mlafix_status mlafix_unit_load_memory(
    const void *bytes, size_t size, const mlafix_load_options *options,
    mlafix_unit **unit) MLAFIX_NOEXCEPT;

/** Free the unit, its kernels and its CPU code. Every mlafix_bound of it must
 * be destroyed before. Code loaded on CUDA devices stays loaded, since graphs
 * may hold it (see mlafix_unit_unload). NULL is fine. */
MLAFIX_API void mlafix_unit_destroy(mlafix_unit *unit) MLAFIX_NOEXCEPT;

/** Make the unit's kernels ready on `device`. CUDA: choose and load an image
 * (docs/UnitFormat.md, "Choosing an image") and finish loading its functions,
 * in the current context or, if there is none, in the device's primary context;
 * legal while a stream is being captured. CPU: map the code. Idempotent and
 * thread-safe; a launch on a device not yet prepared does this first. A kernel
 * without code for `device` fails only when it is launched, unless no kernel
 * of the unit has any. Errors: NO_DRIVER, NOT_FOUND (no
 * such device), NO_IMAGE, DRIVER_ERROR, BAD_UNIT (an image and the manifest
 * disagree), OUT_OF_MEMORY. */
MLAFIX_API mlafix_status
mlafix_unit_prepare(mlafix_unit *unit, mlafix_device device) MLAFIX_NOEXCEPT;

/** Undo mlafix_unit_prepare: unload the code from the device. No launch, bound
 * or graph may use it any more. */
MLAFIX_API mlafix_status
mlafix_unit_unload(mlafix_unit *unit, mlafix_device device) MLAFIX_NOEXCEPT;

/** Who wrote the unit, for example "mlafix 0.1.0". Lives as long as the unit.
 */
MLAFIX_API const char *
mlafix_unit_producer(const mlafix_unit *unit) MLAFIX_NOEXCEPT;

/** The unit's manifest, JSON in UTF-8 as docs/UnitFormat.md has it, of `*size`
 * bytes, without a terminator; NULL for no unit. Lives as long as the unit. */
MLAFIX_API const char *mlafix_unit_manifest(const mlafix_unit *unit,
                                            size_t *size) MLAFIX_NOEXCEPT;

MLAFIX_API uint32_t mlafix_unit_num_kernels(const mlafix_unit *unit)
    MLAFIX_NOEXCEPT;

/** The kernel at `index`, in the order of the file; NULL if out of range. */
MLAFIX_API const mlafix_kernel *
mlafix_unit_kernel_at(const mlafix_unit *unit, uint32_t index) MLAFIX_NOEXCEPT;

/** Find a kernel by name and, where several specialisations have that name, by
 * `bindings`: "D=128,T=bf16" (any order, any subset that leaves one; NULL or ""
 * for none). Among several matches, selects the one whose remaining names are
 * bound to their defaults and whose optional arguments are not bound. Errors:
 * NOT_FOUND, INVALID_ARGUMENT (malformed bindings, or several match); the
 * message lists what the unit holds. */
MLAFIX_API mlafix_status mlafix_unit_find_kernel(
    const mlafix_unit *unit, const char *name, const char *bindings,
    const mlafix_kernel **kernel) MLAFIX_NOEXCEPT;

/*===----------------------------------------------------------------------===*\
|* A kernel. All strings and arrays live as long as the unit.                 *|
\*===----------------------------------------------------------------------===*/

typedef enum mlafix_access {
  MLAFIX_READ = 1,   /**< only read */
  MLAFIX_WRITE = 2,  /**< every element is written */
  MLAFIX_UPDATE = 3, /**< some elements are written, the others keep theirs */
  MLAFIX_ABSENT = 4  /**< an optional argument that the specialisation binds as
                          absent: a call must leave it out */
} mlafix_access;

typedef struct mlafix_arg_info {
  uint32_t struct_size;
  int32_t kind;            /**< the mlafix_arg_kind a call must pass */
  const char *name;        /**< as in the source */
  const char *dtype_name;  /**< "bf16", ...; scalars also "index" */
  int32_t dtype;           /**< tensors: a mlafix_dtype; scalars: 0 */
  int32_t access;          /**< tensors: a mlafix_access; scalars: 0 */
  int32_t optional;        /**< tensors: 1 if it may be omitted, 0 too where
                                the specialisation binds it as present */
  uint32_t ndim;           /**< tensors: number of dims; scalars: 0 */
  const char *const *dims; /**< `ndim` names; "" ties nothing */
  const int64_t *shape;    /**< `ndim` sizes; -1: any */
  const int64_t *strides;  /**< `ndim` strides in elements; -1: any */
  const char *at_most;     /**< scalars: the dim it may not exceed, or NULL */
} mlafix_arg_info;

#define MLAFIX_ARG_INFO_INIT                                                   \
  { sizeof(mlafix_arg_info), 0, NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL }

MLAFIX_API const char *
mlafix_kernel_name(const mlafix_kernel *kernel) MLAFIX_NOEXCEPT;

/** The specialisation: "D=128,H=128,T=bf16,lse=absent", sorted by name; "" if
 * generic. */
MLAFIX_API const char *
mlafix_kernel_bindings(const mlafix_kernel *kernel) MLAFIX_NOEXCEPT;

MLAFIX_API uint32_t mlafix_kernel_num_args(const mlafix_kernel *kernel)
    MLAFIX_NOEXCEPT;

/** Describe argument `index`. The caller sets info->struct_size; no more than
 * that is written. Error: INVALID_ARGUMENT (index out of range). */
MLAFIX_API mlafix_status
mlafix_kernel_arg_info(const mlafix_kernel *kernel, uint32_t index,
                       mlafix_arg_info *info) MLAFIX_NOEXCEPT;

/** Pairs of arguments that may be the same tensor exactly. */
MLAFIX_API uint32_t mlafix_kernel_num_aliases(const mlafix_kernel *kernel)
    MLAFIX_NOEXCEPT;
MLAFIX_API mlafix_status mlafix_kernel_alias(const mlafix_kernel *kernel,
                                             uint32_t index, uint32_t *a,
                                             uint32_t *b) MLAFIX_NOEXCEPT;

/** The compiler's answer to a question about an argument (docs/Proofs.md). The
 * words are for people: a newer compiler may have others. */
typedef struct mlafix_proof_info {
  uint32_t struct_size;
  uint32_t arg;         /**< the argument's index */
  const char *question; /**< "coverage", "one writer", "independence", "written
                             before read", "bounds" */
  const char *verdict;  /**< "proved", "promised", "unknown", "refuted" */
  const char *reason;   /**< of what is not proved; else "" */
  const char *element;  /**< of an example that refutes: "out[1]"; else "" */
} mlafix_proof_info;

#define MLAFIX_PROOF_INFO_INIT                                                 \
  { sizeof(mlafix_proof_info), 0, NULL, NULL, NULL, NULL }

/** Proofs that the unit carries; none if an older compiler wrote it. */
MLAFIX_API uint32_t mlafix_kernel_num_proofs(const mlafix_kernel *kernel)
    MLAFIX_NOEXCEPT;
/** Describe proof `index`. The caller sets info->struct_size; no more than that
 * is written. Error: INVALID_ARGUMENT (index out of range). */
MLAFIX_API mlafix_status
mlafix_kernel_proof(const mlafix_kernel *kernel, uint32_t index,
                    mlafix_proof_info *info) MLAFIX_NOEXCEPT;

/** Targets the unit holds code for: "sm_90", "x86-64-v3", ...; NULL if `index`
 * is out of range. */
MLAFIX_API uint32_t mlafix_kernel_num_targets(const mlafix_kernel *kernel)
    MLAFIX_NOEXCEPT;
MLAFIX_API const char *mlafix_kernel_target(const mlafix_kernel *kernel,
                                            uint32_t index) MLAFIX_NOEXCEPT;

/** Which code of a kernel runs on a device. */
typedef struct mlafix_code_info {
  uint32_t struct_size;
  uint32_t num_variants;
  const char *target;    /**< "sm_90", "x86-64-v3", ... */
  const char *format;    /**< "cubin", "ptx" or "cpu" */
  const char *assembler; /**< what assembled a cubin; "" if unknown */
} mlafix_code_info;

#define MLAFIX_CODE_INFO_INIT                                                  \
  { sizeof(mlafix_code_info), 0, NULL, NULL, NULL }

/** The code that a launch of `kernel` on `device` runs; prepares the unit. */
MLAFIX_API mlafix_status
mlafix_kernel_code_info(const mlafix_kernel *kernel, mlafix_device device,
                        mlafix_code_info *info) MLAFIX_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MLAFIX_INCLUDE_RUNTIME_UNIT_H */
