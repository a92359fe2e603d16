//===- MachineModelTest.cpp - Properties of targets -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Machine/MachineModel.h"
#include "gtest/gtest.h"

using namespace mlafix;

namespace {

MachineModel get(llvm::StringRef target,
                 llvm::ArrayRef<std::string> overrides = {}) {
  llvm::Expected<MachineModel> model = MachineModel::get(target, overrides);
  EXPECT_TRUE(bool(model)) << target.str();
  return model ? *model : MachineModel();
}

std::string fail(llvm::StringRef target,
                 llvm::ArrayRef<std::string> overrides = {}) {
  llvm::Expected<MachineModel> model = MachineModel::get(target, overrides);
  return model ? "no error" : llvm::toString(model.takeError());
}

// Source: CUDA programming guide, technical specifications per compute
// capability.
TEST(MachineModel, gpus_have_what_is_published) {
  EXPECT_EQ(get("sm_75").threadsPerMultiprocessor, 1024);
  for (const char *target : {"sm_80", "sm_90", "sm_100", "sm_103"})
    EXPECT_EQ(get(target).threadsPerMultiprocessor, 2048) << target;
  for (const char *target :
       {"sm_86", "sm_87", "sm_88", "sm_89", "sm_110", "sm_120", "sm_121"})
    EXPECT_EQ(get(target).threadsPerMultiprocessor, 1536) << target;
}

TEST(MachineModel, l2_is_what_is_published) {
  EXPECT_EQ(get("sm_80").l2Bytes, 40 << 20);
  EXPECT_EQ(get("sm_86").l2Bytes, 6 << 20);
  EXPECT_EQ(get("sm_90").l2Bytes, 50 << 20);
  EXPECT_EQ(get("sm_100").l2Bytes, 126 << 20);
}

TEST(MachineModel, capabilities_begin_where_ptx_has_them) {
  EXPECT_EQ(get("sm_88").fp8Conversion, 0);
  EXPECT_EQ(get("sm_89").fp8Conversion, 1);
  EXPECT_EQ(get("sm_89").dependentLaunch, 0);
  EXPECT_EQ(get("sm_90").dependentLaunch, 1);
  EXPECT_EQ(get("sm_90").accessBytes, 16);
  EXPECT_EQ(get("sm_100").accessBytes, 32);
  EXPECT_EQ(get("sm_90").minimumOfThree, 0);
  EXPECT_EQ(get("sm_100").minimumOfThree, 1);
  EXPECT_EQ(get("sm_121").fp8Conversion, 1);
}

TEST(MachineModel, cpus_differ_in_their_registers) {
  EXPECT_EQ(get("x86-64").registerBytes, 16);
  EXPECT_EQ(get("x86-64-v3").registerBytes, 32);
  EXPECT_EQ(get("x86-64-v4").registerBytes, 64);
  EXPECT_EQ(get("x86-64").fusedMath, 0);
  EXPECT_EQ(get("x86-64-v3").fusedMath, 1);
  EXPECT_EQ(get("x86-64-v4").fusedMath, 1);
  EXPECT_EQ(get("x86-64-v3").packFloats, 16);
  EXPECT_EQ(get("x86-64-v4").packFloats, 32);
  EXPECT_EQ(get("x86-64-v4").dependentLaunch, 0);
  EXPECT_EQ(get("aarch64").registerBytes, 16);
  EXPECT_EQ(get("aarch64").fusedMath, 1);
  EXPECT_EQ(get("aarch64").streamedBytes, 0);
}

TEST(MachineModel, every_target_has_a_model) {
#define MLAFIX_GPU_TARGET(CAPABILITY)                                          \
  EXPECT_GE(get("sm_" #CAPABILITY).threadsPerMultiprocessor, 1024);
#define MLAFIX_CPU_TARGET(NAME, ARCHITECTURE, LEVEL)                           \
  EXPECT_GE(get(NAME).registerBytes, 16);
#include "mlafix/Targets.def"
}

TEST(MachineModel, overrides_win_and_the_last_one_most) {
  MachineModel model =
      get("sm_100", {"accessBytes=8", "blockBytes=1", "accessBytes=4"});
  EXPECT_EQ(model.accessBytes, 4);
  EXPECT_EQ(model.blockBytes, 1);
  EXPECT_EQ(model.minBlockThreads, get("sm_100").minBlockThreads);
}

TEST(MachineModel, mistakes_are_named) {
  EXPECT_NE(fail("sm_91").find("expected a target out of sm_75, "),
            std::string::npos);
  EXPECT_NE(fail("", {"blockBytes"}).find("got ''"), std::string::npos);
  EXPECT_NE(fail("", {"blockBytes=x"}).find("got 'x'"), std::string::npos);
  EXPECT_NE(fail("", {"block=1"}).find("got 'block'"), std::string::npos);
}

} // namespace
