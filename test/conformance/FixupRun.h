//===- FixupRun.h - one checked fixup_zero_kv_rows --------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TEST_CONFORMANCE_FIXUPRUN_H
#define MLAFIX_TEST_CONFORMANCE_FIXUPRUN_H

#include "Harness.h"
#include "MergeRun.h"
#include "TestTensor.h"

#include <memory>

namespace conformance {

struct FixupSetup {
  int64_t N = 0, H = 1, D = 1;
  Float Type = Float::BF16;
  bool LseRowsFirst = false; ///< lse is [n, H] instead of [H, n].
  Style How = Style::Contiguous;
  /// The number of keys of each segment. A number <= 0 means no keys.
  std::vector<int32_t> KvLens;
  /// The rows at which segments begin and end: segment i is the rows from
  /// CuSeqlens[i] up to, but not including, CuSeqlens[i + 1]. The kernel must
  /// ignore a segment whose bounds do not ascend.
  std::vector<int32_t> CuSeqlens;
};

/// One call of fixup_zero_kv_rows. Rows without keys contain poison before the
/// call. All other rows contain values that must stay the same, bit for bit.
class FixupRun {
public:
  FixupRun(Device &On, FixupSetup Setup);

  /// Replaces the segments and restores the initial rows, in the same memory.
  void refill(std::vector<int32_t> KvLens, std::vector<int32_t> CuSeqlens);
  void run(uint32_t Flags = LaunchFlags);
  void launch(uint32_t Flags = LaunchFlags);
  void fetch();
  testing::AssertionResult check() const;

private:
  uint32_t payloadBits(int64_t T, int64_t H, int64_t I) const;
  float lseValue(int64_t T, int64_t H) const;

  Device &On;
  FixupSetup Setup;
  mlafix::Kernel Code;
  std::unique_ptr<TestTensor> Out, Lse, KvLens, CuSeqlens;
};

/// Returns the segment bounds 0, L0, L0 + L1, ... for segments of the given
/// lengths.
std::vector<int32_t> prefixSums(const std::vector<int32_t> &Lengths);

} // namespace conformance

#endif // MLAFIX_TEST_CONFORMANCE_FIXUPRUN_H
