//===- MappedTest.cpp - merges of groups through maps ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Groups of every size, their parts and rows in any order, against f64 in every
// layout and mix of live and dead parts (N1-N10, N12, N13); maps that lead out
// of bounds.
//
//===----------------------------------------------------------------------===//

#include "Sides.h"

#include <climits>
#include <cmath>

using namespace conformance;

namespace {

using Ints = std::vector<int32_t>;

struct MappedCase {
  HeadShape Shape;
  Float Out, Parts;
  bool BaseTwo;

  std::string bindings() const {
    return "H=" + std::to_string(Shape.H) + ",D=" + std::to_string(Shape.D) +
           ",O=" + spelling(Out) + ",T=" + spelling(Parts) +
           (BaseTwo ? ",B=2" : "");
  }
};

std::vector<MappedCase> mappedCases() {
  std::vector<MappedCase> All;
  for (HeadShape Shape : libraryShapes()) {
    for (Float Out : StateTypes)
      All.push_back({Shape, Out, Float::F32, false});
    All.push_back({Shape, Float::BF16, Float::BF16, false});
  }
  All.push_back({{16, 128}, Float::BF16, Float::F32, true});
  return All;
}

/// An i32 tensor of its own; no Map where it is omitted.
struct Map {
  Map(const Ints *Values) {
    if (!Values)
      return;
    auto Size = int64_t(Values->size());
    // The element past the end would name row 0: nobody may read it.
    Tensor = std::make_unique<TestTensor>(device(), MLAFIX_I32,
                                          Layout::contiguous({Size + 2}));
    for (int64_t I = 0; I < Size + 2; ++I)
      Tensor->setInt({I}, I < Size ? (*Values)[size_t(I)] : 0);
    View = mlafix::Tensor::contiguous(Tensor->data(), MLAFIX_I32, {Size},
                                      device().handle());
  }
  std::unique_ptr<TestTensor> Tensor;
  mlafix::Tensor View = mlafix::Tensor::none();
};

struct Call {
  Ints Indptr;
  const Ints *PartMap = nullptr, *RowMap = nullptr;
  /// Of each row the parts that count; none where the row is left as it is.
  std::vector<std::optional<Ints>> Members;
  int64_t Parts = 0;
  int32_t MinParts = 0;
  float EmptyLse = -INFINITY;
  bool WantLse = true;
};

testing::AssertionResult isPoison(Float Type, int64_t D, const TestTensor &Out,
                                  int64_t Row, int64_t Head) {
  for (int64_t I = 0; I < D; ++I)
    if (Out.get({Row, Head, I}) != poisonBits(Type))
      return testing::AssertionFailure() << "out[" << I << "] was written";
  return testing::AssertionSuccess();
}

testing::AssertionResult mergesMapped(const MappedCase &Case, const Call &C,
                                      Spread How) {
  auto [H, D] = Case.Shape;
  auto N = int64_t(C.Members.size());
  Sides S(Case.Parts, N * H, std::max<int64_t>(C.Parts, 1), D, 19);
  TestTensor Parts = payloadTensor(Case.Parts, {C.Parts, H, D}, How, 0);
  TestTensor Lses = lseTensor({C.Parts, H}, How, 0);
  TestTensor Out = payloadTensor(Case.Out, {N, H, D}, How, 1);
  TestTensor OutLse = lseTensor({N, H}, How, 1);
  // Side J of a row is its J-th part that counts.
  for (int64_t T = 0; T < N; ++T)
    for (size_t J = 0; C.Members[T] && J < C.Members[T]->size(); ++J)
      for (int64_t I = 0; I < H; ++I) {
        int64_t Part = (*C.Members[T])[J];
        setRow(Parts, S.payload(T * H + I, int64_t(J)), D, Part, I);
        Lses.setFloat({Part, I}, S.lse(T * H + I, int64_t(J)));
      }
  Map Indptr(&C.Indptr), PartMap(C.PartMap), RowMap(C.RowMap);
  std::vector<TestTensor *> All = {&Parts, &Lses, &Out, &OutLse};
  for (Map *One : {&Indptr, &PartMap, &RowMap})
    if (One->Tensor)
      All.push_back(One->Tensor.get());
  launchOn(kernel("merge_states_mapped", Case.bindings()),
           {Out.view(), C.WantLse ? OutLse.view() : mlafix::Tensor::none(),
            Parts.view(), Lses.view(), Indptr.View, PartMap.View, RowMap.View,
            mlafix::Tensor::none(), C.MinParts, C.EmptyLse},
           All);
  for (int64_t T = 0; T < N; ++T)
    for (int64_t I = 0; I < H; ++I) {
      auto Last = int64_t(C.Members[T] ? C.Members[T]->size() : 0);
      ExpectedRow Row =
          S.expected(T * H + I, 0, Last, {Case.Out, 1, Case.BaseTwo});
      uint32_t MinusInf = fromDouble(Float::F32, -INFINITY);
      if (Row.Lse.How == Expected::Exact && Row.Lse.Bits == MinusInf)
        Row.Lse.Bits = fromDouble(Float::F32, C.EmptyLse);
      testing::AssertionResult Good =
          C.Members[T] ? rowMatches(Row, Case.Out, Out,
                                    C.WantLse ? &OutLse : nullptr, T, I)
                       : isPoison(Case.Out, D, Out, T, I);
      if (!Good)
        return Good << " (row " << T << ", head " << I << ", " << Last
                    << " parts)";
    }
  return nothingElseWritten({&Parts, &Lses}, {&Out, &OutLse});
}

/// Groups of these sizes over parts and rows in an order that is not theirs;
/// two parts and two rows belong to none.
Call scattered(const Ints &Sizes, Ints &PartMap, Ints &RowMap,
               int32_t MinParts) {
  auto Groups = int32_t(Sizes.size());
  Call C;
  C.MinParts = MinParts;
  C.Indptr = {0};
  for (int32_t Size : Sizes)
    C.Indptr.push_back(C.Indptr.back() + Size);
  int32_t Total = C.Indptr.back();
  C.Parts = Total + 2;
  C.Members.resize(size_t(Groups) + 2);
  for (int32_t J = 0; J < Total; ++J)
    PartMap.push_back(Total - J);
  for (int32_t G = 0; G < Groups; ++G) {
    RowMap.push_back(Groups + 1 - G);
    if (Sizes[size_t(G)] >= MinParts)
      C.Members[size_t(RowMap.back())] =
          Ints(PartMap.begin() + C.Indptr[size_t(G)],
               PartMap.begin() + C.Indptr[size_t(G) + 1]);
  }
  C.PartMap = &PartMap;
  C.RowMap = &RowMap;
  return C;
}

class Mapped : public testing::TestWithParam<MappedCase> {};

} // namespace

