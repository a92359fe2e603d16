//===- ContainerTest.cpp - Damaged and foreign units ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "TestUnit.h"

#include "Container.h"

#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace mlafix;
using namespace mlafix::test;

namespace {

mlafix_status loadStatus(const std::vector<uint8_t> &bytes) {
  return errorOf([&] { Unit::load(bytes.data(), bytes.size()); }).status();
}

/// A temporary file. The destructor removes it.
struct TemporaryFile {
  TemporaryFile()
      : path(testing::TempDir() + "mlafix-" + std::to_string(getpid()) +
             ".mlafix") {}
  ~TemporaryFile() { std::remove(path.c_str()); }
  void write(const std::vector<uint8_t> &bytes) const {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char *>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  std::string path;
};

TEST(Container, loads_from_memory_and_from_a_file) {
  TemporaryFile file;
  file.write(addBiasUnit().finish());
  EXPECT_STREQ(load(addBiasUnit()).producer(), "test 1");
  EXPECT_STREQ(Unit::load(file.path).producer(), "test 1");
}

TEST(Container, every_single_bit_flip_is_found) {
  std::vector<uint8_t> bytes = cpuOnlyUnit().finish();
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] ^= 1 << bit;
      mlafix_unit *unit = nullptr;
      ASSERT_NE(
          mlafix_unit_load_memory(bytes.data(), bytes.size(), nullptr, &unit),
          MLAFIX_OK)
          << "byte " << i << ", bit " << bit;
      ASSERT_EQ(unit, nullptr);
      bytes[i] ^= 1 << bit;
    }
  EXPECT_EQ(loadStatus(bytes), MLAFIX_OK);
}

TEST(Container, every_truncation_is_found) {
  std::vector<uint8_t> whole = cpuOnlyUnit().finish();
  for (size_t size = 0; size < whole.size(); ++size) {
    // The copy has no spare capacity, so that AddressSanitizer finds a read
    // past its end.
    std::vector<uint8_t> bytes(whole.begin(), whole.begin() + size);
    bytes.shrink_to_fit();
    ASSERT_EQ(loadStatus(bytes), MLAFIX_BAD_UNIT) << size << " bytes";
  }
  std::vector<uint8_t> half(whole.begin(), whole.begin() + whole.size() / 2);
  expectError(MLAFIX_BAD_UNIT, {"truncated", std::to_string(whole.size())},
              [&] { Unit::load(half.data(), half.size()); });
}

TEST(Container, extra_bytes_are_found) {
  std::vector<uint8_t> bytes = addBiasUnit().finish();
  bytes.push_back(0);
  EXPECT_EQ(loadStatus(bytes), MLAFIX_BAD_UNIT);
  bytes[16] += 1; // the unit's size in the header counts the extra byte
  fixChecksum(bytes);
  expectError(MLAFIX_BAD_UNIT, {"end with its last image"},
              [&] { Unit::load(bytes.data(), bytes.size()); });
}

TEST(Container, other_versions_say_expected_and_got) {
  std::vector<uint8_t> bytes = addBiasUnit().finish();
  bytes[8] = 2;
  fixChecksum(bytes);
  expectError(MLAFIX_VERSION_MISMATCH,
              {"expected container version 1, got 2", "newer"},
              [&] { Unit::load(bytes.data(), bytes.size()); });
  bytes[8] = 1;
  bytes[12] = 9;
  fixChecksum(bytes);
  expectError(MLAFIX_VERSION_MISMATCH,
              {"expected kernel ABI version 1, got 9", "newer"},
              [&] { Unit::load(bytes.data(), bytes.size()); });
}

TEST(Container, a_text_mode_transfer_is_named) {
  std::vector<uint8_t> bytes = addBiasUnit().finish();
  bytes.erase(bytes.begin() + 6); // as if \r\n had become \n
  expectError(MLAFIX_BAD_UNIT, {"transferred as text"},
              [&] { Unit::load(bytes.data(), bytes.size()); });
}

TEST(Container, reserved_header_bytes_must_be_zero) {
  std::vector<uint8_t> bytes = addBiasUnit().finish();
  bytes[50] = 1;
  fixChecksum(bytes);
  expectError(MLAFIX_BAD_UNIT, {"bytes 40 to 63"},
              [&] { Unit::load(bytes.data(), bytes.size()); });
}

TEST(Container, a_manifest_size_that_leads_out_of_the_file_is_found) {
  // Changes the manifest's size to about 8 MiB (the limit is 16 MiB), to 2 GiB,
  // and to almost 2^63 bytes.
  for (int byte : {26, 27, 31}) {
    std::vector<uint8_t> bytes = addBiasUnit().finish();
    bytes[byte] = 0x7f;
    fixChecksum(bytes);
    expectError(MLAFIX_BAD_UNIT, {"lies within the unit"},
                [&] { Unit::load(bytes.data(), bytes.size()); });
  }
}

TEST(Container, images_leave_no_gap_and_overlap_nothing) {
  for (int delta : {-64, -1, 1, 64}) {
    UnitWriter writer = addBiasUnit();
    // Takes the manifest that finish() writes, and changes the offset of one
    // image.
    std::vector<uint8_t> bytes = writer.finish();
    json manifest = json::parse(
        bytes.begin() + 64, bytes.begin() + 64 + bytes[24] + 256 * bytes[25]);
    json &offset = manifest["kernels"][0]["code"][1]["images"][0]["offset"];
    offset = offset.get<int64_t>() + delta;
    std::string text = manifest.dump();
    if (text.size() != bytes[24] + 256u * bytes[25])
      continue; // another number of digits would move all images
    std::copy(text.begin(), text.end(), bytes.begin() + 64);
    fixChecksum(bytes);
    expectError(MLAFIX_BAD_UNIT, {"gap"},
                [&] { Unit::load(bytes.data(), bytes.size()); });
  }
}

