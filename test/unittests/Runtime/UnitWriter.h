//===- UnitWriter.h - Makes units in memory for tests -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TEST_UNITWRITER_H
#define MLAFIX_TEST_UNITWRITER_H

#include "MachineCode.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mlafix::test {

using nlohmann::json;

/// An editable unit. finish() returns the unit's bytes, in which the offset and
/// size of image I replace each "image": I of the manifest.
struct UnitWriter {
  json manifest;
  std::vector<std::string> images;

  json &kernel(size_t index = 0) { return manifest["kernels"][index]; }
  std::vector<uint8_t> finish() const;
};

/// Makes a unit from a manifest and the bytes after it, by adding a header with
/// the right checksum.
std::vector<uint8_t> wrapUnit(const std::string &manifest,
                              const std::string &tail);

/// Writes the right checksum into a unit whose bytes were changed.
void fixChecksum(std::vector<uint8_t> &bytes);

/// Returns a unit with one kernel, `add_bias`, with these arguments:
///
///   - 0: out, f32 [n, D=4], write
///   - 1: in, f32 [n, D=4], read
///   - 2: scale, f32 [n], read, optional
///   - 3: bias, scalar f32
///   - 4: limit, scalar index, at most n
///
/// The kernel computes out = in + bias, and `in` may be the same tensor as
/// `out`. The unit has code for machineCodeTarget, sm_90 and sm_80. Each GPU
/// target has a cubin and PTX, both with the variants add_bias_aligned (16
/// bytes) and add_bias_any.
UnitWriter addBiasUnit();

/// Returns the unit of addBiasUnit with its CPU code only.
UnitWriter cpuOnlyUnit();

/// Returns a launch check n >= `least` for add_bias.
json leastRows(int64_t least);

/// Returns a minimal ELF header that passes for a cubin's, followed by `text`.
std::string fakeCubin(const std::string &text);

} // namespace mlafix::test

#endif // MLAFIX_TEST_UNITWRITER_H
