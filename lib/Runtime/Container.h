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

/// 64-bit FNV-1a of a unit's bytes, with the checksum field as zero.
uint64_t unitChecksum(const uint8_t *bytes, size_t size);

enum class ChecksumPolicy { Verify, IgnoreForFuzzing };

/// Reads a whole unit: checks the header, the checksum, the manifest, that the
/// images fill the rest of the file exactly, and their formats. Errors:
/// BAD_UNIT, VERSION_MISMATCH.
mlafix_status parseUnit(const uint8_t *bytes, size_t size,
                        ChecksumPolicy checksum, UnitDesc &unit);

/// Checks that the tables of a cubin lie within its `size` bytes: the driver
/// receives no size and trusts them. Error: BAD_UNIT.
mlafix_status checkCubin(const uint8_t *bytes, size_t size);

/// Checks that an image is text, as the driver requires of PTX. Error:
/// BAD_UNIT.
mlafix_status checkPtx(const uint8_t *bytes, size_t size);

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_CONTAINER_H
