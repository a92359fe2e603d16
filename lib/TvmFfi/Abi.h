//===- Abi.h - The parts of TVM-FFI's ABI that are used ---------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// TVM-FFI 0.1 (tvm/ffi/c_api.h, tvm/ffi/extra/c_env_api.h), and DLPack's
// tensor, declared here so that the library builds without either.
// test/tvm_ffi/AbiTest.cpp compares them with the headers.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TVMFFI_ABI_H
#define MLAFIX_TVMFFI_ABI_H

#include <cstdint>

namespace mlafix::tvm_ffi {

/// Values of Any::typeIndex.
enum TypeIndex : int32_t {
  typeNone = 0,
  typeInt = 1,
  typeBool = 2,
  typeFloat = 3,
  typeDLTensorPointer = 7,
  typeTensor = 70,
};

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
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

struct DLTensor {
  void *data;
  int32_t deviceType;
  int32_t deviceId;
  int32_t ndim;
  DataType dtype;
  int64_t *shape;
  int64_t *strides; // in elements; null: contiguous
  uint64_t byteOffset;
};

/// The head of every object; a tensor's DLTensor follows it.
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
