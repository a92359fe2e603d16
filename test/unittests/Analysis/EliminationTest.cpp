//===- EliminationTest.cpp - Eliminates variables from systems ------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/IntegerPoints.h"
#include "mlir/Analysis/Presburger/IntegerRelation.h"
#include "gtest/gtest.h"

#include <limits>
#include <random>

using namespace mlafix;
using namespace mlir::presburger;

namespace {

/// Returns true if some integer point satisfies all rows. Expects that the
/// search ends within its budget.
bool hasPoint(llvm::ArrayRef<SparseRow> rows) {
  Work work(100000);
  std::optional<bool> found = mlafix::hasPoint(rows, work);
  EXPECT_TRUE(found);
  return found.value_or(false);
}

SparseRow least(std::initializer_list<std::pair<unsigned, int64_t>> terms,
                int64_t constant) {
  return {terms, constant, /*isEquality=*/false};
}

SparseRow equal(std::initializer_list<std::pair<unsigned, int64_t>> terms,
                int64_t constant) {
  return {terms, constant, /*isEquality=*/true};
}

TEST(Elimination, a_column_without_an_upper_bound_is_dropped) {
  Elimination left({least({{0, 3}}, -7), least({{0, 1}, {1, -5}}, 0)});
  EXPECT_FALSE(left.isEmpty());
  EXPECT_TRUE(left.getRows().empty());
}

TEST(Elimination, equations_are_solved) {
  // The rows x = 2 y + 1 and y = z, so x is odd.
  std::vector<SparseRow> rows = {equal({{0, 1}, {1, -2}}, -1),
                                 equal({{1, 1}, {2, -1}}, 0)};
  EXPECT_TRUE(hasPoint(rows));
  rows.push_back(equal({{0, 1}}, -6));
  EXPECT_TRUE(Elimination(rows).isEmpty());
}

TEST(Elimination, rational_points_are_none) {
  EXPECT_FALSE(hasPoint({least({{0, 3}}, -1), least({{0, -3}}, 2)}));
  EXPECT_FALSE(hasPoint({equal({{0, 4}, {1, 6}}, 3)}));
  // 3 x - 2 y = 1 has no integer point in this box.
  EXPECT_FALSE(hasPoint({equal({{0, 3}, {1, -2}}, -1), least({{0, 1}}, -2),
                         least({{0, -1}}, 2), least({{1, 1}}, 0)}));
}

TEST(Elimination, repeated_columns_add_up) {
  EXPECT_FALSE(hasPoint({least({{0, 1}, {0, -1}}, -1)}));
  EXPECT_TRUE(hasPoint({least({{0, 1}, {0, -1}}, 0)}));
}

TEST(Elimination, numbers_that_do_not_fit_stay) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max(),
                    lowest = std::numeric_limits<int64_t>::min();
  EXPECT_TRUE(hasPoint(
      {equal({{0, 1}, {1, -most}}, 0), equal({{2, 1}, {0, -most}}, 0)}));
  EXPECT_TRUE(hasPoint({equal({{0, -1}}, lowest), least({{0, -1}}, 0)}));
  EXPECT_FALSE(hasPoint({equal({{0, -1}}, lowest), least({{0, 1}}, 0)}));
  EXPECT_TRUE(hasPoint({least({{0, most}, {0, most}}, -1)}));
}

TEST(Elimination, constants_of_a_simplex_have_64_bits) {
  EXPECT_FALSE(hasPoint({equal({{0, 2}, {1, 3}}, -(int64_t(1) << 32)),
                         least({{0, 1}}, 0), least({{0, -1}}, 10),
                         least({{1, 1}}, 0), least({{1, -1}}, 10)}));
}

/// A system of random rows. Some pairs of rows bound a linear form from both
/// sides, like 0 <= remainder < divisor.
class RandomSystem {
public:
  /// Coefficients are at most `most` in magnitude.
  explicit RandomSystem(unsigned seed, int64_t most = 5) : random(seed) {
    columns = draw(1, 4);
    for (unsigned count = draw(1, 5); count > 0; --count) {
      SparseRow row;
      row.isEquality = draw(0, 4) == 0;
      row.constant = draw(-7, 8);
      for (unsigned term = draw(0, 3); term > 0; --term)
        row.terms.push_back({unsigned(draw(0, columns - 1)),
                             draw(0, 1) ? draw(-1, 1) : draw(-most, most)});
      rows.push_back(row);
      if (row.isEquality || draw(0, 1))
        continue;
      row.constant = draw(0, 4) - row.constant;
      for (auto &[column, coefficient] : row.terms)
        coefficient = -coefficient;
      rows.push_back(row);
    }
  }

