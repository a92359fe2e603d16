//===- CubinTest.cpp - reading a cubin's resources ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/Cubin.h"

#include "lib/Target/Assembler.h"
#include "gtest/gtest.h"

using namespace mlafix::target;

/// Assembles `body` as the kernel `k` and returns the cubin. Returns "" if
/// there is no assembler.
static std::string assemble(const std::string &body) {
  auto assemblers = findAssemblers(mlafix::AssemblerKind::Any, "");
  if (!assemblers || assemblers->empty())
    return "";
  llvm::Expected<const TargetSpec *> target = lookupTarget("sm_90");
  auto cubin = assemblers->front()->assemble(
      ".version 7.8\n.target sm_90\n.address_size 64\n"
      ".visible .entry k(.param .u64 p) {\n" +
          body + "}\n",
      **target);
  EXPECT_TRUE(bool(cubin)) << llvm::toString(cubin.takeError());
  return cubin ? *cubin : "";
}

TEST(Cubin, tells_registers_local_and_shared_memory) {
  std::string cubin = assemble(R"(
    .reg .b64 %p, %i, %a;
    .reg .b32 %x;
    .local .align 4 .b8 spill[256];
    .shared .align 16 .b8 tile[512];
    ld.param.b64 %p, [p];
    mov.b64 %a, spill;
    ld.global.b64 %i, [%p];
    add.s64 %a, %a, %i;
    st.local.b32 [%a], 7;
    ld.local.b32 %x, [spill+64];
    mov.b64 %a, tile;
    add.s64 %a, %a, %i;
    st.shared.b32 [%a], %x;
    bar.sync 0;
    ld.shared.b32 %x, [tile+32];
    st.global.b32 [%p], %x;
    ret;
)");
  if (cubin.empty())
    GTEST_SKIP() << "no assembler here";
  auto resources = readResources(cubin);
  ASSERT_TRUE(bool(resources)) << llvm::toString(resources.takeError());
  ASSERT_EQ(resources->count("k"), 1u);
  const KernelResources &kernel = (*resources)["k"];
  EXPECT_GT(kernel.registers, 0u);
  EXPECT_LT(kernel.registers, 64u);
  EXPECT_EQ(kernel.localBytes, 256u);
  // The driver reserves 1 KiB of shared memory per block on sm_90. Some
  // assemblers add this to the kernel's size.
  EXPECT_TRUE(kernel.sharedBytes == 512 || kernel.sharedBytes == 1024 + 512)
      << kernel.sharedBytes;
}

TEST(Cubin, cut_off_or_damaged_is_an_error_not_a_crash) {
  std::string cubin = assemble("ret;\n");
  if (cubin.empty())
    GTEST_SKIP() << "no assembler here";
  for (size_t size = 0; size < cubin.size(); size += 7) {
    auto resources = readResources(cubin.substr(0, size));
    // readResources() does not need the last bytes of a cubin, so only prefixes
    // of less than half the size must fail.
    EXPECT_FALSE(resources && size < cubin.size() / 2) << size << " bytes";
    llvm::consumeError(resources.takeError());
  }
  for (size_t i = 0; i < cubin.size(); ++i) {
    std::string damaged = cubin;
    damaged[i] = static_cast<char>(~damaged[i]);
    llvm::consumeError(readResources(damaged).takeError());
  }
}

TEST(Cubin, is_no_arbitrary_text) {
  auto resources = readResources("no cubin");
  ASSERT_FALSE(bool(resources));
  llvm::consumeError(resources.takeError());
}
