//===- OverlapTest.cpp - Overlap of tensors, by enumeration ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Overlap.h"

#include <gtest/gtest.h>
#include <random>
#include <set>
#include <vector>

using namespace mlafix::runtime;

namespace {

struct Tensor {
  uint64_t base;
  uint64_t elementBytes;
  std::vector<int64_t> sizes, strides;

  StridedTensor strided() const {
    return {reinterpret_cast<void *>(base), static_cast<uint32_t>(sizes.size()),
            sizes.data(), strides.data(), elementBytes};
  }

  ByteLayout layout() const {
    ByteLayout result;
    EXPECT_TRUE(makeByteLayout(strided(), result));
    return result;
  }

  /// Returns the address of every byte of every element. A byte of several
  /// elements occurs several times.
  std::multiset<uint64_t> bytes() const {
    std::multiset<uint64_t> result;
    visit(0, base, result);
    return result;
  }

private:
  void visit(size_t dim, uint64_t address,
             std::multiset<uint64_t> &result) const {
    if (dim == sizes.size()) {
      for (uint64_t i = 0; i < elementBytes; ++i)
        result.insert(address + i);
      return;
    }
    for (int64_t i = 0; i < sizes[dim]; ++i)
      visit(dim + 1, address + i * strides[dim] * elementBytes, result);
  }
};

bool share(const Tensor &a, const Tensor &b) {
  std::multiset<uint64_t> bytes = a.bytes();
  for (uint64_t byte : b.bytes())
    if (bytes.count(byte))
      return true;
  return false;
}

bool sharesWithItself(const Tensor &a) {
  std::multiset<uint64_t> bytes = a.bytes();
  return std::set<uint64_t>(bytes.begin(), bytes.end()).size() != bytes.size();
}

Tensor randomTensor(std::mt19937 &random) {
  auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  Tensor tensor;
  tensor.elementBytes = uint64_t(1) << pick(0, 2);
  tensor.base = 4096 + tensor.elementBytes * pick(0, 60);
  int dims = pick(0, 3);
  for (int i = 0; i < dims; ++i) {
    tensor.sizes.push_back(pick(pick(0, 9) ? 1 : 0, 5));
    tensor.strides.push_back(pick(0, 5) ? pick(-4, 24) : 4 * pick(1, 8));
  }
  return tensor;
}

TEST(Overlap, never_contradicts_enumeration) {
  std::mt19937 random(7);
  int decided = 0, total = 0, disjoint = 0, overlapping = 0;
  for (int i = 0; i < 60000; ++i) {
    Tensor a = randomTensor(random), b = randomTensor(random);
    Relation relation = overlap(a.layout(), b.layout());
    ASSERT_EQ(relation, overlap(b.layout(), a.layout()));
    bool truth = share(a, b);
    ++total;
    if (relation == Relation::Unknown)
      continue;
    ++decided;
    (truth ? overlapping : disjoint) += 1;
    ASSERT_EQ(relation == Relation::Overlap, truth)
        << a.base << " against " << b.base;
  }
  // Both answers are frequent, and most layouts are decided.
  EXPECT_GT(disjoint, 3000);
  EXPECT_GT(overlapping, 3000);
  RecordProperty("decided", decided);
  EXPECT_GT(decided, total * 3 / 4);
}

TEST(SelfOverlap, never_contradicts_enumeration) {
  std::mt19937 random(11);
  int decided = 0, total = 0;
  for (int i = 0; i < 60000; ++i) {
    Tensor a = randomTensor(random);
    Relation relation = selfOverlap(a.layout());
    ++total;
    if (relation == Relation::Unknown)
      continue;
    ++decided;
    ASSERT_EQ(relation == Relation::Overlap, sharesWithItself(a)) << i;
  }
  RecordProperty("decided", decided);
  EXPECT_GT(decided, total * 3 / 4);
}

Relation relate(const Tensor &a, const Tensor &b) {
  return overlap(a.layout(), b.layout());
}

TEST(Overlap, decides_the_layouts_in_use) {
  uint64_t base = 1 << 20;
  // Slices lse[:, a:b] of one [16, 1024] buffer.
  Tensor left{base, 4, {16, 100}, {1024, 1}};
  Tensor right{base + 4 * 100, 4, {16, 200}, {1024, 1}};
  Tensor meets{base + 4 * 99, 4, {16, 200}, {1024, 1}};
  EXPECT_EQ(relate(left, right), Relation::Disjoint);
  EXPECT_EQ(relate(left, meets), Relation::Overlap);
  // The halves of the heads of one [N, 128, 128] buffer.
  Tensor lower{base, 2, {32, 64, 128}, {128 * 128, 128, 1}};
  Tensor upper{base + 2 * 64 * 128, 2, {32, 64, 128}, {128 * 128, 128, 1}};
  EXPECT_EQ(relate(lower, upper), Relation::Disjoint);
  // Columns [0, 128) and [128, 192) of one [N, 16, 192] buffer.
  Tensor nope{base, 2, {32, 16, 128}, {16 * 192, 192, 1}};
  Tensor rope{base + 2 * 128, 2, {32, 16, 64}, {16 * 192, 192, 1}};
  EXPECT_EQ(relate(nope, rope), Relation::Disjoint);
  // Two layouts of the same memory.
  Tensor byHead{base, 4, {16, 64}, {64, 1}};
  Tensor byToken{base, 4, {64, 16}, {1, 64}};
  EXPECT_EQ(relate(byHead, byToken), Relation::Overlap);
  // Output and lse side by side in one allocation.
  Tensor out{base, 2, {32, 16, 128}, {2048, 128, 1}};
  Tensor lse{base + 2 * 32 * 2048, 4, {32, 16}, {16, 1}};
  EXPECT_EQ(relate(out, lse), Relation::Disjoint);
  lse.base -= 4;
  EXPECT_EQ(relate(out, lse), Relation::Overlap);
}

TEST(Overlap, huge_tensors_do_not_overflow) {
  // Two adjacent tensors of 270000 x 128 x 128 bf16.
  Tensor a{uint64_t(1) << 40, 2, {270000, 128, 128}, {16384, 128, 1}};
  Tensor b = a;
  b.base += uint64_t(270000) * 16384 * 2;
  EXPECT_EQ(relate(a, b), Relation::Disjoint);
  b.base -= 2;
  EXPECT_EQ(relate(a, b), Relation::Overlap);
  EXPECT_EQ(selfOverlap(a.layout()), Relation::Disjoint);
}

TEST(Overlap, tensors_that_leave_the_address_space_have_no_layout) {
  ByteLayout layout;
  auto fits = [&](uint64_t base, int64_t size, int64_t stride) {
    return makeByteLayout(Tensor{base, 4, {size}, {stride}}.strided(), layout);
  };
  EXPECT_TRUE(fits(4096, 1 << 20, 1));
  EXPECT_FALSE(fits(4096, INT64_MAX, INT64_MAX));
  EXPECT_FALSE(fits(4096, INT64_MAX, 1));
  EXPECT_FALSE(fits(4096, 2, INT64_MIN));
  EXPECT_FALSE(fits(4096, 4096, -4)); // the tensor extends below address 0
  EXPECT_FALSE(fits(UINT64_MAX - 15, 5, 1));
  EXPECT_TRUE(fits(UINT64_MAX - 15, 3, 1));
  // With at most one element, the stride is not used.
  EXPECT_TRUE(fits(4096, 1, INT64_MAX));
  EXPECT_TRUE(fits(4096, 0, INT64_MAX));
}

TEST(SelfOverlap, padded_and_permuted_layouts_are_injective) {
  EXPECT_EQ(selfOverlap(Tensor{64, 2, {8, 5, 3}, {1, 100, 20}}.layout()),
            Relation::Disjoint);
  EXPECT_EQ(selfOverlap(Tensor{64, 2, {8, 5}, {4, 1}}.layout()),
            Relation::Overlap);
  EXPECT_EQ(selfOverlap(Tensor{64, 2, {8, 5}, {0, 1}}.layout()),
            Relation::Overlap);
  EXPECT_EQ(selfOverlap(Tensor{64, 2, {1, 5}, {0, 1}}.layout()),
            Relation::Disjoint);
  EXPECT_EQ(selfOverlap(Tensor{512, 2, {8, 5}, {-5, 1}}.layout()),
            Relation::Disjoint);
}

} // namespace

