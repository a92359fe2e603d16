//===- AssemblerTest.cpp - finding and using assemblers -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/Assembler.h"

#include "lib/Target/Cubin.h"
#include "gtest/gtest.h"
#include <csignal>
#include <thread>

using namespace mlafix;
using namespace mlafix::target;

static constexpr const char *kernel =
    ".version 7.8\n.target sm_90\n.address_size 64\n"
    ".visible .entry k() { ret; }\n";

static const TargetSpec &architecture(const char *name) {
  return **lookupTarget(name);
}

class EveryAssembler : public testing::TestWithParam<AssemblerKind> {
protected:
  void SetUp() override {
    auto found = findAssemblers(GetParam(), "");
    ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError());
    if (found->empty())
      GTEST_SKIP() << "not on this machine";
    assembler = found->front();
  }
  Assembler *assembler = nullptr;
};

TEST_P(EveryAssembler, makes_an_elf_image_the_same_one_each_time) {
  auto first = assembler->assemble(kernel, architecture("sm_90"));
  auto second = assembler->assemble(kernel, architecture("sm_90"));
  ASSERT_TRUE(bool(first)) << llvm::toString(first.takeError());
  ASSERT_TRUE(bool(second)) << llvm::toString(second.takeError());
  EXPECT_EQ(first->substr(0, 4), "\177ELF");
  EXPECT_EQ(first->size(), second->size());
}

TEST_P(EveryAssembler, may_begin_before_there_is_ptx_and_be_given_up) {
  auto whole = assembler->assemble(kernel, architecture("sm_90"));
  ASSERT_TRUE(bool(whole)) << llvm::toString(whole.takeError());
  auto begun = assembler->begin(architecture("sm_90"), {});
  auto never = assembler->begin(architecture("sm_90"), {});
  never.reset();
  auto late = begun->finish(kernel);
  ASSERT_TRUE(bool(late)) << llvm::toString(late.takeError());
  EXPECT_EQ(*late, *whole);
}

TEST_P(EveryAssembler, makes_the_same_code_of_what_is_known_to_be_single) {
  auto resources = [&](bool isSingle) {
    auto cubin =
        assembler->begin(architecture("sm_90"), {isSingle})->finish(kernel);
    EXPECT_TRUE(bool(cubin)) << llvm::toString(cubin.takeError());
    return llvm::cantFail(readResources(*cubin)).lookup("k");
  };
  KernelResources single = resources(true), any = resources(false);
  EXPECT_GT(single.registers, 0u);
  EXPECT_EQ(single.registers, any.registers);
}

TEST_P(EveryAssembler, works_in_a_host_that_reaps_every_child) {
  auto previous = std::signal(SIGCHLD, SIG_IGN);
  auto good = assembler->assemble(kernel, architecture("sm_90"));
  auto bad = assembler->assemble(
      ".version 7.8\n.target sm_90\n.visible .entry k() { add; }\n",
      architecture("sm_90"));
  std::signal(SIGCHLD, previous);
  ASSERT_TRUE(bool(good)) << llvm::toString(good.takeError());
  EXPECT_EQ(good->substr(0, 4), "\177ELF");
  ASSERT_FALSE(bool(bad));
  EXPECT_NE(llvm::toString(bad.takeError()).find("cannot assemble"),
            std::string::npos);
}

TEST_P(EveryAssembler, gives_its_own_words_on_bad_ptx) {
  auto cubin = assembler->assemble(
      ".version 7.8\n.target sm_90\n.visible .entry k() { add; }\n",
      architecture("sm_90"));
  ASSERT_FALSE(bool(cubin));
  llvm::Error error = cubin.takeError();
  EXPECT_FALSE(error.isA<UnsupportedByAssembler>());
  std::string message = llvm::toString(std::move(error));
  EXPECT_NE(message.find(assembler->name().str() + " cannot assemble"),
            std::string::npos)
      << message;
}

TEST(Assembler, advises_on_too_many_conditions) {
  EXPECT_TRUE(adviseOnLog("fatal   : (C7600) Register allocation failed with "
                          "register count of '7'. Compile the program with a "
                          "higher register target")
                  .contains("make two kernels of this one"));
  EXPECT_EQ(adviseOnLog("fatal   : uses too much shared data"), "");
}

TEST_P(EveryAssembler, says_when_the_ptx_is_too_new_for_it) {
  auto cubin = assembler->assemble(
      ".version 19.7\n.target sm_90\n.visible .entry k() { ret; }\n",
      architecture("sm_90"));
  ASSERT_FALSE(bool(cubin));
  llvm::Error error = cubin.takeError();
  EXPECT_TRUE(error.isA<UnsupportedByAssembler>());
  llvm::consumeError(std::move(error));
}

TEST_P(EveryAssembler, serves_several_threads) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      auto cubin = assembler->assemble(kernel, architecture("sm_90"));
      if (cubin)
        ++good;
      else
        llvm::consumeError(cubin.takeError());
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(good, 4);
}

INSTANTIATE_TEST_SUITE_P(Assemblers, EveryAssembler,
                         testing::Values(AssemblerKind::NvJitLink,
                                         AssemblerKind::Ptxas),
                         [](const auto &info) {
                           return info.param == AssemblerKind::Ptxas
                                      ? "ptxas"
                                      : "nvjitlink";
                         });

TEST(Assembler, a_library_that_is_another_is_refused) {
  auto assembler = openNvJitLink("libc.so.6");
  ASSERT_FALSE(bool(assembler));
  EXPECT_EQ(llvm::toString(assembler.takeError()),
            "'libc.so.6' is not an nvJitLink library");
}
