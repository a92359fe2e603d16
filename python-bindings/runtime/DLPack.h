//===- DLPack.h - The parts of DLPack's ABI that we read --------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// DLPack 1.x as specified at https://dmlc.github.io/dlpack: the tensor, its two
// managed forms, and the table of C functions that a framework offers on its
// tensor type as __dlpack_c_exchange_api__ (since DLPack 1.2; torch 2.10).
// Layouts and values are ABI and never change within a major version.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_DLPACK_H
#define MLAFIX_PYTHON_DLPACK_H

#include <cstdint>

namespace mlafix::python::dlpack {

enum DeviceType : int32_t {
  deviceCpu = 1,
  deviceCuda = 2,
  deviceCudaHost = 3, // pinned memory: the CPU's
  deviceCudaManaged = 13,
};

enum TypeCode : uint8_t {
  codeInt = 0,
  codeUInt = 1,
  codeFloat = 2,
  codeBFloat = 4,
  codeBool = 6,
  codeFloat8E4M3FN = 10,
  codeFloat8E5M2 = 12,
};

struct Device {
  int32_t type;
  int32_t id;
};

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void *data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t *shape;
  int64_t *strides; // in elements; null: contiguous
  uint64_t byteOffset;
};

struct Version {
  uint32_t major;
  uint32_t minor;
};

constexpr uint32_t majorVersion = 1;

/// What a capsule named "dltensor" points to.
struct ManagedTensor {
  Tensor tensor;
  void *context;
  void (*deleter)(ManagedTensor *);
};

constexpr uint64_t flagReadOnly = 1;
constexpr uint64_t flagIsCopied = 2;

/// What a capsule named "dltensor_versioned" points to.
struct ManagedTensorVersioned {
  Version version;
  void *context;
  void (*deleter)(ManagedTensorVersioned *);
  uint64_t flags;
  Tensor tensor;
};

/// What a capsule named "dlpack_exchange_api" points to. Functions return 0, or
/// -1 with a Python exception set.
struct ExchangeApi {
  Version version;
  ExchangeApi *previous; // of an older major version
  void *allocate;
  void *toManaged;
  void *fromManaged;
  int (*view)(void *object, Tensor *out); // may be null; owns nothing
  int (*currentStream)(int32_t deviceType, int32_t deviceId, void **stream);
};

} // namespace mlafix::python::dlpack

#endif // MLAFIX_PYTHON_DLPACK_H