  IntegerPolyhedron getPolyhedron() const {
    IntegerPolyhedron set(PresburgerSpace::getSetSpace(columns));
    for (const SparseRow &row : rows) {
      llvm::SmallVector<int64_t> dense(columns + 1, 0);
      dense.back() = row.constant;
      for (auto [column, coefficient] : row.terms)
        dense[column] += coefficient;
      if (row.isEquality)
        set.addEquality(dense);
      else
        set.addInequality(dense);
    }
    return set;
  }

  std::vector<SparseRow> rows;

private:
  int64_t draw(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }

  std::mt19937 random;
  unsigned columns;
};

TEST(Elimination, answers_are_those_of_presburger) {
  unsigned empty = 0, solved = 0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    RandomSystem system(seed);
    bool isEmpty = system.getPolyhedron().isIntegerEmpty();
    empty += isEmpty;
    Elimination left(system.rows);
    solved += left.isEmpty() || left.getRows().empty();
    ASSERT_EQ(hasPoint(system.rows), !isEmpty) << "of seed " << seed;
  }
  // The test means something only if many systems are empty, many are not, and
  // elimination alone decides most of them.
  EXPECT_GT(empty, 1000u);
  EXPECT_LT(empty, 3000u);
  EXPECT_GT(solved, 3000u);
}

// The answers equal those of MLIR's Presburger library. Coefficients are large,
// so that elimination alone decides few of the systems.
TEST(IntegerPoints, answers_are_those_of_presburger) {
  unsigned empty = 0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    RandomSystem system(seed, /*most=*/40);
    bool isEmpty = system.getPolyhedron().isIntegerEmpty();
    empty += isEmpty;
    ASSERT_EQ(hasPoint(system.rows), !isEmpty) << "of seed " << seed;
  }
  EXPECT_GT(empty, 1000u);
  EXPECT_LT(empty, 3500u);
}

/// Adds 0 <= x - divisor * column <= divisor - 1, so that `column` is the
/// quotient x / divisor.
void addQuotient(std::vector<SparseRow> &rows, unsigned x, unsigned column,
                 int64_t divisor) {
  rows.push_back(least({{x, 1}, {column, -divisor}}, 0));
  rows.push_back(least({{x, -1}, {column, divisor}}, divisor - 1));
}

// The system asks for two different numbers up to 10^6 whose remainders by
// eight divisors have equal sums. MLIR's algorithm takes half a minute for this
// system. hasPoint() must end when its budget is spent.
TEST(IntegerPoints, a_search_ends_with_its_work) {
  std::vector<SparseRow> rows;
  SparseRow sum = equal({}, 0);
  unsigned column = 2;
  for (unsigned x : {0u, 1u}) {
    rows.push_back(least({{x, 1}}, 0));
    rows.push_back(least({{x, -1}}, 1000000));
    for (int64_t divisor : {3, 5, 7, 9, 11, 13, 15, 17}) {
      addQuotient(rows, x, column, divisor);
      int64_t sign = x ? -1 : 1;
      sum.terms.push_back({x, sign});
      sum.terms.push_back({column++, -sign * divisor});
    }
  }
  rows.push_back(sum);
  rows.push_back(least({{0, 1}, {1, -1}}, -1));
  for (int64_t units : {100, 10000, 1000000}) {
    Work work(units);
    std::optional<bool> found = mlafix::hasPoint(rows, work);
    EXPECT_TRUE(!found || *found);
    if (units == 100) {
      EXPECT_FALSE(found);
      EXPECT_EQ(work.getLeft(), 0);
    }
  }
}

// 31 x - 21 y = 11 has points, but none with x below 20.
TEST(IntegerPoints, points_between_the_shadows_are_found) {
  std::vector<SparseRow> rows = {least({{0, 31}, {1, -21}}, -11),
                                 least({{0, -31}, {1, 21}}, 11),
                                 least({{0, 1}}, 0), least({{0, -1}}, 19)};
  EXPECT_FALSE(hasPoint(rows));
  rows.back() = least({{0, -1}}, 20);
  EXPECT_TRUE(hasPoint(rows));
  Work work(100000);
  auto point = findSmallPoint(rows, 2, work);
  ASSERT_TRUE(point);
  EXPECT_EQ(31 * (*point)[0] - 21 * (*point)[1], 11);
}

} // namespace
