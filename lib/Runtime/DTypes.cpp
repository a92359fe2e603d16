//===- DTypes.cpp - The table of element types ----------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Manifest.h"

using namespace mlafix::runtime;

static const DTypeInfo table[] = {
#define MLAFIX_DTYPE(ENUM, VALUE, NAME, BITS, MLIR)                            \
  {MLAFIX_##ENUM, NAME, (BITS + 7) / 8, 8 / (BITS < 8 ? BITS : 8)},
#include "mlafix/DTypes.def"
};

const DTypeInfo *mlafix::runtime::findDType(const std::string &name) {
  for (const DTypeInfo &info : table)
    if (name == info.name)
      return &info;
  return nullptr;
}

const DTypeInfo *mlafix::runtime::findDType(int32_t dtype) {
  for (const DTypeInfo &info : table)
    if (info.dtype == dtype)
      return &info;
  return nullptr;
}

extern "C" const char *mlafix_dtype_name(mlafix_dtype dtype) noexcept {
  const DTypeInfo *info = findDType(static_cast<int32_t>(dtype));
  return info ? info->name : "?";
}

extern "C" size_t mlafix_dtype_size(mlafix_dtype dtype) noexcept {
  const DTypeInfo *info = findDType(static_cast<int32_t>(dtype));
  return info ? info->bytes : 0;
}
