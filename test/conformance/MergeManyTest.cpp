//===- MergeManyTest.cpp - merges of any number of states -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The dense merge, the ragged one, that of a list of buffers and that of splits
// against f64, in every layout and mix of live and dead sides (N1-N10, N12).
//
//===----------------------------------------------------------------------===//

#include "Sides.h"

#include <climits>

using namespace conformance;

namespace {

/// The bits of every row, in order.
using RowBits = std::vector<std::vector<uint32_t>>;

struct Outcome {
  testing::AssertionResult Good = testing::AssertionSuccess();
  RowBits Rows;

  /// Holds row \p Row of \p S, stored at (t, h), against its sides.
  void check(const Sides &S, int64_t Row, int64_t Last, Storage As,
             const TestTensor &Out, const TestTensor *Lse, int64_t T,
             int64_t H) {
    std::vector<uint32_t> Bits;
    for (int64_t I = 0; I < S.D; ++I)
      Bits.push_back(Out.get({T, H, I}));
    if (Lse)
      Bits.push_back(Lse->get({T, H}));
    Rows.push_back(std::move(Bits));
    if (!Good)
      return;
    testing::AssertionResult Matches =
        rowMatches(S.expected(Row, 0, Last, As), As.Type, Out, Lse, T, H);
    if (!Matches)
      Good = Matches << " (token " << T << ", head " << H << ", " << Last
                     << " sides)";
  }
  void finish(const std::vector<const TestTensor *> &Inputs,
              const std::vector<const TestTensor *> &Outputs) {
    if (Good)
      Good = nothingElseWritten(Inputs, Outputs);
  }
};

Storage storageOf(const StateCase &Case) {
  return {Case.Type, 1, Case.BaseTwo};
}

Outcome mergeStates(const StateCase &Case, int64_t N, int64_t K, Spread How,
                    bool WantLse = true, int64_t FirstToken = 0,
                    const std::string &More = "") {
  auto [H, D] = Case.Shape;
  Sides S(Case.Type, N * H, K, D, 7, FirstToken * H);
  TestTensor V = payloadTensor(Case.Type, {N, K, H, D}, How, 0);
  TestTensor L = lseTensor({N, K, H}, How, 0);
  TestTensor Out = payloadTensor(Case.Type, {N, H, D}, How, 1);
  TestTensor OutLse = lseTensor({N, H}, How, 1);
  for (int64_t T = 0; T < N; ++T)
    for (int64_t J = 0; J < K; ++J)
      for (int64_t I = 0; I < H; ++I) {
        setRow(V, S.payload(T * H + I, J), D, T, J, I);
        L.setFloat({T, J, I}, S.lse(T * H + I, J));
      }
  launchOn(kernel("merge_states", Case.bindings() + More),
           {Out.view(), WantLse ? OutLse.view() : mlafix::Tensor::none(),
            V.view(), L.view()},
           {&Out, &OutLse, &V, &L});
  Outcome Result;
  for (int64_t T = 0; T < N; ++T)
    for (int64_t I = 0; I < H; ++I)
      Result.check(S, T * H + I, K, storageOf(Case), Out,
                   WantLse ? &OutLse : nullptr, T, I);
  Result.finish({&V, &L}, {&Out, &OutLse});
  return Result;
}

/// Token t has Lengths[t] states; \p Indptr says where, and may be wrong on
/// purpose, in which case \p Lengths says what counts.
Outcome mergeRagged(const StateCase &Case, const std::vector<int64_t> &Lengths,
                    const std::vector<int32_t> &Indptr, int64_t Nnz, Spread How,
                    int64_t FirstToken = 0) {
  auto [H, D] = Case.Shape;
  int64_t N = int64_t(Lengths.size()), Most = 0;
  for (int64_t Length : Lengths)
    Most = std::max(Most, Length);
  Sides S(Case.Type, N * H, Most, D, 9, FirstToken * H);
  TestTensor V = payloadTensor(Case.Type, {Nnz, H, D}, How, 0);
  TestTensor L = lseTensor({Nnz, H}, How, 0);
  TestTensor Out = payloadTensor(Case.Type, {N, H, D}, How, 1);
  TestTensor OutLse = lseTensor({N, H}, How, 1);
  // The element past the end would be a sound bound: nobody may read it.
  int64_t Bounds = int64_t(Indptr.size());
  TestTensor Starts(device(), MLAFIX_I32, Layout::contiguous({Bounds + 2}));
  for (int64_t I = 0; I < Bounds + 2; ++I)
    Starts.setInt({I}, I < Bounds ? Indptr[size_t(I)] : int32_t(Nnz));
  for (int64_t T = 0; T < N; ++T)
    for (int64_t J = 0; J < Lengths[T]; ++J)
      for (int64_t I = 0; I < H; ++I) {
        setRow(V, S.payload(T * H + I, J), D, Indptr[T] + J, I);
        L.setFloat({Indptr[T] + J, I}, S.lse(T * H + I, J));
      }
  launchOn(kernel("merge_states_ragged", Case.bindings()),
           {Out.view(), OutLse.view(), V.view(), L.view(),
            mlafix::Tensor::contiguous(Starts.data(), MLAFIX_I32, {Bounds},
                                       device().handle())},
           {&Out, &OutLse, &V, &L, &Starts});
  Outcome Result;
  for (int64_t T = 0; T < N; ++T)
    for (int64_t I = 0; I < H; ++I)
      Result.check(S, T * H + I, Lengths[T], storageOf(Case), Out, &OutLse, T,
                   I);
  Result.finish({&V, &L, &Starts}, {&Out, &OutLse});
  return Result;
}

/// Bindings of merge_states_list's optional arguments for \p Count states.
std::string exactly(int64_t Count, bool WantLse = true) {
  std::string Text = WantLse ? ",out_lse=present" : ",out_lse=absent";
  for (int64_t J = 1; J < 8; ++J)
    for (const char *Kind : {",v", ",s"})
      Text += Kind + std::to_string(J) + (J < Count ? "=present" : "=absent");
  return Text;
}

/// Where the result goes: a buffer of its own, or over the given state.
Outcome mergeList(const StateCase &Case, int64_t N, int64_t Count, Spread How,
                  int64_t Over = -1, const std::string &More = "",
                  bool WantLse = true) {
  auto [H, D] = Case.Shape;
  Sides S(Case.Type, N * H, Count, D, 11);
  std::vector<std::unique_ptr<TestTensor>> V, L;
  TestTensor Out = payloadTensor(Case.Type, {N, H, D}, How, 8);
  TestTensor OutLse = lseTensor({N, H}, How, 8);
  std::vector<TestTensor *> All = {&Out, &OutLse};
  std::vector<const TestTensor *> Inputs;
  for (int64_t J = 0; J < Count; ++J) {
    V.push_back(std::make_unique<TestTensor>(
        payloadTensor(Case.Type, {N, H, D}, How, int(J))));
    L.push_back(std::make_unique<TestTensor>(lseTensor({N, H}, How, int(J))));
    for (int64_t T = 0; T < N; ++T)
      for (int64_t I = 0; I < H; ++I) {
        setRow(*V[J], S.payload(T * H + I, J), D, T, I);
        L[J]->setFloat({T, I}, S.lse(T * H + I, J));
      }
    All.insert(All.end(), {V[J].get(), L[J].get()});
    if (J != Over)
      Inputs.insert(Inputs.end(), {V[J].get(), L[J].get()});
  }
  TestTensor &To = Over < 0 ? Out : *V[Over];
  TestTensor &ToLse = Over < 0 ? OutLse : *L[Over];
  std::vector<mlafix::Arg> Arguments = {
      To.view(), WantLse ? ToLse.view() : mlafix::Tensor::none()};
  for (int64_t J = 0; J < 8; ++J) {
    Arguments.push_back(J < Count ? V[J]->view() : mlafix::Tensor::none());
    Arguments.push_back(J < Count ? L[J]->view() : mlafix::Tensor::none());
  }
  launchOn(kernel("merge_states_list", Case.bindings() + More), Arguments, All);
  Outcome Result;
  for (int64_t T = 0; T < N; ++T)
    for (int64_t I = 0; I < H; ++I)
      Result.check(S, T * H + I, Count, storageOf(Case), To,
                   WantLse ? &ToLse : nullptr, T, I);
  Result.finish(Inputs, {&To, &ToLse});
  return Result;
}

class MergeMany : public testing::TestWithParam<StateCase> {};

} // namespace

