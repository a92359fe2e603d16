//===- EmbeddedTest.cpp - Units that are part of a program ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "TestUnit.h"

#include "mlafix/runtime/views.hpp"

#include <cstdio>
#include <deque>
#include <thread>
#include <unistd.h>

using namespace mlafix;
using namespace mlafix::test;

namespace {

const char *const kernels[] = {"add_bias", "D=4,T=f32"};

/// An embedded unit, defined as in a header that mlafix-opt writes.
struct Program {
  std::vector<uint8_t> bytes = cpuOnlyUnit().finish();
  mlafix_embedded embedded = {sizeof(mlafix_embedded),
                              MLAFIX_ABI_VERSION,
                              "biases",
                              bytes.data(),
                              bytes.data() + bytes.size(),
                              kernels,
                              1,
                              nullptr};
};

/// Creates a program that lives until the process ends, since an embedded unit
/// is never unloaded.
Program &makeProgram() {
  static auto *programs = new std::deque<Program>;
  return programs->emplace_back();
}

TEST(Embedded, first_call_loads_the_unit_and_finds_its_kernels) {
  Program &program = makeProgram();
  const mlafix_kernel *kernel = nullptr;
  check(mlafix_embedded_kernel(&program.embedded, 0, &kernel));
  EXPECT_STREQ(mlafix_kernel_name(kernel), "add_bias");
  mlafix_unit *unit = nullptr;
  check(mlafix_embedded_unit(&program.embedded, &unit));
  EXPECT_EQ(mlafix_unit_kernel_at(unit, 0), kernel);
  expectError(MLAFIX_INVALID_ARGUMENT, {"index", "less than 1", "got 1"}, [&] {
    check(mlafix_embedded_kernel(&program.embedded, 1, &kernel));
  });
}

TEST(Embedded, threads_that_load_at_once_get_one_unit) {
  Program &program = makeProgram();
  std::vector<mlafix_unit *> units(8);
  std::vector<std::thread> threads;
  for (mlafix_unit *&unit : units)
    threads.emplace_back(
        [&] { mlafix_embedded_unit(&program.embedded, &unit); });
  for (std::thread &thread : threads)
    thread.join();
  for (mlafix_unit *unit : units)
    EXPECT_TRUE(unit && unit == units.front());
}

TEST(Embedded, without_bytes_the_unit_comes_from_a_file) {
  Program &program = makeProgram();
  program.embedded.begin = program.embedded.end = nullptr;
  mlafix_unit *unit = nullptr;
  expectError(MLAFIX_NOT_FOUND, {"biases", "biases_load", "got neither"},
              [&] { check(mlafix_embedded_unit(&program.embedded, &unit)); });
  expectError(MLAFIX_NOT_FOUND, {"/no/such.mlafix"}, [&] {
    check(mlafix_embedded_load(&program.embedded, "/no/such.mlafix"));
  });

  std::string path =
      testing::TempDir() + "embedded" + std::to_string(getpid()) + ".mlafix";
  std::FILE *file = std::fopen(path.c_str(), "wb");
  ASSERT_TRUE(file);
  std::fwrite(program.bytes.data(), 1, program.bytes.size(), file);
  std::fclose(file);
  check(mlafix_embedded_load(&program.embedded, path.c_str()));
  std::remove(path.c_str());
  check(mlafix_embedded_unit(&program.embedded, &unit));
  // The unit is already loaded, so the file is not read.
  check(mlafix_embedded_load(&program.embedded, "/no/such.mlafix"));
}

TEST(Embedded, null_for_the_result_is_an_error) {
  Program program;
  expectError(MLAFIX_INVALID_ARGUMENT, {"\"unit\"", "got null"},
              [&] { check(mlafix_embedded_unit(&program.embedded, nullptr)); });
  expectError(MLAFIX_INVALID_ARGUMENT, {"\"kernel\"", "got null"}, [&] {
    check(mlafix_embedded_kernel(&program.embedded, 0, nullptr));
  });
}

TEST(Embedded, a_unit_that_lacks_a_kernel_is_not_loaded) {
  Program &program = makeProgram();
  const char *const others[] = {"add_bias", "D=8"};
  program.embedded.kernels = others;
  expectError(MLAFIX_NOT_FOUND, {"biases", "add_bias", "D=8"},
              [&] { check(mlafix_embedded_load(&program.embedded, nullptr)); });
  EXPECT_EQ(program.embedded.loaded, nullptr);
}

TEST(Embedded, a_program_for_another_abi_version_is_refused) {
  Program &program = makeProgram();
  program.embedded.abi_version = MLAFIX_ABI_VERSION + 1;
  expectError(MLAFIX_VERSION_MISMATCH, {"biases", "ABI version 2", "got 1"},
              [&] { check(mlafix_embedded_load(&program.embedded, nullptr)); });
  program.embedded.struct_size = 8;
  expectError(MLAFIX_INVALID_ARGUMENT, {"struct_size"},
              [&] { check(mlafix_embedded_load(&program.embedded, nullptr)); });
}

TEST(Embedded, damaged_bytes_are_refused) {
  Program &program = makeProgram();
  program.bytes.back() ^= 1;
  expectError(MLAFIX_BAD_UNIT, {"biases", "checksum"},
              [&] { check(mlafix_embedded_load(&program.embedded, nullptr)); });
}

/// Returns a view as a tensor of the C interface.
mlafix_tensor on(const detail::Descriptor &descriptor) {
  return *static_cast<const mlafix_tensor *>(descriptor);
}

TEST(Views, have_the_dtype_rank_sizes_and_strides_of_their_argument) {
  uint16_t memory[24] = {};
  auto *data = reinterpret_cast<bf16 *>(memory);
  View<bf16, 2> whole(data, {3, 4});
  EXPECT_EQ(on(whole.on(cpu())).dtype, MLAFIX_BF16);
  EXPECT_EQ(on(whole.on(cpu())).ndim, 2u);
  EXPECT_EQ(on(whole.on(cuda(1))).device.ordinal, 1);
  EXPECT_EQ(on(whole.on(cpu())).sizes[0], 3);
  EXPECT_EQ(on(whole.on(cpu())).strides, nullptr);

  View<const bf16, 2> part(data, {size_t(3), 2}, {8, 1});
  View<const bf16, 2> read = whole;
  OptionalView<const bf16, 2> omitted = nullptr, given = part;
  EXPECT_EQ(on(part.on(cpu())).strides[0], 8);
  EXPECT_EQ(on(read.on(cpu())).data, memory);
  EXPECT_EQ(on(omitted.on(cpu())).data, nullptr);
  EXPECT_EQ(on(omitted.on(cpu())).ndim, 2u);
  EXPECT_EQ(on(given.on(cpu())).strides[0], 8);
}

struct OtherBf16 {
  uint16_t bits;
};

} // namespace

template <>
struct mlafix::IsElement<OtherBf16, mlafix::bf16> : std::true_type {};

TEST(Views, take_elements_of_their_own_type_and_of_those_that_are_named) {
  auto takes = [](auto pointer, auto view) {
    return std::is_constructible<decltype(view), decltype(pointer),
                                 Extents<1>>::value;
  };
  float *f32 = nullptr;
  const float *constant = nullptr;
  bf16 *brain = nullptr;
  OtherBf16 *other = nullptr;
  View<float, 1> floats(f32, {0});
  View<const float, 1> read(f32, {0});
  View<bf16, 1> brains(brain, {0});
  EXPECT_TRUE(takes(f32, floats));
  EXPECT_FALSE(takes(constant, floats));
  EXPECT_TRUE(takes(constant, read));
  EXPECT_FALSE(takes(f32, brains));
  EXPECT_TRUE(takes(other, brains));
  void *memory = f32;
  EXPECT_EQ((View<float, 1>::untyped(memory, {0}).data()), nullptr);
}
