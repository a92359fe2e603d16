//===- Abi.h - The parts of TVM-FFI's ABI that are used ---------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Declares the part of TVM-FFI 0.1's interface that the library uses
// (tvm/ffi/c_api.h and tvm/ffi/extra/c_env_api.h), so that a build does not
// need TVM-FFI. test/tvm_ffi/AbiTest.cpp compares this file and mlafix/DLPack.h
// with the original headers.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TVMFFI_ABI_H
#define MLAFIX_TVMFFI_ABI_H

#include <cstdint>

namespace mlafix::tvm_ffi {

/// The values of Any::typeIndex.
enum TypeIndex : int32_t {
  typeNone = 0,
  typeInt = 1,
  typeBool = 2,
  typeFloat = 3,
  typeDLTensorPointer = 7,
  typeTensor = 70,
};

/// The head of every TVM-FFI object. In a tensor, a DLTensor follows it.
struct Object {
  uint64_t referenceCounts;
  int32_t typeIndex;
  uint32_t padding;
  void (*deleter)(void *self, int flags);
};

struct Any {
  int32_t typeIndex;
  uint32_t padding;
  union {
    int64_t integer;
    double real;
    void *pointer;
  };
};

} // namespace mlafix::tvm_ffi

extern "C" {
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
void *TVMFFIEnvGetStream(int32_t deviceType, int32_t deviceId);
}

#endif // MLAFIX_TVMFFI_ABI_H
