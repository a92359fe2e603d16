//===- BuilderErrorTest.cpp - Errors of the kernel builder ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "mlafix/KernelBuilder.h"
#include "gtest/gtest.h"

using namespace mlafix;
using Value = KernelBuilder::Value;
using Values = KernelBuilder::Values;

namespace {

SourceLocation at(unsigned line) { return {"kernel.py", line, 5, line, 12}; }

/// A kernel under construction, inside its grid, with the arguments x [n, D] of
/// f32 and c [n] of i32.
struct BuilderErrors : testing::Test {
  KernelBuilder b{"wrong", at(1)};
  Value x, c, t;

  BuilderErrors() {
    x = b.addTensor({"x", {"n", "D"}, "f32", "", "update", false, {}}, at(1));
    c = b.addTensor({"c", {"n"}, "i32", "", "read", false, {}}, at(1));
    t = b.beginForall({b.dim(x, 0, at(2))}, at(2)).at(0);
  }

  Value row() { return b.load({x, {t}}, at(3)); }
  Value count() { return b.load({c, {t}}, at(3)); }

  /// Expects exactly one error, with this message and this line.
  void expectError(const std::string &message, unsigned line = 4) {
    ASSERT_EQ(b.diagnostics().size(), 1u);
    EXPECT_EQ(b.diagnostics()[0].message, message);
    EXPECT_EQ(b.diagnostics()[0].location.file, "kernel.py");
    EXPECT_EQ(b.diagnostics()[0].location.line, line);
    EXPECT_EQ(b.diagnostics()[0].location.column, 5u);
    EXPECT_EQ(b.diagnostics()[0].location.endColumn, 12u);
  }
};

} // namespace

TEST_F(BuilderErrors, an_operation_that_the_type_has_not) {
  EXPECT_FALSE(b.unary("exp", count(), at(4)));
  expectError("expected f32 for 'exp', got i32");
}

TEST_F(BuilderErrors, an_unknown_operation) {
  EXPECT_FALSE(b.compare("like", count(), count(), at(4)));
  expectError("expected eq, ne, lt, le, gt or ge, got 'like'");
}

TEST_F(BuilderErrors, rows_that_an_operation_does_not_take) {
  EXPECT_FALSE(b.reduce("argadd", row(), "", at(4)));
  EXPECT_FALSE(b.scan("argmax", row(), "", at(4)));
  EXPECT_FALSE(b.scan("max", row(), "D", at(4)));
  EXPECT_FALSE(b.iota("", at(4)));
  EXPECT_FALSE(b.swap(count(), 1, at(4)));
  EXPECT_FALSE(b.loadInto({x, {t}}, "", 0, 1, at(4), ""));
  EXPECT_TRUE(b.topK(row(), 0, "", at(4)).empty());
  EXPECT_TRUE(b.topK(row(), 1, "K", at(4)).empty());
  EXPECT_FALSE(b.reduce("max", row(), "G", at(4)));
  EXPECT_FALSE(b.payload(row(), at(4)));
  EXPECT_FALSE(b.lseOf(row(), at(4)));
  EXPECT_EQ(b.diagnostics().size(), 11u);
}

TEST_F(BuilderErrors, an_index_of_another_type) {
  EXPECT_FALSE(b.load({x, {count()}}, at(4)));
  expectError("expected indices of type index, got i32");
}

TEST_F(BuilderErrors, too_few_indices) {
  EXPECT_FALSE(b.load({x, {}}, at(4)));
  expectError(
      "'mlafix.load' op expected 2 indices for an element of 'x', got 0");
}

TEST_F(BuilderErrors, a_part_of_a_row_that_has_none) {
  EXPECT_FALSE(b.load({x, {t}, {}, {t, {}}}, at(4)));
  expectError("expected a tensor whose last dim is a product, as \"(G K)\", to "
              "take a group or a member of a row, got rows along D");
}

TEST_F(BuilderErrors, states_of_two_bases) {
  Value a = b.identity("D", "e", at(3)), z = b.identity("D", "2", at(3));
  EXPECT_FALSE(b.merge({a, z}, at(4)));
  expectError("expected states of one dim and base (N8), got a state along D "
              "in base e and a state along D in base 2");
}

