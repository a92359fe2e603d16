//===- DTypeNames.h - Names of dtypes in other libraries --------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The names in numpy and torch of the dtypes in mlafix/DTypes.def. Compilation
// fails for a dtype that has no name here.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_DTYPENAMES_H
#define MLAFIX_PYTHON_DTYPENAMES_H

#include <cstdint>
#include <string_view>

namespace mlafix::python {

/// A dtype of mlafix and its name in other libraries.
struct DTypeName {
  int32_t dtype; ///< the dtype as a mlafix_dtype
  /// The name in numpy with ml_dtypes, and in torch after "torch.".
  std::string_view name;
};

namespace foreign {
inline constexpr std::string_view BF16 = "bfloat16";
inline constexpr std::string_view F16 = "float16";
inline constexpr std::string_view F32 = "float32";
inline constexpr std::string_view F8E4M3FN = "float8_e4m3fn";
inline constexpr std::string_view F8E5M2 = "float8_e5m2";
inline constexpr std::string_view F8E8M0 = "float8_e8m0fnu";
// Only torch has this dtype. ml_dtypes has none with two elements per byte.
inline constexpr std::string_view F4E2M1 = "float4_e2m1fn_x2";
inline constexpr std::string_view I32 = "int32";
inline constexpr std::string_view I64 = "int64";
inline constexpr std::string_view I8 = "int8";
inline constexpr std::string_view U8 = "uint8";
inline constexpr std::string_view BOOL = "bool";
} // namespace foreign

inline constexpr DTypeName dtypeNames[] = {
#define MLAFIX_DTYPE(ENUM, VALUE, NAME, BITS, MLIR) {VALUE, foreign::ENUM},
#include "mlafix/DTypes.def"
};

/// Returns the mlafix_dtype with a name in numpy or torch, or 0 if there is
/// none.
constexpr int32_t dtypeByName(std::string_view name) {
  for (const DTypeName &entry : dtypeNames)
    if (entry.name == name)
      return entry.dtype;
  return 0;
}

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_DTYPENAMES_H