TEST_P(MergeMany, dense_states_of_every_count_and_layout) {
  for (Spread How : AllSpreads)
    for (int64_t K : {0, 1, 2, 5, 9})
      ASSERT_TRUE(mergeStates(GetParam(), 7, K, How).Good)
          << "spread " << int(How) << ", k = " << K;
  ASSERT_TRUE(mergeStates(GetParam(), 0, 3, Spread::Dense).Good); // N12
  if (GetParam().Shape.D < 128) { // a cascade of many splits: N10 still
    ASSERT_TRUE(mergeStates(GetParam(), 40, 100, Spread::Dense).Good);
  }
  ASSERT_TRUE(mergeStates(GetParam(), 19, 3, Spread::Gaps, false).Good);
}

TEST_P(MergeMany, a_rows_bits_depend_on_that_row_alone) { // N9
  auto [H, D] = GetParam().Shape;
  Outcome Whole = mergeStates(GetParam(), 9, 4, Spread::Dense);
  for (int64_t T : {0, 4, 8}) {
    Outcome Alone = mergeStates(GetParam(), 1, 4, Spread::OddGaps, true, T);
    for (int64_t I = 0; I < H; ++I)
      ASSERT_EQ(Whole.Rows[T * H + I], Alone.Rows[I]) << "token " << T;
  }
}

