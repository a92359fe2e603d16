//===- NpyHeader.h - The header of an .npy file -----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUN_NPYHEADER_H
#define MLAFIX_RUN_NPYHEADER_H

#include <cstdint>
#include <string>
#include <vector>

namespace mlafix::run {

/// The contents of the dictionary at the start of an .npy file.
struct NpyHeader {
  std::string descr; ///< numpy's name of the dtype, for example "<f4"
  bool fortranOrder = false;
  std::vector<int64_t> shape;
};

/// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`. For
/// other text, throws std::runtime_error with a message that says what was
/// expected.
NpyHeader parseNpyHeader(const std::string &text);

} // namespace mlafix::run

#endif // MLAFIX_RUN_NPYHEADER_H