TEST(Container, padding_must_be_zero) {
  std::vector<uint8_t> bytes = addBiasUnit().finish();
  // The first image starts at a multiple of 64. Padding fills the space between
  // the end of the JSON and this image.
  size_t end = 64 + bytes[24] + 256u * bytes[25];
  ASSERT_NE(end % 64, 0u) << "change the unit's text by a letter";
  bytes[end] = 'x';
  fixChecksum(bytes);
  expectError(MLAFIX_BAD_UNIT, {"zeros between"},
              [&] { Unit::load(bytes.data(), bytes.size()); });
}

TEST(Container, kernels_may_share_an_image) {
  UnitWriter writer = addBiasUnit();
  json second = writer.kernel();
  second["name"] = "again";
  writer.manifest["kernels"].push_back(second);
  EXPECT_EQ(load(writer).kernels().size(), 2u);
}

TEST(Container, a_unit_without_kernels_is_a_unit) {
  std::string manifest = R"({"producer": "x", "kernels": []})";
  std::vector<uint8_t> bytes = wrapUnit(manifest, "");
  EXPECT_EQ(loadStatus(bytes), MLAFIX_OK);
}

TEST(Container, the_verify_callback_sees_the_bytes_first) {
  std::vector<uint8_t> bytes = {1, 2, 3}; // not a unit
  struct Seen {
    const void *bytes;
    size_t size = 0;
  } seen;
  mlafix_load_options options = MLAFIX_LOAD_OPTIONS_INIT;
  options.verify_user = &seen;
  options.verify = [](void *user, const void *, size_t size) {
    static_cast<Seen *>(user)->size = size;
    return 0;
  };
  expectError(MLAFIX_REFUSED, {"verify callback"},
              [&] { Unit::load(bytes.data(), bytes.size(), &options); });
  EXPECT_EQ(seen.size, 3u);
  options.verify = [](void *, const void *, size_t) { return 1; };
  bytes = addBiasUnit().finish();
  EXPECT_NO_THROW(Unit::load(bytes.data(), bytes.size(), &options));
}

TEST(Container, cpu_code_can_be_refused) {
  std::vector<uint8_t> bytes = addBiasUnit().finish();
  mlafix_load_options options = MLAFIX_LOAD_OPTIONS_INIT;
  options.flags = MLAFIX_LOAD_NO_CPU_CODE;
  expectError(MLAFIX_REFUSED, {"code for the CPU"},
              [&] { Unit::load(bytes.data(), bytes.size(), &options); });
  UnitWriter writer = addBiasUnit();
  json &code = writer.kernel()["code"];
  code.erase(0);
  writer.images.erase(writer.images.begin());
  for (json &target : code)
    for (json &image : target["images"])
      image["image"] = image["image"].get<int>() - 1;
  bytes = writer.finish();
  EXPECT_NO_THROW(Unit::load(bytes.data(), bytes.size(), &options));
}

TEST(Container, options_of_an_older_caller_are_shorter) {
  std::vector<uint8_t> bytes = addBiasUnit().finish();
  mlafix_load_options options = MLAFIX_LOAD_OPTIONS_INIT;
  options.verify = [](void *, const void *, size_t) { return 0; };
  // The size of the struct in an older version of the C header, which has the
  // flags but not `verify`.
  options.struct_size = 8;
  EXPECT_NO_THROW(Unit::load(bytes.data(), bytes.size(), &options));
  options.struct_size = 0;
  expectError(MLAFIX_INVALID_ARGUMENT, {"struct_size"},
              [&] { Unit::load(bytes.data(), bytes.size(), &options); });
  options.struct_size = sizeof(options);
  options.flags = 64;
  expectError(MLAFIX_INVALID_ARGUMENT, {"flags"},
              [&] { Unit::load(bytes.data(), bytes.size(), &options); });
}

TEST(Container, files_that_cannot_be_read_say_so) {
  expectError(MLAFIX_NOT_FOUND, {"/no/such/file", "No such file"},
              [] { Unit::load("/no/such/file"); });
  expectError(MLAFIX_IO_ERROR, {"regular file"}, [] { Unit::load("/tmp"); });
  TemporaryFile file;
  file.write({});
  expectError(MLAFIX_BAD_UNIT, {file.path, "64"},
              [&] { Unit::load(file.path); });
}

TEST(Container, null_pointers_are_errors) {
  mlafix_unit *unit = nullptr;
  EXPECT_EQ(mlafix_unit_load_file(nullptr, nullptr, &unit),
            MLAFIX_INVALID_ARGUMENT);
  EXPECT_EQ(mlafix_unit_load_file("x", nullptr, nullptr),
            MLAFIX_INVALID_ARGUMENT);
  EXPECT_EQ(mlafix_unit_load_memory(nullptr, 4, nullptr, &unit),
            MLAFIX_INVALID_ARGUMENT);
  EXPECT_EQ(mlafix_unit_load_memory(nullptr, 0, nullptr, &unit),
            MLAFIX_BAD_UNIT);
  mlafix_unit_destroy(nullptr);
}

TEST(Container, errors_also_go_to_the_callers_buffer) {
  char buffer[16] = "";
  mlafix_set_error_buffer(buffer, sizeof(buffer));
  mlafix_unit *unit = nullptr;
  EXPECT_EQ(mlafix_unit_load_memory(nullptr, 0, nullptr, &unit),
            MLAFIX_BAD_UNIT);
  mlafix_set_error_buffer(nullptr, 0);
  EXPECT_EQ(std::string(buffer),
            std::string(mlafix_last_error()).substr(0, sizeof(buffer) - 1));
}

} // namespace
