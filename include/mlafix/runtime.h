/*===- runtime.h - C interface of the mlafix runtime ---------------*- C
-*-===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Load a unit (a .mlafix file, docs/UnitFormat.md), look a kernel up, launch *|
|* it on an NVIDIA GPU or on the CPU. Plain C11; needs no LLVM, no CUDA       *|
|* headers and no CUDA at link time (libcuda is opened when first used).      *|
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

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define MLAFIX_API __attribute__((visibility("default")))
#else
#define MLAFIX_API
#endif

#ifdef __cplusplus
#define MLAFIX_NOEXCEPT noexcept
extern "C" {
#else
#define MLAFIX_NOEXCEPT
#endif

/*===----------------------------------------------------------------------===*\
|* Versions, status codes, errors, log                                        *|
\*===----------------------------------------------------------------------===*/

/** The version of the interface that this header describes. */
#define MLAFIX_ABI_VERSION 1u

/** What a call came to. Values are never reused. */
typedef enum mlafix_status {
  MLAFIX_OK = 0,
  /** The call is wrong: argument count, dtype, rank, shape, stride, device,
   * null pointer, overlap, option. Nothing was launched. */
  MLAFIX_INVALID_ARGUMENT = 1,
  /** No such file, kernel or device. */
  MLAFIX_NOT_FOUND = 2,
  /** The file could not be read. */
  MLAFIX_IO_ERROR = 3,
  /** The unit is malformed: truncated, corrupt or inconsistent. */
  MLAFIX_BAD_UNIT = 4,
  /** The unit was written for another container or kernel ABI version. */
  MLAFIX_VERSION_MISMATCH = 5,
  /** The verify callback said no, or CPU code was refused by the options. */
  MLAFIX_REFUSED = 6,
  /** No usable CUDA driver (libcuda.so.1) or no CUDA device on this machine. */
  MLAFIX_NO_DRIVER = 7,
  /** The CUDA driver returned an error; the message has its name. */
  MLAFIX_DRIVER_ERROR = 8,
  /** The unit holds no code that this device can run. */
  MLAFIX_NO_IMAGE = 9,
  MLAFIX_OUT_OF_MEMORY = 10,
  /** A fault of the library itself. */
  MLAFIX_INTERNAL_ERROR = 11
} mlafix_status;

/** MLAFIX_ABI_VERSION of the library that is loaded. */
MLAFIX_API uint32_t mlafix_abi_version(void) MLAFIX_NOEXCEPT;

/** Version of the library, for example "0.1.0". Lives for ever. */
MLAFIX_API const char *mlafix_version(void) MLAFIX_NOEXCEPT;

/** Name of a status, for example "INVALID_ARGUMENT". Lives for ever. */
MLAFIX_API const char *mlafix_status_name(mlafix_status status) MLAFIX_NOEXCEPT;

/** The message of the last call that failed on this thread, "" if none did.
 * Never null; changes with the next failing call of this thread. */
MLAFIX_API const char *mlafix_last_error(void) MLAFIX_NOEXCEPT;

/** From now on, copy each error message of the calling thread also to `buffer`
 * (at most `capacity` bytes with the NUL; longer messages are cut off). The
 * buffer must live until the thread sets another one or NULL. */
MLAFIX_API void mlafix_set_error_buffer(char *buffer,
                                        size_t capacity) MLAFIX_NOEXCEPT;

typedef enum mlafix_log_level {
  MLAFIX_LOG_DEBUG = 1,
  MLAFIX_LOG_INFO = 2,
  MLAFIX_LOG_WARNING = 3
} mlafix_log_level;

typedef void (*mlafix_log_callback)(void *user, mlafix_log_level level,
                                    const char *message);

/** Send log messages to `callback` (NULL: to nobody, which is the default; the
 * environment variable MLAFIX_LOG=debug|info|warning sends them to stderr). The
 * callback may run on any thread that calls the library, one call at a time,
 * and must neither call the library nor fork. */
MLAFIX_API void mlafix_set_log_callback(mlafix_log_callback callback,
                                        void *user) MLAFIX_NOEXCEPT;

/*===----------------------------------------------------------------------===*\
|* Element types, devices, tensors, arguments                                 *|
\*===----------------------------------------------------------------------===*/