TEST_F(BuilderErrors, a_value_of_a_branch_that_ended) {
  Value positive = b.compare("gt", count(),
                             b.constant(std::int64_t(0), "i32", at(3)), at(3));
  ASSERT_TRUE(b.beginIf(positive, at(3)));
  Value inner = row();
  Values results;
  ASSERT_TRUE(b.endIf({}, results, at(3)));
  EXPECT_FALSE(b.unary("neg", inner, at(4)));
  expectError("expected a value of this part of the kernel for the operand, "
              "got one of a loop, branch or grid that ended");
}

TEST_F(BuilderErrors, a_branch_of_two_types) {
  Value value = b.reduce("max", row(), "", at(3));
  Value zero = b.constant(std::int64_t(0), "i32", at(3));
  ASSERT_TRUE(b.beginIf(b.compare("gt", count(), zero, at(3)), at(3)));
  ASSERT_TRUE(b.beginElse({count()}, at(3)));
  Values results;
  EXPECT_FALSE(b.endIf({value}, results, at(4)));
  expectError("expected i32 for the values of a branch, as before, got f32");
}

TEST_F(BuilderErrors, a_loop_that_changes_a_type) {
  Value zero = b.constant(std::int64_t(0), "i32", at(3));
  auto inside = b.beginFor(zero, count(), zero, {row()}, at(3));
  ASSERT_EQ(inside.size(), 2u);
  Values results;
  EXPECT_FALSE(b.endFor({zero}, results, at(4)));
  expectError("expected a row of f32 along D for the values of a loop, as "
              "before, got i32");
}

TEST_F(BuilderErrors, regions_that_cross) {
  Values results;
  EXPECT_FALSE(b.endFor({}, results, at(4)));
  expectError("expected the end of the grid, got that of a loop");
}

TEST_F(BuilderErrors, a_second_grid) {
  ASSERT_TRUE(b.endGrid(at(3)));
  EXPECT_TRUE(b.beginForall({b.dim(x, 0, at(4))}, at(4)).empty());
  expectError("expected one grid in a kernel, got a second");
}

TEST_F(BuilderErrors, an_argument_inside_the_grid) {
  EXPECT_FALSE(b.addScalar({"k", "i32", ""}, at(4)));
  expectError("expected this before the grid, got it inside");
}

TEST_F(BuilderErrors, a_kernel_that_is_finished_inside_its_grid) {
  EXPECT_EQ(b.finish(), "");
  expectError("expected this before the grid, got it inside", 1);
}

TEST_F(BuilderErrors, anything_after_the_end) {
  ASSERT_TRUE(b.endGrid(at(3)));
  ASSERT_NE(b.finish(), "");
  EXPECT_FALSE(b.addScalar({"k", "i32", ""}, at(4)));
  expectError("expected no more calls for a finished kernel, got one");
}

TEST_F(BuilderErrors, an_integer_that_is_no_byte) {
  EXPECT_FALSE(b.constant(std::int64_t(256), "u8", at(4)));
  expectError("expected an integer that is in the range of u8, 0 to 255, got "
              "256");
}

TEST_F(BuilderErrors, a_fill_that_is_no_number) {
  KernelBuilder fresh("k", at(1));
  EXPECT_FALSE(fresh.addTensor(
      {"x", {"n"}, "i32", "", "write", false, {}, "0.5"}, at(4)));
  ASSERT_EQ(fresh.diagnostics().size(), 1u);
  EXPECT_EQ(fresh.diagnostics()[0].message,
            "expected a number or identity as the fill of 'x', got '0.5'");
}

TEST_F(BuilderErrors, a_promise_about_a_number) {
  EXPECT_FALSE(b.assume(count(), "count", at(4)));
  expectError("expected a bool for the assumption, got i32");
}

TEST_F(BuilderErrors, printing_a_tensor) {
  EXPECT_FALSE(b.print("{}", {c}, at(4)));
  expectError(
      "expected scalars, rows and states to print, got a tensor of i32 (n)");
}

TEST_F(BuilderErrors, a_table_inside_the_grid) {
  EXPECT_FALSE(b.distinct(c, at(4)));
  expectError("expected this before the grid, got it inside");
}

TEST_F(BuilderErrors, dtypes_that_are_none) {
  KernelBuilder fresh("k", at(1));
  EXPECT_FALSE(
      fresh.addTensor({"x", {"n"}, "f64", "", "read", false, {}}, at(4)));
  ASSERT_EQ(fresh.diagnostics().size(), 1u);
  EXPECT_EQ(
      fresh.diagnostics()[0].message.find("expected one of bf16, f16, f32"), 0u)
      << fresh.diagnostics()[0].message;
}
