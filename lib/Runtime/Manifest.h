//===- Manifest.h - The manifest of a unit, from JSON -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_MANIFEST_H
#define MLAFIX_RUNTIME_MANIFEST_H

#include "UnitModel.h"

#include <cstddef>

namespace mlafix::runtime {

/// Parses the manifest, `size` bytes at `text`. Checks that the offset and the
/// size of an image are at most limits::fileBytes, so their sum does not
/// overflow. parseUnit() checks that images lie within the file. Error:
/// BAD_UNIT, with the position in the manifest.
mlafix_status parseManifest(const char *text, size_t size, UnitDesc &unit);

/// A dtype. findDType() returns null if there is no dtype with that name or
/// number.
struct DTypeInfo {
  mlafix_dtype dtype;
  const char *name;
  uint32_t bytes;
  uint32_t perByte; ///< number of elements that share a byte: 1 or 2
};
const DTypeInfo *findDType(const std::string &name);
const DTypeInfo *findDType(int32_t dtype);

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_MANIFEST_H
