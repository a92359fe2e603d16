//===- DLPack.h - DLPack's tensor, and its dtypes ---------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The types of DLPack 1.x (https://dmlc.github.io/dlpack), declared here so
// that DLPack's header is not needed to build. Their layouts and values are
// part of DLPack's ABI and do not change within a major version.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DLPACK_H
#define MLAFIX_DLPACK_H

#include <cstdint>

namespace mlafix::dlpack {

enum DeviceType : int32_t {
  deviceCpu = 1,
  deviceCuda = 2,
  deviceCudaHost = 3, // pinned host memory, which counts as CPU memory
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
  codeFloat8E8M0FNU = 14,
  codeFloat4E2M1FN = 17,
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
  int64_t *strides; // in elements; null: the tensor is contiguous
  uint64_t byteOffset;
};

/// The DLPack type code of each mlafix_dtype. A dtype without a line here
/// causes a compile error.
namespace codes {
inline constexpr TypeCode BF16 = codeBFloat;
inline constexpr TypeCode F16 = codeFloat;
inline constexpr TypeCode F32 = codeFloat;
inline constexpr TypeCode F8E4M3FN = codeFloat8E4M3FN;
inline constexpr TypeCode F8E5M2 = codeFloat8E5M2;
inline constexpr TypeCode F8E8M0 = codeFloat8E8M0FNU;
inline constexpr TypeCode F4E2M1 = codeFloat4E2M1FN;
inline constexpr TypeCode I32 = codeInt;
inline constexpr TypeCode I64 = codeInt;
inline constexpr TypeCode I8 = codeInt;
inline constexpr TypeCode U8 = codeUInt;
inline constexpr TypeCode BOOL = codeBool;
} // namespace codes

/// Returns the mlafix_dtype with this type code and width in bits. Returns 0 if
/// there is none.
constexpr int32_t dtypeByCode(int code, int bits) {
#define MLAFIX_DTYPE(ENUM, VALUE, NAME, BITS, MLIR)                            \
  if (code == codes::ENUM && bits == BITS)                                     \
    return VALUE;
#include "mlafix/DTypes.def"
  return 0;
}

/// Returns the mlafix_dtype of `type`. Returns 0 if no kernel takes the type.
/// Also returns 0 if several elements share a byte, since a DLPack shape counts
/// these as one element.
constexpr int32_t dtypeOf(DataType type) {
  return type.lanes == 1 && type.bits >= 8 ? dtypeByCode(type.code, type.bits)
                                           : 0;
}

} // namespace mlafix::dlpack

#endif // MLAFIX_DLPACK_H