TEST(ByteSpan, says_nothing_else_than_the_layout) {
  std::mt19937 random(13);
  int told = 0, apart = 0;
  for (int i = 0; i < 60000; ++i) {
    Tensor a = randomTensor(random), b = randomTensor(random);
    ByteSpan spanA, spanB;
    if (!makeByteSpan(a.strided(), /*distinct=*/true, spanA))
      continue;
    ++told;
    ByteLayout layout = a.layout();
    ASSERT_EQ(spanA.extent, layout.empty ? 0 : layout.extent);
    ASSERT_EQ(spanA.base, layout.base);
    ASSERT_FALSE(sharesWithItself(a)) << i;
    if (!makeByteSpan(b.strided(), /*distinct=*/false, spanB) ||
        !spanA.isApartFrom(spanB))
      continue;
    ++apart;
    ASSERT_FALSE(share(a, b)) << i;
  }
  EXPECT_GT(told, 15000);
  EXPECT_GT(apart, 3000);
}

TEST(ByteSpan, leaves_what_is_rare_to_the_layout) {
  ByteSpan span;
  auto tells = [&](uint64_t base, int64_t size, int64_t stride, bool distinct) {
    return makeByteSpan(Tensor{base, 4, {size}, {stride}}.strided(), distinct,
                        span);
  };
  EXPECT_TRUE(tells(4096, 8, 1, true));
  EXPECT_TRUE(tells(4096, 8, 0, false));
  EXPECT_FALSE(tells(4096, 8, 0, true)); // all elements have the same address
  EXPECT_FALSE(tells(4096, 8, -1, false));
  EXPECT_FALSE(tells(4096, INT64_MAX, 2, false));
  EXPECT_FALSE(tells(4096, INT64_MAX / 2, 1, false));
  EXPECT_FALSE(tells(UINT64_MAX - 15, 5, 1, false));
  EXPECT_TRUE(tells(UINT64_MAX - 15, 3, 1, false));
}
