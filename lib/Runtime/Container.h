//===- Container.h - The unit file around its manifest ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_CONTAINER_H
#define MLAFIX_RUNTIME_CONTAINER_H

#include "UnitModel.h"

namespace mlafix::runtime {

namespace format {
constexpr unsigned char magic[8] = {'M', 'L', 'A', 'F', 'I', 'X', '\r', '\n'};
constexpr uint32_t containerVersion = 1;
constexpr uint32_t kernelAbiVersion = 1;
constexpr uint64_t headerBytes = 64;
constexpr uint64_t imageAlignment = 64;
} // namespace format

/// Reads an integer byte by byte, since units and cubins are little-endian but
/// the machine may not be.
template <typename T> T readInteger(const uint8_t *bytes) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(static_cast<T>(bytes[i]) << (8 * i));
  return value;
}

/// Returns the 64-bit FNV-1a hash of a unit's bytes. The bytes of the checksum
/// field count as zero.
uint64_t unitChecksum(const uint8_t *bytes, size_t size);

enum class ChecksumPolicy { Verify, IgnoreForFuzzing };

/// Reads a whole unit into `unit`. Checks the header, the checksum and the
/// manifest. Checks that the images fill the rest of the file exactly, and that
/// each image is valid for its format. Errors: BAD_UNIT, VERSION_MISMATCH.
mlafix_status parseUnit(const uint8_t *bytes, size_t size,
                        ChecksumPolicy checksum, UnitDesc &unit);

/// Checks that the tables of a cubin lie within its `size` bytes. The driver
/// gets no size and trusts the tables, so a wrong table would make it read
/// other memory. Error: BAD_UNIT.
mlafix_status checkCubin(const uint8_t *bytes, size_t size);

/// Checks that an image is text, as the driver requires for PTX. Error:
/// BAD_UNIT.
mlafix_status checkPtx(const uint8_t *bytes, size_t size);

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_CONTAINER_H
