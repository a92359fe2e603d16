//===- ManagedDLPack.h - DLPack's tensors with owners -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Declarations of DLPack 1.x that mlafix/DLPack.h lacks: the two structs for a
// tensor with an owner, and the table of C functions of a framework. A
// framework offers the table on its tensor type as __dlpack_c_exchange_api__
// (since DLPack 1.2; in torch since 2.10).
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_MANAGEDDLPACK_H
#define MLAFIX_PYTHON_MANAGEDDLPACK_H

#include "mlafix/DLPack.h"

#include <cstdint>

namespace mlafix::dlpack {

struct Version {
  uint32_t major;
  uint32_t minor;
};

constexpr uint32_t majorVersion = 1;

/// The struct that a capsule named "dltensor" points to.
struct ManagedTensor {
  Tensor tensor;
  void *context;
  void (*deleter)(ManagedTensor *);
};

constexpr uint64_t flagReadOnly = 1;
constexpr uint64_t flagIsCopied = 2;

/// The struct that a capsule named "dltensor_versioned" points to.
struct ManagedTensorVersioned {
  Version version;
  void *context;
  void (*deleter)(ManagedTensorVersioned *);
  uint64_t flags;
  Tensor tensor;
};

/// The struct that a capsule named "dlpack_exchange_api" points to. The
/// functions return 0, or -1 with a Python exception set.
struct ExchangeApi {
  Version version;
  ExchangeApi *previous; // the table for an older major version
  void *allocate;
  void *toManaged;
  void *fromManaged;
  // Makes `out` point to the memory of `object`, which still owns the memory.
  // The pointer is null if the framework has no such function.
  int (*view)(void *object, Tensor *out);
  int (*currentStream)(int32_t deviceType, int32_t deviceId, void **stream);
};

} // namespace mlafix::dlpack

namespace mlafix::python {
namespace dlpack = mlafix::dlpack;
} // namespace mlafix::python

#endif // MLAFIX_PYTHON_MANAGEDDLPACK_H
