//===- DTypeNames.h - dtypes as other libraries know them -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The one table of what numpy, torch and DLPack call each dtype of
// mlafix/DTypes.def. A dtype without a line here does not compile.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_DTYPENAMES_H
#define MLAFIX_PYTHON_DTYPENAMES_H

#include "DLPack.h"
#include <cstdint>
#include <string_view>

namespace mlafix::python {

/// A dtype by its ABI value.
struct DTypeNames {
  int32_t dtype; ///< a mlafix_dtype
  std::string_view
      name;     ///< of numpy with ml_dtypes, and of torch after "torch."
  uint8_t code; ///< in DLPack
  uint8_t bits;
};

namespace foreign {
struct Names {
  std::string_view name;
  dlpack::TypeCode code;
};
inline constexpr Names BF16 = {"bfloat16", dlpack::codeBFloat};
inline constexpr Names F16 = {"float16", dlpack::codeFloat};
inline constexpr Names F32 = {"float32", dlpack::codeFloat};
inline constexpr Names F8E4M3FN = {"float8_e4m3fn", dlpack::codeFloat8E4M3FN};
inline constexpr Names F8E5M2 = {"float8_e5m2", dlpack::codeFloat8E5M2};
inline constexpr Names I32 = {"int32", dlpack::codeInt};
inline constexpr Names I64 = {"int64", dlpack::codeInt};
inline constexpr Names I8 = {"int8", dlpack::codeInt};
inline constexpr Names U8 = {"uint8", dlpack::codeUInt};
inline constexpr Names BOOL = {"bool", dlpack::codeBool};
} // namespace foreign

inline constexpr DTypeNames dtypeNames[] = {
#define MLAFIX_DTYPE(ENUM, VALUE, NAME, BYTES, MLIR)                           \
  {VALUE, foreign::ENUM.name, foreign::ENUM.code, 8 * BYTES},
#include "mlafix/DTypes.def"
};

/// The dtype that is called so; 0 if there is none.
constexpr int32_t dtypeByName(std::string_view name) {
  for (const DTypeNames &entry : dtypeNames)
    if (entry.name == name)
      return entry.dtype;
  return 0;
}

/// The dtype of elements of DLPack's `code`, so wide; 0 if there is none.
constexpr int32_t dtypeByCode(int code, int bits) {
  for (const DTypeNames &entry : dtypeNames)
    if (entry.code == code && entry.bits == bits)
      return entry.dtype;
  return 0;
}

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_DTYPENAMES_H
