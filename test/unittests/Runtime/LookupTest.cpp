//===- LookupTest.cpp - Finding and describing kernels --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "TestUnit.h"

using namespace mlafix;
using namespace mlafix::test;

namespace {

UnitWriter threeSpecialisations() {
  UnitWriter writer = cpuOnlyUnit();
  for (const json &bindings :
       {json{{"D", 4}, {"T", "bf16"}}, json{{"D", 8}, {"T", "f32"}}}) {
    json kernel = writer.kernel();
    kernel["bindings"] = bindings;
    writer.manifest["kernels"].push_back(kernel);
  }
  return writer;
}

TEST(Lookup, bindings_choose_among_specialisations) {
  Unit unit = load(threeSpecialisations());
  EXPECT_STREQ(unit.kernel("add_bias", "D=4,T=f32").bindings(), "D=4,T=f32");
  EXPECT_STREQ(unit.kernel("add_bias", " T = f32 , D = 4 ").bindings(),
               "D=4,T=f32");
  EXPECT_STREQ(unit.kernel("add_bias", "T=bf16").bindings(), "D=4,T=bf16");
  EXPECT_STREQ(unit.kernel("add_bias", "D=8").bindings(), "D=8,T=f32");
}

TEST(Lookup, omitted_names_mean_their_defaults) {
  UnitWriter writer = cpuOnlyUnit();
  writer.kernel()["bindings"] = {{"D", 4}, {"B", "2"}};
  writer.kernel()["defaults"] = {{"B", "e"}};
  for (const json &bindings :
       {json{{"D", 4}, {"B", "e"}}, json{{"D", 4}, {"B", "e"}, {"k", 8}}}) {
    json kernel = writer.kernel();
    kernel["bindings"] = bindings;
    writer.manifest["kernels"].push_back(kernel);
  }
  Unit unit = load(writer);
  EXPECT_STREQ(unit.kernel("add_bias", "D=4").bindings(), "B=e,D=4");
  EXPECT_STREQ(unit.kernel("add_bias", "D=4,B=2").bindings(), "B=2,D=4");
  EXPECT_STREQ(unit.kernel("add_bias", "k=8").bindings(), "B=e,D=4,k=8");
}

TEST(Lookup, the_default_of_a_base_may_be_another) {
  UnitWriter writer = cpuOnlyUnit();
  writer.kernel()["bindings"] = {{"D", 4}, {"B", "2"}, {"P", "2"}};
  writer.kernel()["defaults"] = {{"B", "e"}, {"P", "B"}};
  for (const json &bindings : {json{{"D", 4}, {"B", "e"}, {"P", "e"}},
                               json{{"D", 4}, {"B", "e"}, {"P", "2"}}}) {
    json kernel = writer.kernel();
    kernel["bindings"] = bindings;
    writer.manifest["kernels"].push_back(kernel);
  }
  Unit unit = load(writer);
  EXPECT_STREQ(unit.kernel("add_bias", "D=4").bindings(), "B=e,D=4,P=e");
  EXPECT_STREQ(unit.kernel("add_bias", "D=4,B=2").bindings(), "B=2,D=4,P=2");
  EXPECT_STREQ(unit.kernel("add_bias", "D=4,P=2,B=e").bindings(),
               "B=e,D=4,P=2");
}

/// Returns a unit with three specialisations of add_bias. The optional argument
/// `S` is open in the first, absent in the second and present in the third.
UnitWriter threePresences() {
  UnitWriter writer = cpuOnlyUnit();
  writer.kernel()["args"][2]["name"] = "S";
  writer.kernel()["bindings"] = {{"D", 4}};
  json absent = writer.kernel(), present = writer.kernel();
  absent["bindings"]["S"] = "absent";
  absent["args"][2]["access"] = "absent";
  present["bindings"]["S"] = "present";
  present["args"][2]["optional"] = false;
  writer.manifest["kernels"].push_back(absent);
  writer.manifest["kernels"].push_back(present);
  return writer;
}

TEST(Lookup, omitted_optional_arguments_are_open) {
  Unit unit = load(threePresences());
  EXPECT_STREQ(unit.kernel("add_bias").bindings(), "D=4");
  EXPECT_STREQ(unit.kernel("add_bias", "D=4").bindings(), "D=4");
  Kernel absent = unit.kernel("add_bias", "D=4,S=absent");
  EXPECT_STREQ(absent.bindings(), "D=4,S=absent");
  EXPECT_EQ(absent.arg(2).access, MLAFIX_ABSENT);
  EXPECT_EQ(absent.arg(2).optional, 1);
  Kernel present = unit.kernel("add_bias", "S=present");
  EXPECT_STREQ(present.bindings(), "D=4,S=present");
  EXPECT_EQ(present.arg(2).access, MLAFIX_READ);
  EXPECT_EQ(present.arg(2).optional, 0);
}

TEST(Lookup, a_presence_that_no_kernel_has_is_not_found) {
  UnitWriter writer = cpuOnlyUnit();
  Unit unit = load(writer);
  expectError(MLAFIX_NOT_FOUND, {"\"scale=absent\""},
              [&] { unit.kernel("add_bias", "scale=absent"); });
}

TEST(Lookup, errors_list_what_there_is) {
  Unit unit = load(threeSpecialisations());
  expectError(MLAFIX_NOT_FOUND, {"\"merge\"", "add_bias[D=4,T=bf16]"},
              [&] { unit.kernel("merge"); });
  expectError(MLAFIX_INVALID_ARGUMENT,
              {"choose one", "add_bias[D=4,T=f32]", "add_bias[D=4,T=bf16]"},
              [&] { unit.kernel("add_bias", "D=4"); });
  expectError(MLAFIX_NOT_FOUND, {"\"D=5\"", "add_bias[D=8,T=f32]"},
              [&] { unit.kernel("add_bias", "D=5"); });
}

TEST(Lookup, malformed_bindings_are_errors) {
  Unit unit = load(threeSpecialisations());
  for (const char *bindings : {"D", "D=", "=4", "D=4,", ",", "D=4,,T=f32"})
    expectError(MLAFIX_INVALID_ARGUMENT, {"NAME=VALUE", bindings},
                [&] { unit.kernel("add_bias", bindings); });
}

TEST(Lookup, null_pointers_are_errors) {
  Unit unit = load(cpuOnlyUnit());
  const mlafix_kernel *kernel = nullptr;
  EXPECT_EQ(mlafix_unit_find_kernel(nullptr, "a", nullptr, &kernel),
            MLAFIX_INVALID_ARGUMENT);
  EXPECT_EQ(mlafix_unit_find_kernel(unit.get(), nullptr, nullptr, &kernel),
            MLAFIX_INVALID_ARGUMENT);
  EXPECT_EQ(mlafix_unit_find_kernel(unit.get(), "a", nullptr, nullptr),
            MLAFIX_INVALID_ARGUMENT);
  EXPECT_EQ(mlafix_unit_kernel_at(unit.get(), 1), nullptr);
  EXPECT_EQ(mlafix_unit_num_kernels(nullptr), 0u);
}

TEST(Introspection, describes_arguments) {
  Kernel kernel = load(addBiasUnit()).kernel("add_bias");
  ASSERT_EQ(kernel.numArgs(), 5u);
  mlafix_arg_info out = kernel.arg(0);
  EXPECT_STREQ(out.name, "out");
  EXPECT_EQ(out.kind, MLAFIX_ARG_TENSOR);
  EXPECT_EQ(out.dtype, MLAFIX_F32);
  EXPECT_STREQ(out.dtype_name, "f32");
  EXPECT_EQ(out.access, MLAFIX_WRITE);
  ASSERT_EQ(out.ndim, 2u);
  EXPECT_STREQ(out.dims[0], "n");
  EXPECT_EQ(out.shape[0], -1);
  EXPECT_EQ(out.shape[1], 4);
  EXPECT_EQ(out.strides[1], 1);
  EXPECT_EQ(out.optional, 0);
  EXPECT_EQ(kernel.arg(2).optional, 1);
  EXPECT_EQ(kernel.arg(3).kind, MLAFIX_ARG_F32);
  EXPECT_EQ(kernel.arg(3).at_most, nullptr);
  EXPECT_EQ(kernel.arg(4).kind, MLAFIX_ARG_I64);
  EXPECT_STREQ(kernel.arg(4).dtype_name, "index");
  EXPECT_STREQ(kernel.arg(4).at_most, "n");
  expectError(MLAFIX_INVALID_ARGUMENT,
              {"less than 5, the number of arguments", "got 5"},
              [&] { kernel.arg(5); });
}

TEST(Introspection, describes_aliases_and_targets) {
  Kernel kernel = load(addBiasUnit()).kernel("add_bias");
  ASSERT_EQ(mlafix_kernel_num_aliases(kernel.get()), 1u);
  uint32_t a = 9, b = 9;
  ASSERT_EQ(mlafix_kernel_alias(kernel.get(), 0, &a, &b), MLAFIX_OK);
  EXPECT_EQ(a, 0u);
  EXPECT_EQ(b, 1u);
  ASSERT_EQ(mlafix_kernel_num_targets(kernel.get()), 3u);
  EXPECT_STREQ(mlafix_kernel_target(kernel.get(), 1), "sm_90");
  EXPECT_EQ(mlafix_kernel_target(kernel.get(), 3), nullptr);
}

TEST(Introspection, describes_proofs) {
  UnitWriter writer = addBiasUnit();
  EXPECT_TRUE(load(writer).kernel("add_bias").proofs().empty());
  writer.kernel()["proofs"] = {
      {{"arg", 0}, {"question", "coverage"}, {"verdict", "proved"}},
      {{"arg", 1},
       {"question", "bounds"},
       {"verdict", "refuted"},
       {"reason", "n = 1"},
       {"element", "x[1]"}}};
  Unit unit = load(writer);
  Kernel kernel = unit.kernel("add_bias");
  std::vector<mlafix_proof_info> proofs = kernel.proofs();
  ASSERT_EQ(proofs.size(), 2u);
  EXPECT_EQ(proofs[0].arg, 0u);
  EXPECT_STREQ(proofs[0].question, "coverage");
  EXPECT_STREQ(proofs[0].verdict, "proved");
  EXPECT_STREQ(proofs[0].reason, "");
  EXPECT_STREQ(proofs[0].element, "");
  EXPECT_EQ(proofs[1].arg, 1u);
  EXPECT_STREQ(proofs[1].verdict, "refuted");
  EXPECT_STREQ(proofs[1].reason, "n = 1");
  EXPECT_STREQ(proofs[1].element, "x[1]");
  mlafix_proof_info info = MLAFIX_PROOF_INFO_INIT;
  EXPECT_EQ(mlafix_kernel_proof(kernel.get(), 2, &info),
            MLAFIX_INVALID_ARGUMENT);
  EXPECT_EQ(mlafix_kernel_proof(kernel.get(), 0, nullptr),
            MLAFIX_INVALID_ARGUMENT);
  EXPECT_EQ(mlafix_kernel_num_proofs(nullptr), 0u);
}

TEST(Introspection, writes_no_more_than_the_caller_has) {
  Kernel kernel = load(addBiasUnit()).kernel("add_bias");
  mlafix_arg_info info = MLAFIX_ARG_INFO_INIT;
  info.struct_size = offsetof(mlafix_arg_info, dtype_name);
  ASSERT_EQ(mlafix_kernel_arg_info(kernel.get(), 0, &info), MLAFIX_OK);
  EXPECT_STREQ(info.name, "out");
  EXPECT_EQ(info.dtype_name, nullptr);
  EXPECT_EQ(info.struct_size, offsetof(mlafix_arg_info, dtype_name));
}

TEST(Introspection, versions_and_names) {
  EXPECT_EQ(mlafix_abi_version(), MLAFIX_ABI_VERSION);
  EXPECT_GT(std::string(mlafix_version()).size(), 0u);
  EXPECT_STREQ(mlafix_status_name(MLAFIX_BAD_UNIT), "BAD_UNIT");
  EXPECT_STREQ(mlafix_dtype_name(MLAFIX_F8E4M3FN), "f8e4m3fn");
  EXPECT_EQ(mlafix_dtype_size(MLAFIX_I64), 8u);
  EXPECT_EQ(mlafix_dtype_size(MLAFIX_F4E2M1), 1u); // one byte for two elements
  EXPECT_EQ(mlafix_dtype_size(static_cast<mlafix_dtype>(99)), 0u);
}

} // namespace