/** Element types: MLAFIX_BF16, MLAFIX_F16, MLAFIX_F32, ... (DTypes.def). */
typedef enum mlafix_dtype {
#define MLAFIX_DTYPE(ENUM, VALUE, NAME, BYTES, MLIR) MLAFIX_##ENUM = VALUE,
#include "DTypes.def"
} mlafix_dtype;

/** Spelling of a dtype, for example "bf16"; "?" for a value not in the table.
 */
MLAFIX_API const char *mlafix_dtype_name(mlafix_dtype dtype) MLAFIX_NOEXCEPT;

/** Bytes of one element; 0 for a value not in the table. */
MLAFIX_API size_t mlafix_dtype_size(mlafix_dtype dtype) MLAFIX_NOEXCEPT;

/** Kinds of device; the values are DLPack's. */
typedef enum mlafix_device_type {
  MLAFIX_CPU = 1,
  MLAFIX_CUDA = 2
} mlafix_device_type;

/** A device. Never grows, hence without struct_size. */
typedef struct mlafix_device {
  int32_t type;    /**< a mlafix_device_type */
  int32_t ordinal; /**< the CUDA driver's ordinal; 0 for the CPU */
} mlafix_device;

enum {
  MLAFIX_MAX_DIMS = 8,    /**< dims of a tensor */
  MLAFIX_MAX_ARGS = 64,   /**< arguments of a kernel */
  MLAFIX_MAX_PARAMS = 256 /**< parameters of the compiled code */
};

/** A view of memory that the caller owns. Only read during the call it is
 * passed to (mlafix_bind copies what it needs). */
typedef struct mlafix_tensor {
  uint32_t struct_size;
  int32_t dtype;          /**< a mlafix_dtype */
  uint32_t ndim;          /**< number of dims, at most MLAFIX_MAX_DIMS */
  mlafix_device device;   /**< where `data` lies */
  void *data;             /**< first element; null only if optional or empty */
  const int64_t *sizes;   /**< `ndim` sizes, in elements */
  const int64_t *strides; /**< `ndim` strides, in elements; NULL: contiguous */
} mlafix_tensor;

#define MLAFIX_TENSOR_INIT                                                     \
  { sizeof(mlafix_tensor), 0, 0, {0, 0}, NULL, NULL, NULL }

/** What an argument holds. Scalars are not converted: an `index` or `i64`
 * parameter takes MLAFIX_ARG_I64, `i32` takes MLAFIX_ARG_I32, and so on. */
typedef enum mlafix_arg_kind {
  MLAFIX_ARG_TENSOR = 1,
  MLAFIX_ARG_I64 = 2,
  MLAFIX_ARG_I32 = 3,
  MLAFIX_ARG_F32 = 4,
  MLAFIX_ARG_BOOL = 5
} mlafix_arg_kind;

/** One argument of a call. In an array all elements have the same struct_size,
 * which is then also the distance from one to the next: at most 256. */
typedef struct mlafix_arg {
  uint32_t struct_size;
  int32_t kind; /**< a mlafix_arg_kind: says which member of `value` counts */
  union {
    /** NULL (or a tensor whose data is null): an optional argument left out. */
    const mlafix_tensor *tensor;
    int64_t i64;
    int32_t i32;
    float f32;
    uint8_t boolean; /**< 0 or 1 */
  } value;
} mlafix_arg;

/*===----------------------------------------------------------------------===*\
|* Units                                                                      *|
\*===----------------------------------------------------------------------===*/

