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

/** Element types: MLAFIX_BF16, MLAFIX_F16, MLAFIX_F32, ... (DTypes.def). */
typedef enum mlafix_dtype {
#define MLAFIX_DTYPE(ENUM, VALUE, NAME, BITS, MLIR) MLAFIX_##ENUM = VALUE,
#include "../DTypes.def"
} mlafix_dtype;

/** Spelling of a dtype, for example "bf16"; "?" for a value not in the table.
 */
MLAFIX_API const char *mlafix_dtype_name(mlafix_dtype dtype) MLAFIX_NOEXCEPT;

/** Bytes of one element, or of the two that share a byte; 0 for a value not in
 * the table. */
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
  MLAFIX_MAX_DIMS = 8,      /**< dims of a tensor */
  MLAFIX_MAX_ARGS = 64,     /**< arguments of a kernel */
  MLAFIX_MAX_PARAMS = 256,  /**< parameters of the compiled code */
  MLAFIX_MAX_RANKS = 72,    /**< ranks of a group */
  MLAFIX_GROUP_BYTES = 2048 /**< of a rank's workspace, without slots */
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
  const int64_t *strides; /**< `ndim` strides, in elements (of f4e2m1: the last
                             one 1, others in bytes); NULL: contiguous */
} mlafix_tensor;

#define MLAFIX_TENSOR_INIT                                                     \
  { sizeof(mlafix_tensor), 0, 0, {0, 0}, NULL, NULL, NULL }

/** The contents of an argument. Scalars are not converted: an `index` or `i64`
 * parameter takes MLAFIX_ARG_I64, `i32` takes MLAFIX_ARG_I32, and so on. */
typedef enum mlafix_arg_kind {
  MLAFIX_ARG_TENSOR = 1,
  MLAFIX_ARG_I64 = 2,
  MLAFIX_ARG_I32 = 3,
  MLAFIX_ARG_F32 = 4,
  MLAFIX_ARG_BOOL = 5,
  MLAFIX_ARG_PEERS = 6, /**< a tensor of each rank: group.h */
  MLAFIX_ARG_LIST = 7   /**< a list of tensors: group.h */
} mlafix_arg_kind;

struct mlafix_peers;

/** One argument of a call. In an array all elements have the same struct_size,
 * which is then also the distance from one to the next: at most 256. */
typedef struct mlafix_arg {
  uint32_t struct_size;
  int32_t kind; /**< a mlafix_arg_kind: says which member of `value` counts */
  union {
    /** NULL (or a tensor whose data is null): an omitted optional argument. */
    const mlafix_tensor *tensor;
    int64_t i64;
    int32_t i32;
    float f32;
    uint8_t boolean;                  /**< 0 or 1 */
    const struct mlafix_peers *peers; /**< of a list, too */
  } value;
} mlafix_arg;

/** A row-major tensor without gaps. `sizes` is not copied. */
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

/** Arguments of each kind. `tensor` is not copied; NULL omits it. */
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
