//===- ranks.cuh - Common parts of hand-written merges over ranks ---------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// This text is put before pull.cu or push.cu. The macros are RANKS, HEADS (the
// heads of a token that this rank merges), ALL_HEADS (all heads of a token),
// DIM, and STEP (the distance between the first rows that two successive ranks
// merge).
//
//===----------------------------------------------------------------------===//

typedef unsigned long long u64;

namespace {

constexpr int lanes = DIM / 8;
constexpr int threads = 256;
constexpr int rowsPerBlock = threads / lanes;
constexpr float log2e = 1.44269504088896340736f;
constexpr float ln2 = 0.69314718055994530942f;

__device__ u64 acquire(const u64 *flag) {
  u64 value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
               : "=l"(value)
               : "l"(flag)
               : "memory");
  return value;
}

__device__ void release(u64 *flag, u64 value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(value)
               : "memory");
}

__device__ float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ float high(unsigned word) {
  return __uint_as_float(word & 0xffff0000u);
}

__device__ unsigned narrow(float first, float second) {
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
}

/// Merges one pack of each rank, in the order of the ranks. The first lane of a
/// row also stores the lse.
__device__ void merge(uint4 *out, float *outLse, const uint4 (&packs)[RANKS],
                      const float (&lse)[RANKS], bool isFirstLane) {
  float largest = -__int_as_float(0x7f800000);
#pragma unroll
  for (int r = 0; r < RANKS; ++r)
    largest = fmaxf(largest, lse[r]);
  float sum = 0, values[8] = {};
#pragma unroll
  for (int r = 0; r < RANKS; ++r) {
    float weight = exp2f((lse[r] - largest) * log2e);
    sum += weight;
    const unsigned words[4] = {packs[r].x, packs[r].y, packs[r].z, packs[r].w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      values[2 * i] += weight * low(words[i]);
      values[2 * i + 1] += weight * high(words[i]);
    }
  }
  float scale = __frcp_rn(sum);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    values[i] *= scale;
  *out = make_uint4(narrow(values[0], values[1]), narrow(values[2], values[3]),
                    narrow(values[4], values[5]), narrow(values[6], values[7]));
  if (isFirstLane)
    *outLse = largest + __log2f(sum) * ln2;
}

} // namespace
