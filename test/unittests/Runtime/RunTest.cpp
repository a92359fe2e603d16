//===- RunTest.cpp - Tests mlafix-run without its main --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Run.h"
#include "DeviceMemory.h"
#include "FakeCuda.h"
#include "Npy.h"
#include "Options.h"
#include "TestUnit.h"

#include <cstdlib>
#include <unistd.h>

using namespace mlafix;
using namespace mlafix::run;
using namespace mlafix::test;

namespace {

Options parse(std::vector<const char *> words) {
  words.insert(words.begin(), "mlafix-run");
  return parseOptions(static_cast<int>(words.size()), words.data());
}

template <typename Body>
void expectFailure(const std::vector<std::string> &words, Body body) {
  try {
    body();
    ADD_FAILURE() << "no error";
  } catch (const std::runtime_error &error) {
    for (const std::string &word : words)
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << "no \"" << word << "\" in: " << error.what();
  }
}

TEST(RunOptions, are_parsed_in_both_forms) {
  Options options =
      parse({"u.mlafix", "--kernel=k", "--bindings", "D=4,T=f32", "--device",
             "cuda:1", "--arg", "a=x=y.npy", "--out=b=z.npy", "--shape",
             "b=2x3", "--shape=c=scalar", "--list"});
  EXPECT_EQ(options.file, "u.mlafix");
  EXPECT_EQ(options.kernel, "k");
  EXPECT_EQ(options.bindings, "D=4,T=f32");
  EXPECT_EQ(options.device.type, MLAFIX_CUDA);
  EXPECT_EQ(options.device.ordinal, 1);
  EXPECT_EQ(options.args["a"], "x=y.npy");
  EXPECT_EQ(options.outs["b"], "z.npy");
  EXPECT_EQ(options.shapes["b"], (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(options.shapes.at("c").empty());
  EXPECT_TRUE(options.list);
}

TEST(RunOptions, mistakes_are_named) {
  expectFailure({"a unit"}, [] { parse({}); });
  expectFailure({"one unit", "\"b\""}, [] { parse({"a", "b"}); });
  expectFailure({"--help", "\"--frob\""}, [] { parse({"a", "--frob", "1"}); });
  expectFailure({"--kernel", "a value"}, [] { parse({"a", "--kernel"}); });
  expectFailure({"NAME=VALUE", "\"x\""}, [] { parse({"a", "--arg", "x"}); });
  expectFailure({"once", "\"x\""}, [] {
    parse({"a", "--arg", "x=1", "--arg", "x=2"});
  });
  expectFailure({"cuda:N", "\"gpu\""}, [] { parse({"a", "--device", "gpu"}); });
  expectFailure({"cuda:N"}, [] { parse({"a", "--device", "cuda:-1"}); });
  expectFailure({"2x3x4", "\"2x\""}, [] { parse({"a", "--shape", "s=2x"}); });
}

class Run : public testing::Test {
protected:
  std::string folder;
  Unit unit = load(addBiasUnit());
  Options options;
  AddBiasCall call{6};

  void SetUp() override {
    std::string name = testing::TempDir() + "mlafix-XXXXXX";
    ASSERT_NE(mkdtemp(&name[0]), nullptr);
    folder = name + "/";
    Array in;
    in.dtype = MLAFIX_F32;
    in.sizes = {6, 4};
    auto *bytes = reinterpret_cast<const char *>(call.in());
    in.bytes.assign(bytes, bytes + 6 * 4 * 4);
    writeNpy(folder + "in.npy", in);
    options.args = {{"in", folder + "in.npy"}, {"bias", "0.5"}, {"limit", "6"}};
    options.outs = {{"out", folder + "out.npy"}};
  }
  void TearDown() override {
    std::remove((folder + "in.npy").c_str());
    std::remove((folder + "out.npy").c_str());
    rmdir(folder.c_str());
  }
  std::vector<float> output() {
    Array out = readNpy(folder + "out.npy", MLAFIX_F32);
    std::vector<float> values(out.numElements());
    memcpy(values.data(), out.bytes.data(), out.bytes.size());
    return values;
  }
};

TEST_F(Run, writes_what_the_kernel_computes) {
  runKernel(unit, options);
  std::vector<float> values = output();
  ASSERT_EQ(values.size(), 24u);
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(values[i], call.inData[i] + 0.5f);
}

TEST_F(Run, copies_what_was_uploaded_back) {
  FakeCuda fake;
  char bytes[3] = {1, 2, 3};
  DeviceMemory memory(cuda(1), bytes, sizeof(bytes));
  EXPECT_EQ(fake.allocations.begin()->second.ordinal, 1);
  static_cast<char *>(memory.data())[1] = 7;
  memory.download();
  EXPECT_EQ(bytes[1], 7);
  expectFailure({"cuda:2", "2 of them"},
                [&] { DeviceMemory none(cuda(2), bytes, sizeof(bytes)); });
}

TEST_F(Run, uploads_and_downloads_on_a_gpu_and_poisons_outputs) {
  FakeCuda fake; // launches do nothing, so the output keeps its poison
  options.device = cuda(0);
  runKernel(unit, options);
  EXPECT_EQ(fake.launches.size(), 1u);
  EXPECT_TRUE(fake.allocations.empty()) << "memory is given back";
  Array out = readNpy(folder + "out.npy", MLAFIX_F32);
  EXPECT_EQ(out.bytes, std::vector<char>(96, '\xff'));
  EXPECT_EQ(targetOf(cuda(0)), "sm_90");
  EXPECT_EQ(targetOf(cpu()), "cpu");
}

TEST_F(Run, debugging_names_elements_that_no_row_writes) {
  options.debug = true;
  EXPECT_TRUE(runKernel(unit, options));
  UnitWriter writer = addBiasUnit();
  writer.kernel()["code"][0]["variants"][0]["geometry"]["extents"] = {
      {{"value", 4}}};
  Unit tooShort = load(writer);
  testing::internal::CaptureStdout();
  EXPECT_FALSE(runKernel(tooShort, options));
  EXPECT_NE(testing::internal::GetCapturedStdout().find(
                "out[4, 0]: no row writes it (8 elements in all)\n"),
            std::string::npos);
  std::vector<float> values = output(); // the output file of the first run
  EXPECT_EQ(values[15], call.inData[15] + 0.5f);
  FakeCuda fake; // launches do nothing
  options.device = cuda(0);
  EXPECT_FALSE(runKernel(unit, options));
  // With --arg, the user gives the initial contents of `out`, so rows need not
  // write its elements.
  options.args["out"] = folder + "in.npy";
  EXPECT_TRUE(runKernel(unit, options));
}

TEST_F(Run, mistakes_are_named) {
  auto run = [&] { runKernel(unit, options); };
  Options right = options;
  options.args["inn"] = "3";
  expectFailure({"--arg", "out, in, scale", "\"inn\""}, run);
  options = right;
  options.outs["in"] = "x";
  expectFailure({"--out", "writes", "\"in\""}, run);
  options = right;
  options.args.erase("in");
  expectFailure({"\"in\"", "--arg in=FILE.npy"}, run);
  options = right;
  options.args.erase("bias");
  expectFailure({"\"bias\"", "--arg bias=VALUE"}, run);
  options.args["bias"] = "half";
  expectFailure({"\"bias\"", "a number", "\"half\""}, run);
  options = right;
  options.args["limit"] = "99999999999999999999";
  expectFailure({"\"limit\"", "index"}, run);
  options.args["limit"] = "7";
  expectFailure({"\"limit\"", "from 0 to 6"}, run);
  options = right;
  options.shapes["out"] = {6};
  expectFailure({"\"out\"", "2 sizes"}, run);
  options.shapes["out"] = {5, 4};
  expectFailure({"expected size 5", "\"in\""}, run);
  options = right;
  options.args["in"] = "/no/such.npy";
  expectFailure({"/no/such.npy", "cannot open"}, run);
  options = right;
  options.kernel = "merge";
  expectFailure({"\"merge\"", "add_bias"}, run);
  options = right;
  options.device = cuda(0);
  if (cudaDeviceCount() == 0)
    expectFailure({"driver"}, run);
}

TEST_F(Run, lists_signatures) {
  testing::internal::CaptureStdout();
  listKernels(unit);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "add_bias [D=4,T=f32]  for " + std::string(machineCodeTarget) +
                ", sm_90, sm_80\n"
                "  out: write f32[n, D=4], strides [?, 1]\n"
                "  in: read f32[n, D=4], strides [?, 1]\n"
                "  scale: read f32[n], strides [?], optional\n"
                "  bias: f32\n"
                "  limit: index, from 0 to n\n"
                "  out may be in\n");
}

} // namespace
