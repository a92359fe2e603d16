//===- NpyTest.cpp - Reading and writing .npy files -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Npy.h"

#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace mlafix::run;

namespace {

class Npy : public testing::Test {
protected:
  std::string path =
      testing::TempDir() + "mlafix-" + std::to_string(getpid()) + ".npy";
  void TearDown() override { std::remove(path.c_str()); }

  void write(const std::string &bytes) {
    std::ofstream file(path, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  /// Writes a file of the given version, header and data.
  void write(int version, std::string header, const std::string &data) {
    std::string bytes("\x93NUMPY", 6);
    bytes += static_cast<char>(version);
    bytes += '\0';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
      bytes += static_cast<char>(header.size() >> (8 * i));
    write(bytes + header + data);
  }
  std::string error(mlafix_dtype dtype = MLAFIX_F32) {
    try {
      readNpy(path, dtype);
    } catch (const std::runtime_error &failure) {
      return failure.what();
    }
    return "";
  }
};

#define EXPECT_ERROR(WORD)                                                     \
  EXPECT_NE(error().find(WORD), std::string::npos) << error()

const std::string plain =
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n";

TEST_F(Npy, survives_a_round_trip_in_every_dtype) {
  for (int dtype = 1; mlafix_dtype_size(mlafix_dtype(dtype)); ++dtype) {
    Array array;
    array.dtype = static_cast<mlafix_dtype>(dtype);
    array.sizes = {3, 1, 5};
    array.bytes.resize(15 * mlafix_dtype_size(array.dtype));
    if (dtype == MLAFIX_F4E2M1) { // two elements share a byte
      EXPECT_THROW(writeNpy(path, array), std::runtime_error);
      EXPECT_THROW(readNpy(path, array.dtype), std::runtime_error);
      continue;
    }
    for (size_t i = 0; i < array.bytes.size(); ++i)
      array.bytes[i] = static_cast<char>(i * 7);
    writeNpy(path, array);
    Array back = readNpy(path, array.dtype);
    EXPECT_EQ(back.sizes, array.sizes);
    EXPECT_EQ(back.bytes, array.bytes);
    EXPECT_EQ(back.numElements(), 15);
    EXPECT_EQ(back.strides(), (std::vector<int64_t>{5, 5, 1}));
  }
}

TEST_F(Npy, data_starts_at_a_multiple_of_64) {
  Array array;
  array.dtype = MLAFIX_BF16;
  writeNpy(path, array); // the array has rank 0 and no data
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  EXPECT_EQ(file.tellg() % 64, 0);
}

TEST_F(Npy, all_versions_are_read) {
  for (int version : {1, 2, 3}) {
    write(version, plain, std::string(24, 'x'));
    Array array = readNpy(path, MLAFIX_F32);
    EXPECT_EQ(array.sizes, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(array.bytes, std::vector<char>(24, 'x'));
  }
}

TEST_F(Npy, fortran_order_becomes_strides) {
  write(1, "{'shape': (2, 3), 'fortran_order': True, 'descr': \"<f4\"}",
        std::string(24, 'x'));
  EXPECT_EQ(readNpy(path, MLAFIX_F32).strides(), (std::vector<int64_t>{1, 2}));
}

TEST_F(Npy, bf16_is_read_in_all_its_spellings) {
  for (const char *descr : {"<V2", "|V2", "<u2", "bfloat16"}) {
    write(1,
          std::string("{'descr': '") + descr +
              "', 'fortran_order': False, 'shape': (2,), }",
          "abcd");
    EXPECT_EQ(readNpy(path, MLAFIX_BF16).bytes.size(), 4u) << descr;
  }
}

TEST_F(Npy, ranks_and_sizes_of_zero) {
  write(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "abcd");
  EXPECT_EQ(readNpy(path, MLAFIX_F32).numElements(), 1);
  write(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9), }", "");
  EXPECT_EQ(readNpy(path, MLAFIX_F32).numElements(), 0);
}

TEST_F(Npy, files_that_are_none_say_so) {
  EXPECT_ERROR("cannot open");
  write("");
  EXPECT_ERROR("header");
  write("PK\x03\x04 an .npz file, say");
  EXPECT_ERROR("expected an .npy file");
  write(4, plain, "");
  EXPECT_ERROR("version 1, 2 or 3, got 4");
  write(std::string("\x93NUMPY\x02\x00\xff\xff\xff\x7f", 12));
  EXPECT_ERROR("at most 1048576 bytes");
}

TEST_F(Npy, truncated_data_is_found) {
  write(1, plain, std::string(23, 'x'));
  EXPECT_ERROR("expected 24 bytes of data, got 23");
  write(1, plain.substr(0, 40), "");
  EXPECT_ERROR("header");
  write(1,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, "
        "4000000000), }",
        "");
  EXPECT_ERROR("fits memory");
  write(1,
        "{'descr': '<f4', 'fortran_order': False, 'shape': "
        "(99999999999999999999,), }",
        "");
  EXPECT_ERROR("64 bits");
}

TEST_F(Npy, another_dtype_says_expected_and_got) {
  write(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", "");
  EXPECT_ERROR("expected dtype f32, which is '<f4', got '<f8'");
  write(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", "");
  EXPECT_ERROR("'>f4'");
  write(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }",
        "");
  EXPECT_ERROR("structured");
}

TEST_F(Npy, malformed_headers_are_found) {
  for (const char *header :
       {"", "{", "{}", "[1]", "{'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 2}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 3}"}) {
    write(1, header, "abcdefgh");
    EXPECT_NE(error(), "") << header;
  }
}

} // namespace