/** Compiled kernels for several targets, loaded from a .mlafix file. */
typedef struct mlafix_unit mlafix_unit;
/** One kernel of a unit; belongs to the unit and dies with it. */
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
 * caller's, to be given back with mlafix_unit_destroy; on failure it is NULL.
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
 * for which the unit holds no code for `device` does not fail the call unless
 * no kernel has any; its launch will say so. Errors: NO_DRIVER, NOT_FOUND (no
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

MLAFIX_API uint32_t mlafix_unit_num_kernels(const mlafix_unit *unit)
    MLAFIX_NOEXCEPT;

/** The kernel at `index`, in the order of the file; NULL if out of range. */
MLAFIX_API const mlafix_kernel *
mlafix_unit_kernel_at(const mlafix_unit *unit, uint32_t index) MLAFIX_NOEXCEPT;

/** Find a kernel by name and, where several specialisations have that name, by
 * `bindings`: "D=128,T=bf16" (any order, any subset that leaves one; NULL or ""
 * for none). Of several that match, the one is meant in which the names left
 * out are bound to their defaults, and optional arguments to neither "absent"
 * nor "present". Errors: NOT_FOUND, INVALID_ARGUMENT (malformed bindings, or
 * several match); the message lists what the unit holds. */
MLAFIX_API mlafix_status mlafix_unit_find_kernel(
    const mlafix_unit *unit, const char *name, const char *bindings,
    const mlafix_kernel **kernel) MLAFIX_NOEXCEPT;

/*===----------------------------------------------------------------------===*\
|* What a kernel is. All strings and arrays live as long as the unit.         *|
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
  int32_t optional;        /**< tensors: 1 if it may be left out, 0 too where
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

/*===----------------------------------------------------------------------===*\
|* Launching                                                                  *|
\*===----------------------------------------------------------------------===*/

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
 * of another device, the device's primary context serves for the call. Once the
 * unit is prepared the call allocates nothing, waits for nothing and is legal
 * in stream capture. Dependent launch: kernels whose code waits for its
 * predecessor are launched with programmatic stream serialization. CPU:
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

/** Check the call once, prepare the unit, choose the variant and pack the
 * parameters, to launch many times. Sizes, strides and scalars are copied. On
 * success `*bound` is the caller's, to be given back with mlafix_bound_destroy,
 * before the unit. `flags` as in mlafix_launch, and kept. */
MLAFIX_API mlafix_status mlafix_bind(const mlafix_kernel *kernel,
                                     const mlafix_arg *args, uint32_t num_args,
                                     mlafix_device device, uint32_t flags,
                                     mlafix_bound **bound) MLAFIX_NOEXCEPT;

MLAFIX_API void mlafix_bound_destroy(mlafix_bound *bound) MLAFIX_NOEXCEPT;

/** New data pointers: `pointers[i]` for argument i (`num_args` of them; those
 * of scalars are not looked at). Checked like a launch (null, overlap,
 * alignment); may select another variant. On failure the bound is as it was.
 * Allocates nothing. Not to be called while another thread uses the bound. */
MLAFIX_API mlafix_status
mlafix_bound_set_pointers(mlafix_bound *bound, void *const *pointers,
                          uint32_t num_args) MLAFIX_NOEXCEPT;

/** A new value for scalar argument `index`; likewise. */
MLAFIX_API mlafix_status
mlafix_bound_set_scalar(mlafix_bound *bound, uint32_t index,
                        const mlafix_arg *value) MLAFIX_NOEXCEPT;

/** Launch. `stream` as in mlafix_launch; of `flags`, only
 * MLAFIX_LAUNCH_NO_DEPENDENT counts here. Several threads may launch one bound
 * at a time. */
MLAFIX_API mlafix_status mlafix_bound_launch(const mlafix_bound *bound,
                                             void *stream,
                                             uint32_t flags) MLAFIX_NOEXCEPT;

/** What a launch would hand to the driver, for hand-built graphs. */
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
  /** The values, one 8-byte slot each, narrow ones in the low bytes. Both
   * arrays belong to the bound and change with it. */
  const uint64_t *slots;
  int64_t rows;      /**< 0: nothing is to be launched */
  uint32_t grid_x;   /**< CUDA: blocks; the other dims are 1 */
  uint32_t block_x;  /**< CUDA: threads of a block */
  uint32_t variant;  /**< which of the code's variants was chosen */
  int32_t dependent; /**< 1: the code waits for its predecessor, so that
                          programmatic stream serialization is safe */
  const char *entry; /**< name of the entry point */
} mlafix_launch_info;

#define MLAFIX_LAUNCH_INFO_INIT                                                \
  { sizeof(mlafix_launch_info), 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL }

/** Fill in `info` (the caller sets struct_size). */
MLAFIX_API mlafix_status mlafix_bound_launch_info(
    const mlafix_bound *bound, mlafix_launch_info *info) MLAFIX_NOEXCEPT;

/*===----------------------------------------------------------------------===*\
|* Machines                                                                   *|
\*===----------------------------------------------------------------------===*/

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

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MLAFIX_RUNTIME_H */
