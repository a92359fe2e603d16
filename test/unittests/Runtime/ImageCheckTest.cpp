//===- ImageCheckTest.cpp - Damaged cubins are refused --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Container.h"
#include "TestUnit.h"

using namespace mlafix;
using namespace mlafix::test;

namespace {

void put(std::string &elf, size_t offset, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i)
    elf[offset + i] = static_cast<char>(value >> (8 * i));
}

/// A cubin with three sections (null, names, text) and one segment.
std::string smallCubin() {
  std::string elf = fakeCubin("");
  std::string names("\0.shstrtab\0.text.k\0", 19);
  size_t namesAt = elf.size();
  elf += names;
  elf.resize(128);
  elf += "machine code....";
  size_t sectionsAt = elf.size();
  elf.resize(sectionsAt + 3 * 64);
  put(elf, sectionsAt + 64 + 0, 1, 4);
  put(elf, sectionsAt + 64 + 4, 3, 4);
  put(elf, sectionsAt + 64 + 24, namesAt, 8);
  put(elf, sectionsAt + 64 + 32, names.size(), 8);
  put(elf, sectionsAt + 128 + 0, 11, 4);
  put(elf, sectionsAt + 128 + 4, 1, 4);
  put(elf, sectionsAt + 128 + 24, 128, 8);
  put(elf, sectionsAt + 128 + 32, 16, 8);
  size_t segmentsAt = elf.size();
  elf.resize(segmentsAt + 56);
  put(elf, segmentsAt + 8, 128, 8);
  put(elf, segmentsAt + 32, 16, 8);
  put(elf, 32, segmentsAt, 8);
  put(elf, 40, sectionsAt, 8);
  put(elf, 54, 56, 2);
  put(elf, 56, 1, 2);
  put(elf, 58, 64, 2);
  put(elf, 60, 3, 2);
  put(elf, 62, 1, 2);
  return elf;
}

mlafix_status check(const std::string &elf) {
  // The copy has no spare capacity, so that AddressSanitizer finds a read past
  // its end.
  std::vector<uint8_t> bytes(elf.begin(), elf.end());
  return runtime::checkCubin(bytes.data(), bytes.size());
}

TEST(ImageCheck, a_cubin_passes) { EXPECT_EQ(check(smallCubin()), MLAFIX_OK); }

TEST(ImageCheck, a_cubin_cut_short_does_not) {
  std::string elf = smallCubin();
  for (size_t size = 0; size < elf.size(); ++size)
    EXPECT_EQ(check(elf.substr(0, size)), MLAFIX_BAD_UNIT) << size;
}

TEST(ImageCheck, tables_and_what_they_point_to_stay_inside) {
  size_t sections = 144, segments = sections + 3 * 64;
  struct {
    size_t offset, size;
    uint64_t value;
    const char *word;
  } cases[] = {
      {0, 1, 0x7e, "ELF"},
      {4, 1, 1, "64-bit"},
      {5, 1, 2, "little-endian"},
      {18, 2, 62, "machine 62"},
      {52, 2, 65, "header"},
      {40, 8, 1000, "section table"},
      {40, 8, ~0ull, "section table"},
      {58, 2, 63, "section table"},
      {60, 2, 0xffff, "section table"},
      {60, 2, 0, "section count"},
      {62, 2, 3, "section 3"},
      {sections + 128 + 24, 8, 1000, "section 2"},
      {sections + 128 + 32, 8, ~0ull, "section 2"},
      {sections + 128 + 40, 4, 3, "section 2"},
      {sections + 128, 4, 19, "section 2"},
      {sections + 64 + 32, 8, 18, "NUL"},
      {sections + 64 + 4, 4, 8, "NUL"},
      {32, 8, ~0ull, "program table"},
      {54, 2, 55, "program table"},
      {56, 2, 2, "program table"},
      {segments + 8, 8, ~0ull, "segment 0"},
      {segments + 32, 8, 1000, "segment 0"},
  };
  for (const auto &c : cases) {
    std::string elf = smallCubin();
    put(elf, c.offset, c.value, c.size);
    EXPECT_EQ(check(elf), MLAFIX_BAD_UNIT) << c.offset;
    EXPECT_NE(std::string(mlafix_last_error()).find(c.word), std::string::npos)
        << "no \"" << c.word << "\" in: " << mlafix_last_error();
  }
}

TEST(ImageCheck, sections_without_bytes_need_no_room) {
  std::string elf = smallCubin();
  put(elf, 144 + 128 + 4, 8, 4); // SHT_NOBITS, as for shared memory
  put(elf, 144 + 128 + 32, 1 << 20, 8);
  EXPECT_EQ(check(elf), MLAFIX_OK);
}

TEST(ImageCheck, a_unit_with_a_bad_cubin_says_which) {
  UnitWriter writer = addBiasUnit();
  writer.images[1] = "no cubin";
  expectBadUnit(writer, {"image at offset", "cubin"});
}

TEST(ImageCheck, ptx_is_text) {
  UnitWriter writer = addBiasUnit();
  writer.images[2] = std::string(".version\0 7.8", 13);
  expectBadUnit(writer, {"PTX", "text", "0x00 at 8"});
  writer.images[2] = std::string("\0\0", 2);
  expectBadUnit(writer, {"PTX", "empty"});
  writer.images[2] = std::string(".version 7.8\n\0", 14);
  EXPECT_NO_THROW(load(writer)); // a C string's terminator is allowed
}

} // namespace
