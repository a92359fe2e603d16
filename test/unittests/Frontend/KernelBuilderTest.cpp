//===- KernelBuilderTest.cpp - Builds kernels by C++ calls ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "mlafix/KernelBuilder.h"
#include "mlafix/Compiler.h"
#include "gtest/gtest.h"

using namespace mlafix;
using Value = KernelBuilder::Value;

namespace {

SourceLocation at(unsigned line) { return {"kernel.py", line, 5, line, 12}; }

std::string messages(const KernelBuilder &b) {
  std::string text;
  for (const Diagnostic &diagnostic : b.diagnostics())
    text += diagnostic.message + "\n";
  return text;
}

/// Builds the kernel of kernels/merge_attn_states.mlir, with its threshold of
/// context rows.
std::string buildMerge() {
  KernelBuilder b("merge", at(1));
  auto rows = [&](const char *name, const char *access) {
    return b.addTensor({name, {"n", "H", "D"}, "bf16", "T", access, false, {}},
                       at(2));
  };
  auto lses = [&](const char *name, const char *access, bool optional) {
    return b.addTensor({name, {"H", "n"}, "f32", "", access, optional, {}},
                       at(2));
  };
  Value out = rows("out", "write"), outLse = lses("out_lse", "write", true);
  Value prefix = rows("prefix", "read"),
        prefixLse = lses("prefix_lse", "read", false);
  Value suffix = rows("suffix", "read"),
        suffixLse = lses("suffix_lse", "read", false);
  Value limit = b.addScalar({"context_rows", "index", "n"}, at(2));
  auto grid =
      b.beginForall({b.dim(out, 0, at(3)), b.dim(out, 1, at(3))}, at(3));
  Value t = grid.at(0), h = grid.at(1);
  Value inContext = b.compare("lt", t, limit, at(4));
  Value p = b.loadState({prefix, {t, h}, prefixLse, {h, t}, inContext}, "e",
                        false, at(4));
  Value s = b.loadState({suffix, {t, h}, suffixLse, {h, t}}, "e", false, at(5));
  EXPECT_TRUE(b.storeState(b.merge({p, s}, at(6)),
                           {out, {t, h}, outLse, {h, t}}, {}, at(6)));
  EXPECT_TRUE(b.endGrid(at(3)));
  std::string text = b.finish();
  EXPECT_NE(text, "") << messages(b);
  return text;
}

} // namespace

