//===- pull.cu - A hand-written merge over ranks --------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Hand-written CUDA for one shape. distributed.py puts ranks.cuh before it and
// compiles it with NVRTC. One launch reads the rows of all ranks, merges them
// in f32 and writes the result. Ranks wait for each other at the beginning and
// at the end.
//
// `table` has, for each rank, the addresses of its rows [tokens, ALL_HEADS,
// DIM] bf16, its lses [tokens, ALL_HEADS] f32 (both from the first row that
// this rank merges), and its flags. The flags are u64 words:
//
//   0       the number of complete calls
//   1       the number of blocks that are done in this call
//   32 + r  the last call that rank r has begun
//   64 + r  the last call in which rank r has read all rows
//
//===----------------------------------------------------------------------===//

namespace {

/// Waits until all ranks have reached `call` in the flags from `at` on. If
/// `tells`, first sets this rank's flag on all ranks.
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
