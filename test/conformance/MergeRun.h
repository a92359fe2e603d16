//===- MergeRun.h - one checked call of merge_attn_states -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Builds the tensors of one merge in a given layout, fills each row according
// to its kind, and launches the kernel. Compares every element of the result
// with the reference. Checks that guard bytes and inputs did not change.
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
  BothLive,        ///< Both sides are live, with ordinary values.
  LargePayload,    ///< Both sides are live, with large values.
  SmallPayload,    ///< Both sides are live, with small values.
  Cancelling,      ///< Both have the same weight and opposite payloads.
  HugeLse,         ///< Both lses have a magnitude of about 1e5.
  PrefixEmptyNaN,  ///< The prefix lse is -inf, its payload NaN.
  PrefixEmptyInf,  ///< The prefix lse is -inf, its payload infinite.
  PrefixEmptyPlus, ///< The prefix lse is +inf, its payload NaN.
  SuffixEmptyNaN,  ///< As PrefixEmptyNaN, for the suffix.
  SuffixEmptyInf,
  SuffixEmptyPlus,
  CopyOddValues,       ///< Empty prefix; suffix of -0.0, Inf, NaN, ...
  CopyOddValuesSuffix, ///< Empty suffix; prefix of -0.0, Inf, NaN, ...
  BothEmpty,           ///< Both lses are -inf, both payloads NaN.
  BothEmptyPlus,       ///< The lses are +inf and -inf, payloads garbage.
  PrefixUnderflow,     ///< The prefix weight is zero in f32, its payload NaN.
  SuffixUnderflow,
  FarApart,     ///< The lses are 3e38 and -3e38, the suffix payload NaN.
  PrefixNaNLse, ///< The prefix lse is NaN, and so is the result (N6).
  SuffixNaNLse, ///< The suffix lse is NaN, the prefix is empty.
  Count
};

/// The layout of the tensors in memory.
enum class Style {
  Contiguous, ///< Tensors are aligned and have no gaps.
  Misaligned, ///< Tensors start one element past an aligned address.
  Padded,     ///< There are gaps after heads and rows.
  PaddedOdd,  ///< As Padded, with gaps that are no multiple of 16 bytes.
  SlicedLse   ///< Each lse is columns [a, b) of a larger tensor.
};

struct MergeSetup {
  int64_t N = 0, H = 1, D = 1;
  Float Type = Float::BF16;
  bool LseRowsFirst = false; ///< lse is [n, H] instead of [H, n].
  Style How = Style::Contiguous;
  int64_t ContextRows = 0; ///< Rows from this index on copy the suffix.
  bool WantLse = true;     ///< False if the optional out_lse is omitted.
  enum Place { Separate, OverPrefix, OverSuffix } Where = Separate;
  uint64_t Seed = 1;
  /// Returns the kind of row (t, h). The default is a hash of t and h.
  std::function<RowKind(int64_t, int64_t)> Kind;
};

class MergeRun {
public:
  MergeRun(Device &On, const MergeSetup &Setup);

  /// Fills the tensors with new values, without allocating new memory.
  void refill(uint64_t Seed);
  /// Launches, waits for the end, and fetches the results.
  void run(uint32_t Flags = LaunchFlags);
  /// Launches without waiting, for stream capture.
  void launch(uint32_t Flags = LaunchFlags);
  void fetch();

  /// Compares the fetched results with the reference.
  testing::AssertionResult check() const;
  /// Returns the bits of out and lse of one row, after fetch(). Returns the
  /// same bits for every NaN, so that calls in place and calls with separate
  /// outputs can be compared. If a row is copied, a call in place may leave it
  /// as it is, and a call with separate outputs may convert its NaNs.
  std::vector<uint32_t> rowBits(int64_t T, int64_t H) const;

  /// Returns the arguments of the launch, for tests that launch in another way.
  std::vector<mlafix::Arg> arguments() const;
  const mlafix::Kernel &kernel() const { return Code; }

private:
  TestTensor &out() const;
  TestTensor *outLse() const;
  uint32_t getLse(const TestTensor &From, int64_t T, int64_t H) const;
  /// Describes what is wrong in a row. Returns "" if the row is right.
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
