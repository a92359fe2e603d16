//===- MergeRun.h - one checked call of merge_attn_states -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Builds the tensors of one merge in a given layout, fills each row as its
// kind says, launches, and holds every element of the result, every guard byte
// and every input byte against the reference.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TEST_CONFORMANCE_MERGERUN_H
#define MLAFIX_TEST_CONFORMANCE_MERGERUN_H

#include "Harness.h"
#include "Reference.h"
#include "TestTensor.h"

#include <functional>
#include <memory>
#include <optional>

namespace conformance {

/// The contents of a row's two sides.
enum class RowKind {
  BothLive,        ///< Both live, ordinary values.
  LargePayload,    ///< Both live, scaled up (f16: to its range).
  SmallPayload,    ///< Both live, scaled down.
  Cancelling,      ///< Equal weights, opposite payloads.
  HugeLse,         ///< |lse| about 1e5, a few units apart.
  PrefixEmptyNaN,  ///< Prefix lse -inf, payload NaN.
  PrefixEmptyInf,  ///< Prefix lse -inf, payload infinities.
  PrefixEmptyPlus, ///< Prefix lse +inf (FlashAttention-2), payload NaN.
  SuffixEmptyNaN,  ///< The same for the suffix.
  SuffixEmptyInf,
  SuffixEmptyPlus,
  CopyOddValues,       ///< Prefix empty; suffix of -0.0, denormals, Inf, NaN.
  CopyOddValuesSuffix, ///< The other way round.
  BothEmpty,           ///< Both -inf, payloads NaN.
  BothEmptyPlus,       ///< +inf against -inf, payloads garbage.
  PrefixUnderflow,     ///< Prefix weight is zero in f32, payload NaN.
  SuffixUnderflow,
  FarApart,     ///< lse 3e38 against -3e38, dead payload NaN.
  PrefixNaNLse, ///< NaN lse in a live row: NaN out (N6).
  SuffixNaNLse, ///< The same beside an empty prefix.
  Count
};

/// The layout of the tensors in memory.
enum class Style {
  Contiguous, ///< Aligned and without gaps.
  Misaligned, ///< One element past an aligned address: the tail variant.
  Padded,     ///< Gaps after heads and rows, each operand its own.
  PaddedOdd,  ///< Strides that no vector width divides.
  SlicedLse   ///< The lse tensors are columns [a, b) of larger ones.
};

struct MergeSetup {
  int64_t N = 0, H = 1, D = 1;
  Float Type = Float::BF16;
  bool LseRowsFirst = false; ///< lse is [n, H] instead of [H, n].
  Style How = Style::Contiguous;
  int64_t ContextRows = 0; ///< Rows from this one on take the suffix alone.
  bool WantLse = true;     ///< False if the optional out_lse is omitted.
  enum Place { Separate, OverPrefix, OverSuffix } Where = Separate;
  uint64_t Seed = 1;
  /// The kind of row (t, h). By default, all kinds in turn.
  std::function<RowKind(int64_t, int64_t)> Kind;
};

class MergeRun {
public:
  MergeRun(Device &On, const MergeSetup &Setup);

  /// Fills the same memory with new values.
  void refill(uint64_t Seed);
  /// Launches, waits, and fetches the results.
  void run(uint32_t Flags = LaunchFlags);
  /// Launches without waiting, for stream capture.
  void launch(uint32_t Flags = LaunchFlags);
  void fetch();

  /// Compares the fetched results with the reference.
  testing::AssertionResult check() const;
  /// Returns the bits of out and lse of one row, after fetch(). All NaN give
  /// the same bits, since a row in place may keep its NaN and a copied row has
  /// a converted NaN.
  std::vector<uint32_t> rowBits(int64_t T, int64_t H) const;

  /// The arguments of the launch, for other ways to launch.
  std::vector<mlafix::Arg> arguments() const;
  const mlafix::Kernel &kernel() const { return Code; }

private:
  TestTensor &out() const;
  TestTensor *outLse() const;
  uint32_t getLse(const TestTensor &From, int64_t T, int64_t H) const;
  /// Describes the fault of a row; "" if there is none.
  std::string checkRow(int64_t T, int64_t H) const;
  void setLse(TestTensor &To, int64_t T, int64_t H, float Value);
  void fillRow(int64_t T, int64_t H);

  Device &On;
  MergeSetup Setup;
  mlafix::Kernel Code;
  std::unique_ptr<TestTensor> Prefix, PrefixLse, Suffix, SuffixLse, Out, OutLse;
  std::vector<uint32_t> PrefixBits, SuffixBits; // [n, H, D] as filled
  std::vector<float> PrefixLses, SuffixLses;    // [n, H] as filled
};

} // namespace conformance

#endif // MLAFIX_TEST_CONFORMANCE_MERGERUN_H
