//===- SetDifferenceTest.cpp - Subtracts many sets from a set -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/LinearSystem.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlafix;
using namespace mlir::presburger;

namespace {

constexpr int64_t kSize = 12;

/// A relation of the sum a x + b y + c. If `modulus` is not 0, the sum is a
/// multiple of `modulus`. Otherwise, the sum is 0 if `isEquality` is set, and
/// at least 0 if not.
struct Relation2D {
  int64_t a, b, c, modulus = 0;
  bool isEquality = false;

  bool holds(int64_t x, int64_t y) const {
    int64_t value = a * x + b * y + c;
    return modulus      ? value % modulus == 0
           : isEquality ? value == 0
                        : value >= 0;
  }
};

/// The points with x and y from 0 to `kSize` - 1 that satisfy all relations.
struct RandomSet {
  RandomSet(std::mt19937 &random, unsigned most) {
    auto draw = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    for (int64_t count = draw(1, most); count > 0; --count) {
      Relation2D one = {draw(-2, 2), draw(-2, 2), draw(-9, 9)};
      if (draw(0, 2) == 0)
        one.modulus = draw(2, 5);
      else
        one.isEquality = draw(0, 2) == 0;
      relations.push_back(one);
    }
  }

  bool contains(int64_t x, int64_t y) const {
    return llvm::all_of(relations,
                        [&](const Relation2D &one) { return one.holds(x, y); });
  }

  IntegerPolyhedron getPolyhedron() const {
    IntegerPolyhedron set(PresburgerSpace::getSetSpace(2));
    for (unsigned dim : {0u, 1u}) {
      set.addBound(BoundType::LB, dim, 0);
      set.addBound(BoundType::UB, dim, kSize - 1);
    }
    for (const Relation2D &one : relations) {
      llvm::SmallVector<int64_t> row(set.getNumCols());
      row[0] = one.a;
      row[1] = one.b;
      row.back() = one.c;
      if (one.modulus) {
        set.addLocalFloorDiv(row, one.modulus);
        row.back() = -one.modulus;
        row.push_back(one.c);
      }
      if (one.modulus || one.isEquality)
        set.addEquality(row);
      else
        set.addInequality(row);
    }
    return set;
  }

  std::vector<Relation2D> relations;
};

TEST(SetDifference, points_are_those_of_the_first_set_alone) {
  unsigned empty = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    RandomSet first(random, 2);
    std::vector<RandomSet> others;
    for (unsigned count = random() % 9; count > 0; --count)
      others.emplace_back(random, 2);
    PresburgerSet all =
        PresburgerSet::getEmpty(PresburgerSpace::getSetSpace(2));
    for (const RandomSet &other : others)
      all.unionInPlace(other.getPolyhedron());
    Work work(50'000'000);
    std::optional<PresburgerSet> left =
        subtract(PresburgerSet(first.getPolyhedron()), all, work);
    ASSERT_TRUE(left) << "of seed " << seed;
    bool isCut = left->getNumDisjuncts() >= Budget::pieces, hasAny = false;
    for (int64_t x = 0; x < kSize; ++x)
      for (int64_t y = 0; y < kSize; ++y) {
        bool isLeft = first.contains(x, y) &&
                      llvm::none_of(others, [&](const RandomSet &other) {
                        return other.contains(x, y);
                      });
        hasAny |= isLeft;
        IntegerPolyhedron point(PresburgerSpace::getSetSpace(2));
        point.addBound(BoundType::EQ, 0, x);
        point.addBound(BoundType::EQ, 1, y);
        std::optional<bool> isMissing =
            isEmpty(left->intersect(PresburgerSet(point)), work);
        ASSERT_TRUE(isMissing);
        if (!isLeft || !isCut)
          ASSERT_EQ(*isMissing, !isLeft)
              << "of seed " << seed << " at " << x << ", " << y;
      }
    ASSERT_EQ(isEmpty(*left, work), !hasAny) << "of seed " << seed;
    empty += !hasAny;
  }
  EXPECT_GT(empty, 40u);
  EXPECT_LT(empty, 360u);
}

// Subtracts sets from a half-plane. Set i contains the points where x + y + i
// is a multiple of `count`, so `count` sets contain all points. The work must
// be linear in the number of sets.
TEST(SetDifference, sets_that_differ_in_a_remainder_are_taken_one_by_one) {
  auto takes = [](int64_t count, int64_t isMissing) {
    PresburgerSpace space = PresburgerSpace::getSetSpace(2);
    PresburgerSet all = PresburgerSet::getEmpty(space);
    for (int64_t i = 0; i < count - isMissing; ++i) {
      IntegerPolyhedron set(space);
      set.addLocalFloorDiv({1, 1, i}, count);
      set.addEquality({1, 1, -count, i});
      all.unionInPlace(set);
    }
    IntegerPolyhedron whole(space);
    whole.addBound(BoundType::LB, 0, 0);
    Work work(Budget::question);
    std::optional<PresburgerSet> left =
        subtract(PresburgerSet(whole), all, work);
    EXPECT_TRUE(left);
    EXPECT_EQ(isEmpty(*left, work), !isMissing);
    return Budget::question - work.getLeft();
  };
  EXPECT_LT(takes(500, 0), 5 * takes(125, 0));
  EXPECT_LT(takes(500, 1), 5 * takes(125, 1));
}

} // namespace