TEST_P(Mapped, groups_of_every_size_and_layout) {
  for (int32_t MinParts : {0, 2}) {
    Ints PartMap, RowMap;
    Call C = scattered({2, 0, 1, 6, 0, 3, 1}, PartMap, RowMap, MinParts);
    for (Spread How : AllSpreads)
      ASSERT_TRUE(mergesMapped(GetParam(), C, How))
          << "spread " << int(How) << ", at least " << MinParts << " parts";
    C.EmptyLse = INFINITY;
    ASSERT_TRUE(mergesMapped(GetParam(), C, Spread::Dense));
    C.WantLse = false;
    ASSERT_TRUE(mergesMapped(GetParam(), C, Spread::Gaps));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Mapped, testing::ValuesIn(mappedCases()),
                         [](const testing::TestParamInfo<MappedCase> &Info) {
                           const MappedCase &C = Info.param;
                           return "H" + std::to_string(C.Shape.H) + "_D" +
                                  std::to_string(C.Shape.D) + "_" +
                                  spelling(C.Parts) + "_to_" + spelling(C.Out) +
                                  (C.BaseTwo ? "_base2" : "");
                         });

TEST(Mapped, without_maps_a_group_is_its_row) {
  MappedCase Case{{6, 3}, Float::BF16, Float::F32, false};
  Call C;
  C.Indptr = {0, 2, 2, 3};
  C.Parts = 3;
  C.Members = {Ints{0, 1}, Ints{}, Ints{2}, std::nullopt};
  EXPECT_TRUE(mergesMapped(Case, C, Spread::Dense));
  Ints PartMap = {2, 0, 1}, RowMap = {3, 0, 1};
  C.PartMap = &PartMap;
  C.Members = {Ints{2, 0}, Ints{}, Ints{1}, std::nullopt};
  EXPECT_TRUE(mergesMapped(Case, C, Spread::Dense));
  C.PartMap = nullptr;
  C.RowMap = &RowMap;
  C.Members = {Ints{}, Ints{2}, std::nullopt, Ints{0, 1}};
  EXPECT_TRUE(mergesMapped(Case, C, Spread::Dense));
}

// No map leads out of bounds, and nobody reads past the end of one.
TEST(Mapped, entries_out_of_bounds_count_for_nothing) {
  MappedCase Case{{6, 3}, Float::BF16, Float::F32, false};
  struct {
    Ints Indptr, PartMap, RowMap;
    std::vector<std::optional<Ints>> Members;
  } Broken[] = {
      // parts and rows that are none
      {{0, 2, 4}, {1, -1, 4, INT_MAX}, {0, 1}, {Ints{1}, Ints{}}},
      {{0, 1, 2}, {0, 1}, {-1, 2}, {std::nullopt, std::nullopt}},
      {{0, 1, 2}, {0, 1}, {INT_MIN, INT_MAX}, {std::nullopt, std::nullopt}},
      // without an entry
      {{0, 2, 4}, {3, 1}, {0, 1}, {Ints{3, 1}, Ints{}}},
      {{0, 1, 2}, {2, 3}, {1}, {std::nullopt, Ints{2}}},
      {{}, {0}, {0}, {std::nullopt}},
      // bounds that decrease, are negative or huge
      {{4, 1, 3}, {0, 1, 2, 3}, {1, 0}, {Ints{1, 2}, Ints{}}},
      {{-1, 2, -5}, {0, 1, 2, 3}, {1, 0}, {Ints{}, Ints{}}},
      {{INT_MIN, INT_MAX, 0}, {0, 1}, {1, 0}, {Ints{}, Ints{}}},
  };
  for (auto &B : Broken) {
    Call C;
    C.Indptr = B.Indptr;
    C.PartMap = &B.PartMap;
    C.RowMap = &B.RowMap;
    C.Members = B.Members;
    C.Parts = 4;
    EXPECT_TRUE(mergesMapped(Case, C, Spread::Dense));
  }
}