TEST_P(MergeMany, ragged_runs_of_every_length_and_layout) {
  std::vector<int64_t> Lengths = {2, 0, 1, 6, 0, 3, 1};
  std::vector<int32_t> Indptr = {0};
  for (int64_t Length : Lengths)
    Indptr.push_back(Indptr.back() + int32_t(Length));
  for (Spread How : AllSpreads)
    ASSERT_TRUE(
        mergeRagged(GetParam(), Lengths, Indptr, Indptr.back(), How).Good)
        << "spread " << int(How);
  ASSERT_TRUE(mergeRagged(GetParam(), {}, {0}, 0, Spread::Dense).Good);
  ASSERT_TRUE(
      mergeRagged(GetParam(), {0, 0}, {0, 0, 0}, 0, Spread::Dense).Good);
}

TEST_P(MergeMany, a_list_of_one_to_eight_states) {
  for (Spread How : AllSpreads)
    for (int64_t Count : {1, 2, 3, 8})
      ASSERT_TRUE(mergeList(GetParam(), 5, Count, How).Good)
          << "spread " << int(How) << ", " << Count << " states";
}

TEST_P(MergeMany, a_list_in_place) { // N11
  for (Spread How : AllSpreads)
    for (int64_t Over : {0, 2})
      ASSERT_TRUE(mergeList(GetParam(), 5, 3, How, Over).Good)
          << "spread " << int(How) << ", over state " << Over;
}

INSTANTIATE_TEST_SUITE_P(All, MergeMany, testing::ValuesIn(stateCases()),
                         caseName);

// design section 6, trust: a run that is no part of [0, nnz] counts for
// nothing, and nobody reads past the end of indptr.
TEST(MergeRagged, malformed_runs_stay_in_bounds) {
  StateCase Case{{6, 3}, Float::BF16, false};
  struct {
    std::vector<int64_t> Lengths;
    std::vector<int32_t> Indptr;
  } Broken[] = {
      {{0, 2}, {5, 2, 4}},             // decreasing
      {{0, 0}, {-3, 2, -1}},           // negative
      {{2, 0}, {0, 2, 9}},             // past the end
      {{0, 0}, {INT_MIN, INT_MAX, 0}}, // huge
      {{2, 0, 0}, {0, 2}},             // too few bounds
      {{0, 0}, {}},                    // none at all
  };
  for (auto &B : Broken)
    EXPECT_TRUE(mergeRagged(Case, B.Lengths, B.Indptr, 4, Spread::Dense).Good);
}

TEST(MergeMany, omitted_states_may_be_any_but_the_first) {
  // Present are 0, 3 and 7.
  const int64_t N = 4, H = 6, D = 3;
  Sides S(Float::F16, N * H, 3, D, 13);
  std::vector<std::unique_ptr<TestTensor>> Tensors;
  TestTensor Out = payloadTensor(Float::F16, {N, H, D}, Spread::Dense, 0);
  std::vector<mlafix::Arg> Arguments = {Out.view(), mlafix::Tensor::none()};
  std::vector<TestTensor *> All = {&Out};
  int64_t Next = 0;
  for (int64_t J = 0; J < 8; ++J) {
    if (J != 0 && J != 3 && J != 7) {
      Arguments.push_back(mlafix::Tensor::none());
      Arguments.push_back(mlafix::Tensor::none());
      continue;
    }
    for (bool IsLse : {false, true}) {
      Tensors.push_back(std::make_unique<TestTensor>(
          IsLse ? lseTensor({N, H}, Spread::Dense, 0)
                : payloadTensor(Float::F16, {N, H, D}, Spread::Dense, 0)));
      for (int64_t T = 0; T < N; ++T)
        for (int64_t I = 0; I < H; ++I)
          if (IsLse)
            Tensors.back()->setFloat({T, I}, S.lse(T * H + I, Next));
          else
            setRow(*Tensors.back(), S.payload(T * H + I, Next), D, T, I);
      All.push_back(Tensors.back().get());
      Arguments.push_back(Tensors.back()->view());
    }
    ++Next;
  }
  launchOn(kernel("merge_states_list", H, D, Float::F16), Arguments, All);
  for (int64_t T = 0; T < N; ++T)
    for (int64_t I = 0; I < H; ++I)
      ASSERT_TRUE(rowMatches(S.expected(T * H + I, 0, 3, {Float::F16}),
                             Float::F16, Out, nullptr, T, I));
}

