//===- pull.cu - A hand-written merge over ranks --------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Hand-written CUDA for one shape, for distributed.py, which compiles it with
// NVRTC: one launch that pulls the rows of all ranks, merges them in f32 and
// writes, with flags at both ends. ranks.cuh comes before it.
//
// `table` has the addresses of the ranks' rows [tokens, ALL_HEADS, DIM] bf16
// and lses [tokens, ALL_HEADS] f32, both from this rank's first row on, and of
// their flags: u64s, 0: the calls that are complete, 1: blocks that are done,
// 32 + r: the last call that rank r has come to, 64 + r: has read in.
//
//===----------------------------------------------------------------------===//

namespace {

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
  if (row < rows) {
    uint4 packs[RANKS];
    float lse[RANKS];
#pragma unroll
    for (int r = 0; r < RANKS; ++r) {
      packs[r] = *payloads[r];
      lse[r] = *lses[r];
    }
    merge(out + (long long)row * lanes + lane, outLse + row, packs, lse,
          lane == 0);
  }
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
