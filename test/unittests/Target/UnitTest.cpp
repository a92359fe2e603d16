//===- UnitTest.cpp - the unit writer -------------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/Unit.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include "gtest/gtest.h"

using namespace llvm;
using namespace mlafix::target;
using support::endian::read32le;
using support::endian::read64le;

static UnitKernel makeKernel(size_t nameSize, size_t imageSize) {
  UnitKernel kernel;
  kernel.signature = json::Object{{"name", std::string(nameSize, 'k')}};
  UnitCode gpu;
  gpu.target = "sm_90";
  gpu.images.push_back({"cubin", std::string(imageSize, 'c'), "ptxas 1.2"});
  gpu.images.push_back({"ptx", std::string(imageSize + 1, 'p'), ""});
  gpu.variants.push_back(json::Object{{"entry", "k"}, {"registers", 8}});
  kernel.code.push_back(std::move(gpu));
  UnitCode cpu;
  cpu.target = "x86-64";
  cpu.images.push_back({"cpu", std::string(imageSize + 2, 'x'), ""});
  kernel.code.push_back(std::move(cpu));
  return kernel;
}

static uint64_t fnv(std::string bytes) {
  std::fill_n(bytes.begin() + 32, 8, '\0');
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char byte : bytes)
    hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

/// Expects that the unit obeys every rule of docs/UnitFormat.md, "Container".
static void expectWellFormed(const std::string &unit, size_t expectedImages) {
  ASSERT_GE(unit.size(), 64u);
  EXPECT_EQ(StringRef(unit).take_front(8), "MLAFIX\r\n");
  const char *header = unit.data();
  EXPECT_EQ(read32le(header + 8), 1u);
  EXPECT_EQ(read32le(header + 12), 1u);
  EXPECT_EQ(read64le(header + 16), unit.size());
  EXPECT_EQ(read64le(header + 32), fnv(unit));
  for (size_t i = 40; i < 64; ++i)
    EXPECT_EQ(unit[i], 0) << i;

  uint64_t manifestSize = read64le(header + 24);
  ASSERT_LE(64 + manifestSize, unit.size());
  StringRef text = StringRef(unit).substr(64, manifestSize);
  Expected<json::Value> manifest = json::parse(text);
  ASSERT_TRUE(bool(manifest)) << toString(manifest.takeError());
  uint64_t end = 64 + manifestSize;
  size_t images = 0;
  for (json::Value &kernel : *manifest->getAsObject()->getArray("kernels"))
    for (json::Value &code : *kernel.getAsObject()->getArray("code"))
      for (json::Value &image : *code.getAsObject()->getArray("images")) {
        ++images;
        uint64_t offset = *image.getAsObject()->getInteger("offset");
        uint64_t size = *image.getAsObject()->getInteger("size");
        EXPECT_EQ(offset, alignTo(end, 64));
        ASSERT_LE(offset + size, unit.size());
        for (uint64_t i = end; i < offset; ++i)
          EXPECT_EQ(unit[i], 0) << "padding at " << i;
        StringRef bytes = StringRef(unit).substr(offset, size);
        EXPECT_EQ(bytes.find_first_not_of(bytes.take_front(1)),
                  StringRef::npos);
        end = offset + size;
      }
  EXPECT_EQ(images, expectedImages);
  EXPECT_EQ(end, unit.size());
}

std::string written(ArrayRef<UnitKernel> kernels) {
  return cantFail(writeUnit(kernels));
}

TEST(Unit, follows_the_container_rules_whatever_the_sizes) {
  for (size_t nameSize = 1; nameSize < 200; ++nameSize)
    for (size_t imageSize : {1, 63, 64, 65, 935, 100000})
      expectWellFormed(
          written({makeKernel(nameSize, imageSize), makeKernel(3, 5)}), 6);
}

TEST(Unit, names_the_assembler_of_a_cubin_only) {
  std::string unit = written({makeKernel(1, 1)});
  EXPECT_EQ(StringRef(unit).count("\"assembler\":\"ptxas 1.2\""), 1u);
  EXPECT_EQ(StringRef(unit).count("assembler"), 1u);
}

/// Returns the error message of checkLimits. Returns "" if the kernel is within
/// the limits.
std::string faultOf(const UnitKernel &kernel) {
  Error error = checkLimits(kernel);
  return error ? toString(std::move(error)) : "";
}

TEST(Unit, of_more_than_the_runtime_loads_is_refused) {
  EXPECT_EQ(faultOf(makeKernel(5, 100)), "");
  UnitKernel kernel = makeKernel(5, 100);
  json::Object guards{{"guards", json::Array()}, {"params", json::Array()}};
  for (int i = 0; i != 193; ++i)
    guards.getArray("guards")->push_back(i);
  kernel.code[0].variants.push_back(std::move(guards));
  EXPECT_EQ(faultOf(kernel),
            "expected at most 192 guards of a code version in a unit, got 193");
  kernel = makeKernel(5, 100);
  json::Object params{{"params", json::Array()}};
  for (int i = 0; i != 257; ++i)
    params.getArray("params")->push_back(i);
  kernel.code[0].variants.push_back(std::move(params));
  EXPECT_EQ(
      faultOf(kernel),
      "expected at most 256 parameters of a code version in a unit, got 257");
  kernel = makeKernel(5, 100);
  kernel.signature["args"] = json::Array{"a\nb"};
  EXPECT_EQ(faultOf(kernel), "expected texts of at most 1024 bytes without "
                             "control characters in a unit, got \"a\\nb\"");
  kernel = makeKernel(5, 100);
  kernel.signature["args"] = json::Array{std::string(1025, 'x')};
  EXPECT_EQ(faultOf(kernel), "expected texts of at most 1024 bytes without "
                             "control characters in a unit, got 1025 bytes");
  std::vector<UnitKernel> many(4097);
  Expected<std::string> unit = writeUnit(many);
  ASSERT_FALSE(static_cast<bool>(unit));
  EXPECT_EQ(toString(unit.takeError()),
            "expected at most 4096 kernels in a unit, got 4097");
}

TEST(Unit, without_kernels_is_a_manifest_alone) {
  expectWellFormed(written({}), 0);
}