TEST(KernelBuilder, promises_fills_and_bounds) {
  KernelBuilder b("promises", at(1));
  ASSERT_TRUE(b.proveBounds(at(1)));
  ASSERT_TRUE(b.allow("races", at(1)));
  ASSERT_TRUE(b.allow("nan", at(1)));
  Value y =
      b.addTensor({"y", {"n"}, "f32", "", "write", false, {}, "-inf"}, at(1));
  b.addTensor({"z", {"n"}, "bf16", "T", "write", false, {}, "identity"}, at(1));
  b.addTensor({"i", {"n"}, "i32", "", "write", false, {}, "-3"}, at(1));
  Value table =
      b.addTensor({"table", {"n"}, "i32", "", "read", false, {}}, at(1));
  Value n = b.dim(y, 0, at(2));
  Value two = b.constant(std::int64_t(2), "index", at(2));
  ASSERT_TRUE(b.assume(b.compare("ge", n, two, at(2)), "n >= 2", at(2)));
  ASSERT_TRUE(b.distinct(table, at(2)));
  Value t = b.beginForall({n}, at(2)).at(0);
  Value entry = b.load({table, {t}}, at(3));
  Value zero = b.constant(std::int64_t(0), "i32", at(3));
  ASSERT_TRUE(
      b.assume(b.compare("ge", entry, zero, at(3)), "table[t] >= 0", at(3)));
  ASSERT_TRUE(b.print("{} of {}", {t, n}, at(3)));
  ASSERT_TRUE(b.endGrid(at(2)));
  std::string text = b.finish();
  ASSERT_NE(text, "") << messages(b);
  for (const char *part :
       {"bounds = \"prove\"", "allow = [\"races\", \"nan\"]",
        "mlafix.fill = 0xFF800000 : f32", "mlafix.fill = \"identity\"",
        "mlafix.fill = -3 : i64", "mlafix.distinct %table", "\"n >= 2\"",
        "\"table[t] >= 0\"", "mlafix.print \"{} of {}\""})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(KernelBuilder, gives_each_operation_its_place) {
  std::string text = buildMerge();
  EXPECT_NE(text.find("loc(\"kernel.py\":4:5 to :12)"), std::string::npos)
      << text;
}

TEST(KernelBuilder, a_later_pass_points_at_the_front_ends_source) {
  CompileOptions options;
  options.targets = {"x86-64"};
  options.specializations = {{{"H", "2"}, {"D", "8"}, {"T", "i32"}}};
  CompileResult result = compile(buildMerge(), "kernel", options);
  ASSERT_FALSE(result.ok);
  ASSERT_FALSE(result.messages.empty());
  EXPECT_EQ(result.messages.front().location.file, "kernel.py");
  EXPECT_EQ(result.messages.front().location.line, 1u);
  EXPECT_EQ(result.messages.front().location.endColumn, 12u);
}

TEST(KernelBuilder, says_what_values_are) {
  KernelBuilder b("types", at(1));
  Value x =
      b.addTensor({"x", {"n", "D"}, "bf16", "T", "read", false, {}}, at(1));
  Value mask = b.addTensor({"mask", {"n"}, "u8", "", "read", false, {}}, at(1));
  EXPECT_EQ(b.type(x).str(), "a tensor of bf16 (n, D)");
  Value t = b.beginForall({b.dim(x, 0, at(2))}, at(2)).at(0);
  EXPECT_EQ(b.type(t).str(), "index");
  EXPECT_EQ(b.type(b.load({x, {t}}, at(3))).str(), "a row of f32 along D");
  EXPECT_EQ(b.type(b.load({mask, {t}}, at(3))).str(), "u8");
  EXPECT_EQ(b.type(b.identity("D", "2", at(3))).str(),
            "a state along D in base 2");
}

TEST(KernelBuilder, sizes_defaults_and_bases) {
  KernelBuilder b("scaled", at(1));
  Value out = b.addTensor(
      {"out", {"n", "D"}, "f8e4m3fn", "", "write", false, {}}, at(1));
  Value lse = b.addTensor(
      {"lse", {"n", "two"}, "f32", "", "update", true, {0, 2}}, at(1));
  Value x =
      b.addTensor({"x", {"n", "D"}, "bf16", "T", "read", false, {}}, at(1));
  Value scale =
      b.addTensor({"scale", {"one"}, "f32", "", "read", false, {1}}, at(1));
  EXPECT_TRUE(b.setDefault("B", "2", at(1)));
  EXPECT_TRUE(b.setDefault("D", "64", at(1)));
  EXPECT_TRUE(b.setDefault("T", "f16", at(1)));
  Value t = b.beginForall({b.dim(x, 0, at(2))}, at(2)).at(0);
  Value first = b.constant(std::int64_t(0), "index", at(3));
  Value row = b.load({x, {t}}, at(3));
  Value state =
      b.makeState(row, b.reduce("max", row, "", at(3)), "B", false, at(3));
  EXPECT_TRUE(b.storeState(state, {out, {t}, lse, {t, first}},
                           b.load({scale, {first}}, at(4)), at(4)));
  EXPECT_TRUE(b.endGrid(at(2)));
  std::string text = b.finish();
  ASSERT_NE(text, "") << messages(b);
  for (const char *expected :
       {"defaults = {B = \"2\", D = 64 : i64, T = \"f16\"}",
        "%lse: memref<?x2xf32, strided<[?, ?], offset: ?>>",
        "%scale: memref<1xf32, strided<[1], offset: ?>>", "mlafix.make_state",
        " scale %"})
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\n"
                                                      << text;
  CompileOptions options;
  options.targets = {"x86-64"};
  CompileResult result = compile(text, "kernel", options);
  EXPECT_TRUE(result.ok) << result.diagnostics;
}

TEST(KernelBuilder, a_constant_of_a_branch_takes_the_type_of_the_other) {
  KernelBuilder b("joined", at(1));
  Value y =
      b.addTensor({"y", {"n"}, "f32", "", "update", false, {}, ""}, at(1));
  Value t = b.beginForall({b.dim(y, 0, at(2))}, at(2)).at(0);
  Value x = b.load({y, {t}}, at(3));
  Value three = b.constant(std::int64_t(3), "i32", at(3));
  KernelBuilder::Values results;
  ASSERT_TRUE(
      b.beginIf(b.compare("lt", x, b.constant(0.0, at(3)), at(3)), at(3)));
  ASSERT_TRUE(b.beginElse({three, three, three}, at(3)));
  ASSERT_TRUE(b.endIf({x, t, three}, results, at(3))) << messages(b);
  EXPECT_EQ(b.type(results.at(0)).dtype, "f32");
  EXPECT_EQ(b.type(results.at(1)).dtype, "index");
  EXPECT_EQ(b.type(results.at(2)).dtype, "i32");
  EXPECT_TRUE(b.store(results.at(0), {y, {t}}, at(4)));
  EXPECT_TRUE(b.endGrid(at(2)));
  std::string text = b.finish();
  ASSERT_NE(text, "") << messages(b);
  EXPECT_NE(text.find("3.000000e+00 : f32"), std::string::npos) << text;
}
