//===- ProofsTest.cpp - The interpreter, and limits of proofs -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include "lib/Analysis/LinearSystem.h"
#include "lib/Analysis/Proofs.h"
#include "lib/Analysis/RowInterpreter.h"
#include "gtest/gtest.h"

#include <limits>

using namespace mlir;
using namespace mlafix;

namespace {

SmallLaunch launchOf(int64_t n) {
  SmallLaunch launch;
  launch.sizes[0] = {n};
  return launch;
}

int64_t zero(Value, ArrayRef<int64_t>) { return 0; }

TEST(RowInterpreter, an_access_past_the_end_is_reported_with_its_row) {
  Kernel kernel("", R"(
      %next = arith.addi %t, %c1 : index
      %v = mlafix.load %x[%next] : !vec -> f32
      mlafix.store %v, %x[%t] : f32, !vec
  )");
  auto violations = interpretRows(*kernel, launchOf(2), zero);
  ASSERT_TRUE(violations);
  ASSERT_EQ(violations->size(), 2u);
  const Violation &bounds = violations->front();
  EXPECT_EQ(bounds.question, Question::Bounds);
  EXPECT_EQ(bounds.row, SmallVector<int64_t>{1});
  EXPECT_EQ(bounds.element, SmallVector<int64_t>{2});
  EXPECT_EQ(violations->back().question, Question::Independence);
}

TEST(RowInterpreter, what_a_row_branches_on_is_run) {
  Kernel kernel("", R"(
      %zero = arith.constant 0.0 : f32
      %v = mlafix.load %x[%t] : !vec -> f32
      %p = arith.cmpi slt, %t, %c1 : index
      scf.if %p {
        mlafix.store %v, %x[%c0] : f32, !vec
      } else {
        scf.for %i = %c0 to %n step %c1 {
          mlafix.store %v, %x[%i] : f32, !vec
        }
      }
  )");
  EXPECT_TRUE(interpretRows(*kernel, launchOf(1), zero)->empty());
  EXPECT_FALSE(interpretRows(*kernel, launchOf(2), zero)->empty());
}

TEST(RowInterpreter, a_launch_that_is_too_large_has_no_result) {
  Kernel kernel("", "%v = mlafix.load %x[%t] : !vec -> f32");
  EXPECT_TRUE(interpretRows(*kernel, launchOf(100), zero));
  EXPECT_FALSE(interpretRows(*kernel, launchOf(1 << 30), zero));
}

TEST(RowInterpreter, ops_of_several_runs_have_one_budget) {
  Kernel kernel("", "%v = mlafix.load %x[%t] : !vec -> f32");
  int64_t steps = 300;
  EXPECT_TRUE(interpretRows(*kernel, launchOf(100), zero, {}, &steps));
  EXPECT_GT(steps, 0);
  EXPECT_FALSE(interpretRows(*kernel, launchOf(100), zero, {}, &steps));
  EXPECT_EQ(steps, 0);
}

// The only point has x = -2^63. A search that only widens its bounds step by
// step misses this number.
TEST(LinearSystem, the_lowest_number_is_a_value_of_a_point) {
  Kernel kernel("", "");
  RowModel model(*kernel, /*followsWraps=*/false);
  Work work(Budget::question);
  LinearSystem system(model, work);
  Form x = system.addColumn();
  x.constant = std::numeric_limits<int64_t>::max();
  system.addColumn();
  x.terms.push_back({1, -1});
  system.restrict(x, /*isEquality=*/true); // x + most = y
  Form y;
  y.terms.push_back({1, 1});
  y.constant = 1; // y = -1
  system.restrict(y, /*isEquality=*/true);
  std::optional<LinearSystem::Point> point = system.findPoint();
  ASSERT_TRUE(point);
  EXPECT_EQ(point->front(), std::numeric_limits<int64_t>::min());
}

Verdict verdictOf(KernelOp kernel, Question question) {
  KernelProofs proofs(kernel);
  for (const Answer &answer : proofs.getAnswers())
    if (answer.question == question)
      return answer.verdict;
  return Verdict::Refuted;
}

// The kernel has a chain of maxima and a chain of xors. A complete analysis of
// either chain takes an exponential number of cases or steps.
TEST(Proofs, long_chains_end_as_unknown) {
  std::string sums = "%s0 = arith.addi %t, %c1 : index\n",
              tests = "%p0 = arith.cmpi slt, %t, %n : index\n";
  for (int i = 0; i < 2000; ++i) {
    std::string at = std::to_string(i), next = std::to_string(i + 1);
    sums += "%s" + next + " = arith.maxsi %s" + at + ", %c1 : index\n";
    tests += "%q" + next + " = arith.cmpi ne, %s" + next + ", %t : index\n" +
             "%p" + next + " = arith.xori %p" + at + ", %q" + next + " : i1\n";
  }
  Kernel kernel("", sums + tests + R"(
      %v = mlafix.load %x[%s2000] if %p2000 : !vec -> f32
      mlafix.store %v, %x[%t] : f32, !vec
  )");
  EXPECT_EQ(verdictOf(*kernel, Question::Bounds), Verdict::Unknown);
}

TEST(Proofs, a_sum_that_may_wrap_around_is_no_sum) {
  Kernel kernel(", %s: index", R"(
      %a = arith.addi %t, %s : index
      %b = arith.subi %a, %s : index
      %v = mlafix.load %x[%b] : !vec -> f32
  )");
  EXPECT_EQ(verdictOf(*kernel, Question::Bounds), Verdict::Unknown);
}

} // namespace
