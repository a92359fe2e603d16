//===- ImageCheck.cpp - Are images what they claim to be ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Container.h"

#include "Status.h"

#include <cinttypes>
#include <cstring>

using namespace mlafix::runtime;

namespace {

// Offsets and values from the 64-bit ELF format (System V ABI, chapter "Object
// Files"). Structs are not used, since images may be unaligned.
constexpr uint64_t elfHeaderBytes = 64;
constexpr uint64_t sectionHeaderBytes = 64;
constexpr uint64_t programHeaderBytes = 56;
constexpr uint16_t machineCuda = 190;
constexpr uint32_t sectionNoBits = 8;
constexpr uint32_t sectionNull = 0;

/// Reads integers of an image. Callers of get() have checked that the integer
/// lies within the image.
struct Reader {
  const uint8_t *bytes;
  uint64_t size;

  template <typename T> T get(uint64_t offset) const {
    return readInteger<T>(bytes + offset);
  }
  bool holds(uint64_t offset, uint64_t length) const {
    return offset <= size && length <= size - offset;
  }
  /// Returns true if a table of `count` entries of `entrySize` bytes lies
  /// within the image. Callers read both numbers from 16-bit fields, so the
  /// product does not overflow.
  bool holdsTable(uint64_t offset, uint64_t count, uint64_t entrySize) const {
    return holds(offset, count * entrySize);
  }
};

mlafix_status checkSections(const Reader &elf) {
  auto tableOffset = elf.get<uint64_t>(40);
  auto entrySize = elf.get<uint16_t>(58);
  auto count = elf.get<uint16_t>(60);
  auto namesIndex = elf.get<uint16_t>(62);
  if (count == 0)
    return tableOffset == 0
               ? MLAFIX_OK
               : fail(MLAFIX_BAD_UNIT,
                      "expected a cubin with a section count, got 0");
  if (entrySize != sectionHeaderBytes ||
      !elf.holdsTable(tableOffset, count, entrySize))
    return fail(MLAFIX_BAD_UNIT,
                "expected the cubin's section table within its %" PRIu64
                " bytes, got %u entries of %u bytes at offset %" PRIu64,
                elf.size, count, entrySize, tableOffset);
  if (namesIndex >= count)
    return fail(MLAFIX_BAD_UNIT,
                "expected the cubin's section names in one of its %u sections, "
                "got section %u",
                count, namesIndex);
  uint64_t namesHeader = tableOffset + namesIndex * sectionHeaderBytes;
  auto namesSize = elf.get<uint64_t>(namesHeader + 32);
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t header = tableOffset + i * sectionHeaderBytes;
    auto name = elf.get<uint32_t>(header);
    auto type = elf.get<uint32_t>(header + 4);
    auto offset = elf.get<uint64_t>(header + 24);
    auto size = elf.get<uint64_t>(header + 32);
    auto link = elf.get<uint32_t>(header + 40);
    if (type == sectionNull)
      continue;
    bool inside = type == sectionNoBits || elf.holds(offset, size);
    if (!inside || link >= count || name >= namesSize)
      return fail(MLAFIX_BAD_UNIT,
                  "expected section %u of the cubin within its %" PRIu64
                  " bytes, got %" PRIu64 " bytes at offset %" PRIu64
                  " (link %u, name %u)",
                  i, elf.size, size, offset, link, name);
  }
  // The section names must end with a NUL.
  auto namesOffset = elf.get<uint64_t>(namesHeader + 24);
  if (elf.get<uint32_t>(namesHeader + 4) == sectionNoBits || namesSize == 0 ||
      !elf.holds(namesOffset, namesSize) ||
      elf.bytes[namesOffset + namesSize - 1] != 0)
    return fail(MLAFIX_BAD_UNIT, "expected the cubin's section names to end "
                                 "with a NUL, got none");
  return MLAFIX_OK;
}

mlafix_status checkSegments(const Reader &elf) {
  auto tableOffset = elf.get<uint64_t>(32);
  auto entrySize = elf.get<uint16_t>(54);
  auto count = elf.get<uint16_t>(56);
  if (count == 0)
    return MLAFIX_OK;
  if (entrySize != programHeaderBytes ||
      !elf.holdsTable(tableOffset, count, entrySize))
    return fail(MLAFIX_BAD_UNIT,
                "expected the cubin's program table within its %" PRIu64
                " bytes, got %u entries of %u bytes at offset %" PRIu64,
                elf.size, count, entrySize, tableOffset);
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t header = tableOffset + i * programHeaderBytes;
    auto offset = elf.get<uint64_t>(header + 8);
    auto size = elf.get<uint64_t>(header + 32);
    if (!elf.holds(offset, size))
      return fail(MLAFIX_BAD_UNIT,
                  "expected segment %u of the cubin within its %" PRIu64
                  " bytes, got %" PRIu64 " bytes at offset %" PRIu64,
                  i, elf.size, size, offset);
  }
  return MLAFIX_OK;
}

} // namespace

mlafix_status mlafix::runtime::checkCubin(const uint8_t *bytes, size_t size) {
  // The magic number, then 64-bit, little-endian, ELF version 1.
  static const uint8_t ident[7] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
  Reader elf{bytes, size};
  if (size < elfHeaderBytes || std::memcmp(bytes, ident, sizeof(ident)) != 0)
    return fail(MLAFIX_BAD_UNIT, "expected a cubin, which is a 64-bit "
                                 "little-endian ELF file, got something else");
  auto machine = elf.get<uint16_t>(18);
  if (machine != machineCuda)
    return fail(MLAFIX_BAD_UNIT,
                "expected a cubin, whose ELF machine is %u, got machine %u",
                machineCuda, machine);
  auto headerSize = elf.get<uint16_t>(52);
  if (headerSize != elfHeaderBytes)
    return fail(MLAFIX_BAD_UNIT,
                "expected a cubin with an ELF header of %" PRIu64
                " bytes, got %u",
                elfHeaderBytes, headerSize);
  MLAFIX_TRY(checkSections(elf));
  return checkSegments(elf);
}

mlafix_status mlafix::runtime::checkPtx(const uint8_t *bytes, size_t size) {
  // Skip the terminator of a C string, which may be part of the image.
  while (size > 0 && bytes[size - 1] == 0)
    --size;
  if (size == 0)
    return fail(MLAFIX_BAD_UNIT, "expected PTX, got an empty image");
  for (size_t i = 0; i < size; ++i)
    if (bytes[i] == 0x7f || (bytes[i] < 0x20 && bytes[i] != '\t' &&
                             bytes[i] != '\n' && bytes[i] != '\r'))
      return fail(MLAFIX_BAD_UNIT,
                  "expected PTX, which is text, got the byte 0x%02x at %zu",
                  bytes[i], i);
  return MLAFIX_OK;
}
