/*===- tensor.h - element types, devices, tensors -----------------*- C -*-===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* The arguments of a kernel.                                                 *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef MLAFIX_INCLUDE_RUNTIME_TENSOR_H
#define MLAFIX_INCLUDE_RUNTIME_TENSOR_H

#include "base.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The element types: MLAFIX_BF16, MLAFIX_F16, MLAFIX_F32, ... (DTypes.def). */
typedef enum mlafix_dtype {
#define MLAFIX_DTYPE(ENUM, VALUE, NAME, BITS, MLIR) MLAFIX_##ENUM = VALUE,
#include "../DTypes.def"
} mlafix_dtype;

/** Returns the name of a dtype, for example "bf16". Returns "?" if the value is
 * not a dtype. */
MLAFIX_API const char *mlafix_dtype_name(mlafix_dtype dtype) MLAFIX_NOEXCEPT;

/** Returns the bytes of one element, or of the two elements that share a byte.
 * Returns 0 if the value is not a dtype. */
MLAFIX_API size_t mlafix_dtype_size(mlafix_dtype dtype) MLAFIX_NOEXCEPT;

/** The kinds of devices. Their values are those of DLPack. */
typedef enum mlafix_device_type {
  MLAFIX_CPU = 1,
  MLAFIX_CUDA = 2
} mlafix_device_type;

/** A device. It will never get another field, so it has no struct_size. */
typedef struct mlafix_device {
  int32_t type;    /**< a mlafix_device_type */
  int32_t ordinal; /**< the CUDA driver's ordinal; 0 for the CPU */
} mlafix_device;

enum {
  MLAFIX_MAX_DIMS = 8,      /**< maximum dims of a tensor */
  MLAFIX_MAX_ARGS = 64,     /**< maximum arguments of a kernel */
  MLAFIX_MAX_PARAMS = 256,  /**< maximum parameters of compiled code */
  MLAFIX_MAX_RANKS = 72,    /**< maximum ranks of a group */
  MLAFIX_GROUP_BYTES = 2048 /**< bytes of a workspace without slots */
};

/** A view of memory that the caller owns. The struct is read only during the
 * call; mlafix_bind copies what it needs. */
typedef struct mlafix_tensor {
  uint32_t struct_size;
  int32_t dtype;        /**< a mlafix_dtype */
  uint32_t ndim;        /**< number of dims, at most MLAFIX_MAX_DIMS */
  mlafix_device device; /**< the device that has the memory */
  void *data;           /**< first element; NULL only if omitted or empty */
  const int64_t *sizes; /**< `ndim` sizes, in elements */
  /** The strides of the `ndim` dims, in elements. NULL means contiguous. For
   * f4e2m1, the last stride is 1 and the others are in bytes. */
  const int64_t *strides;
} mlafix_tensor;

#define MLAFIX_TENSOR_INIT                                                     \
  { sizeof(mlafix_tensor), 0, 0, {0, 0}, NULL, NULL, NULL }

/** The kinds of arguments. Scalars are not converted: a parameter `index` or
 * `i64` needs MLAFIX_ARG_I64, `i32` needs MLAFIX_ARG_I32, and so on. */
typedef enum mlafix_arg_kind {
  MLAFIX_ARG_TENSOR = 1,
  MLAFIX_ARG_I64 = 2,
  MLAFIX_ARG_I32 = 3,
  MLAFIX_ARG_F32 = 4,
  MLAFIX_ARG_BOOL = 5,
  MLAFIX_ARG_PEERS = 6, /**< one tensor per rank, see group.h */
  MLAFIX_ARG_LIST = 7   /**< a list of tensors, see group.h */
} mlafix_arg_kind;

struct mlafix_peers;

/** One argument of a call. All elements of an array have the same struct_size,
 * which is also the distance between them. It is at most 256. */
typedef struct mlafix_arg {
  uint32_t struct_size;
  int32_t kind; /**< a mlafix_arg_kind: the member of `value` to use */
  union {
    /** NULL, or a tensor whose `data` is NULL, omits an optional argument. */
    const mlafix_tensor *tensor;
    int64_t i64;
    int32_t i32;
    float f32;
    uint8_t boolean;                  /**< 0 or 1 */
    const struct mlafix_peers *peers; /**< for lists, too */
  } value;
} mlafix_arg;

/** Returns a row-major tensor without gaps. `sizes` is not copied. */
static inline mlafix_tensor mlafix_contiguous(void *data, mlafix_dtype dtype,
                                              uint32_t ndim,
                                              const int64_t *sizes,
                                              mlafix_device device) {
  mlafix_tensor tensor = MLAFIX_TENSOR_INIT;
  tensor.dtype = dtype;
  tensor.ndim = ndim;
  tensor.device = device;
  tensor.data = data;
  tensor.sizes = sizes;
  return tensor;
}

/** These functions return an argument of each kind. `tensor` is not copied;
 * NULL omits the argument. */
static inline mlafix_arg mlafix_tensor_arg(const mlafix_tensor *tensor) {
  mlafix_arg arg = {sizeof(mlafix_arg), MLAFIX_ARG_TENSOR, {NULL}};
  arg.value.tensor = tensor;
  return arg;
}
static inline mlafix_arg mlafix_i64_arg(int64_t value) {
  mlafix_arg arg = {sizeof(mlafix_arg), MLAFIX_ARG_I64, {NULL}};
  arg.value.i64 = value;
  return arg;
}
static inline mlafix_arg mlafix_i32_arg(int32_t value) {
  mlafix_arg arg = {sizeof(mlafix_arg), MLAFIX_ARG_I32, {NULL}};
  arg.value.i32 = value;
  return arg;
}
static inline mlafix_arg mlafix_f32_arg(float value) {
  mlafix_arg arg = {sizeof(mlafix_arg), MLAFIX_ARG_F32, {NULL}};
  arg.value.f32 = value;
  return arg;
}
static inline mlafix_arg mlafix_bool_arg(bool value) {
  mlafix_arg arg = {sizeof(mlafix_arg), MLAFIX_ARG_BOOL, {NULL}};
  arg.value.boolean = value ? 1 : 0;
  return arg;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MLAFIX_INCLUDE_RUNTIME_TENSOR_H */
