//===- pull.cu - A hand-written merge over ranks --------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What somebody who knows CUDA writes for one shape, for distributed.py, which
// compiles it with NVRTC: one launch that pulls the rows of all ranks, merges
// them in f32 and writes, with flags at both ends. RANKS, HEADS (of a row of
// tokens that this rank merges), ALL_HEADS and DIM are macros.
//
// `table` has the addresses of the ranks' rows [tokens, ALL_HEADS, DIM] bf16
// and lses [tokens, ALL_HEADS] f32, both from this rank's first head on, and of
// their flags: u64s, 0: the calls that are complete, 1: blocks that are done,
// 32 + r: the last call that rank r has come to, 64 + r: has read in.
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

/// Tells all ranks that this one is at `call` in the flags from `at` on, if
/// `tells`, and waits until all are.
__device__ void meet(const u64 *table, int rank, int at, u64 call, bool tells) {
  if (threadIdx.x >= RANKS)
    return;
  if (tells)
    release(reinterpret_cast<u64 *>(table[2 * RANKS + threadIdx.x]) + at + rank,
            call);
  u64 *own = reinterpret_cast<u64 *>(table[2 * RANKS + rank]);
  while (acquire(own + at + threadIdx.x) < call) {
  }
}

__device__ void merge(uint4 *out, float *outLse, const uint4 *const *payloads,
                      const float *const *lses, bool isFirstLane) {
  uint4 packs[RANKS];
  float lse[RANKS], largest = -__int_as_float(0x7f800000);
#pragma unroll
  for (int r = 0; r < RANKS; ++r) {
    packs[r] = *payloads[r];
    lse[r] = *lses[r];
  }
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

extern "C" __global__ void __launch_bounds__(threads, 8)
    pull_merge(uint4 *out, float *outLse, const u64 *table, int rows,
               int rank) {
  u64 *own = reinterpret_cast<u64 *>(table[2 * RANKS + rank]);
  u64 call = *reinterpret_cast<volatile u64 *>(own) + 1;
  int row = blockIdx.x * rowsPerBlock + threadIdx.x / lanes;
  int lane = threadIdx.x % lanes;
  const uint4 *payloads[RANKS];
  const float *lses[RANKS];
#pragma unroll
  for (int r = 0; r < RANKS; ++r) {
    long long at = (long long)(row / HEADS) * ALL_HEADS + row % HEADS;
    payloads[r] = reinterpret_cast<const uint4 *>(table[r]) + at * lanes + lane;
    lses[r] = reinterpret_cast<const float *>(table[RANKS + r]) + at;
  }
  meet(table, rank, 32, call, blockIdx.x == 0);
  __syncthreads();
  if (row < rows)
    merge(out + (long long)row * lanes + lane, outLse + row, payloads, lses,
          lane == 0);
  __syncthreads();
  if (threadIdx.x >= 32)
    return;
  unsigned before = 0;
  if (threadIdx.x == 0) {
    __threadfence();
    before = unsigned(atomicAdd(own + 1, 1ull));
    __threadfence();
  }
  if (__shfl_sync(~0u, before, 0) + 1 != gridDim.x)
    return;
  meet(table, rank, 64, call, true);
  __syncwarp();
  if (threadIdx.x == 0) {
    own[1] = 0;
    *reinterpret_cast<volatile u64 *>(own) = call;
  }
}