// A merge of two whose second state may be omitted, small and large, and in
// place, where a GPU reads the row that is replaced late.
TEST(MergeMany, a_second_state_that_may_be_omitted) { // N11
  StateCase Case = {{16, 128}, Float::BF16, false};
  std::string Open = exactly(1);
  std::string Slot = ",v1=absent,s1=absent";
  Open.erase(Open.find(Slot), Slot.size());
  for (int64_t Count : {1, 2}) {
    for (int64_t Over = -1; Over < Count; ++Over)
      ASSERT_TRUE(mergeList(Case, 5, Count, Spread::Dense, Over, Open).Good)
          << Count << " states, over " << Over;
    // 17 MB a tensor
    ASSERT_TRUE(
        mergeList(Case, 4200, Count, Spread::Dense, Count - 1, Open).Good)
        << Count << " states, large";
  }
}

// Optional arguments that were bound leave kernels that do the same, to the
// bit, as the one that asks which are there.
TEST(MergeMany, code_for_exactly_one_to_eight_states) {
  StateCase Cases[] = {{{6, 3}, Float::F16, false},
                       {{16, 128}, Float::BF16, false},
                       {{1, 576}, Float::F32, false}};
  // 4 to 7 states are code of one kind: once is enough.
  for (const StateCase &Case : Cases)
    for (int64_t Count = 1; Count <= 8; ++Count) {
      if (Case.Shape.D != 128 && Count > 3 && Count < 8)
        continue;
      SCOPED_TRACE(Case.bindings() + exactly(Count));
      for (Spread How : AllSpreads) {
        Outcome Exact = mergeList(Case, 5, Count, How, -1, exactly(Count));
        ASSERT_TRUE(Exact.Good) << "spread " << int(How);
        ASSERT_EQ(mergeList(Case, 5, Count, How).Rows, Exact.Rows);
      }
      for (int64_t Over : {int64_t(0), Count - 1}) // N11
        ASSERT_TRUE(
            mergeList(Case, 5, Count, Spread::Gaps, Over, exactly(Count)).Good)
            << "over state " << Over;
    }
}

TEST(MergeMany, code_for_exactly_so_many_states_and_no_lse) {
  StateCase Case{{16, 128}, Float::BF16, false};
  for (int64_t Count : {1, 2, 3, 8})
    ASSERT_TRUE(mergeList(Case, 5, Count, Spread::Gaps, -1,
                          exactly(Count, false), false)
                    .Good)
        << Count << " states";
}

TEST(MergeMany, code_for_exactly_so_many_states_takes_no_others) {
  StateCase Case{{16, 128}, Float::BF16, false};
  struct {
    int64_t Count;
    bool WantLse;
    const char *Words;
  } Wrong[] = {{5, true,
                "argument \"v4\": expected null, since this "
                "specialisation binds the argument as absent"},
               {3, true,
                "argument \"v3\": expected a tensor of dtype bf16, "
                "since this specialisation binds"},
               {4, false,
                "argument \"out_lse\": expected a tensor of dtype f32, "
                "since this specialisation binds"}};
  for (const auto &W : Wrong)
    try {
      mergeList(Case, 5, W.Count, Spread::Dense, -1, exactly(4), W.WantLse);
      FAIL() << "expected an error";
    } catch (const mlafix::Error &Error) {
      EXPECT_EQ(MLAFIX_INVALID_ARGUMENT, Error.status());
      EXPECT_NE(std::string(Error.what()).find(W.Words), std::string::npos)
          << Error.what();
    }
}

// A dynamic dim that was bound makes code for that size alone, which a look-up
// without it does not mean.
TEST(MergeMany, code_for_one_count_of_states) {
  for (Float Type : StateTypes) {
    StateCase Case{{16, 128}, Type, false};
    for (Spread How : AllSpreads)
      ASSERT_TRUE(mergeStates(Case, 7, 4, How, true, 0, ",k=4").Good);
    try {
      mergeStates(Case, 7, 5, Spread::Dense, true, 0, ",k=4");
      FAIL() << "expected an error";
    } catch (const mlafix::Error &Error) {
      EXPECT_EQ(MLAFIX_INVALID_ARGUMENT, Error.status());
    }
  }
}
