//===- Npy.h - Arrays in numpy's .npy files ---------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads and writes .npy files. The format is that of numpy.lib.format, versions
// 1 to 3, little-endian. numpy lacks the types below. Files contain their
// elements as raw bytes, as ml_dtypes saves them:
//
//   bf16      '<V2' (read also: '<u2', 'bfloat16')
//   f8e4m3fn  '|V1' (read also: '|u1', 'float8_e4m3fn')
//   f8e5m2    '<f1' (read also: '|V1', '|u1', 'float8_e5m2')
//   f8e8m0    '|V1' (read also: '|u1', 'float8_e8m0fnu')
//   f4e2m1    none: two elements share a byte
//
// In Python, np.load(file).view(ml_dtypes.bfloat16) gives an array of bf16.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUN_NPY_H
#define MLAFIX_RUN_NPY_H

#include "mlafix/runtime.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mlafix::run {

/// A contiguous array in C or Fortran order.
struct Array {
  mlafix_dtype dtype = MLAFIX_F32;
  std::vector<int64_t> sizes;
  bool fortranOrder = false;
  std::vector<char> bytes;

  int64_t numElements() const;
  std::vector<int64_t> strides() const; ///< in elements
};

/// Reads the file `path` as an array of `dtype`. Throws std::runtime_error if
/// the file cannot be read, is not an .npy file, is truncated, or has another
/// dtype.
Array readNpy(const std::string &path, mlafix_dtype dtype);

/// Writes `array` to the file `path` in version 1 of the format. Throws
/// std::runtime_error.
void writeNpy(const std::string &path, const Array &array);

} // namespace mlafix::run

#endif // MLAFIX_RUN_NPY_H
