//===- push.cu - A hand-written merge of rows that ranks send -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Hand-written CUDA for one shape, for distributed.py, which compiles it with
// NVRTC: one launch in which each rank stores its rows where they are merged,
// with a flag for each block, waits for those of the same block of the other
// ranks, merges them in f32 and writes. ranks.cuh comes before it.
//
// `rows` and `lses` are this rank's state, [tokens, ALL_HEADS, DIM] bf16 and
// [tokens, ALL_HEADS] f32. `table` has the addresses of the ranks' memory for
// what they are sent, in two halves: payloads [2, RANKS, total, DIM] bf16 and
// lses [2, RANKS, total] f32, and of their flags: u64s, 0: the calls that are
// complete, 1: blocks that are done, 32 + RANKS b + r: the last call for which
// block b of rank r has stored its rows.
//
// push_alone stores the same bytes, and does nothing else: the rate of the link
// for a launch of this size.
//
//===----------------------------------------------------------------------===//

namespace {

/// The last block makes the flags ready for the next call. All threads of a
/// block have read the number before.
__device__ void count(u64 *own, u64 call) {
  if (unsigned(atomicAdd(own + 1, 1ull)) + 1 != gridDim.x)
    return;
  own[1] = 0;
  *reinterpret_cast<volatile u64 *>(own) = call;
}

/// Once the block's threads have stored, tells the same block of the other
/// ranks, and waits for theirs.
__device__ void exchange(const u64 *table, int rank, u64 call) {
  u64 *own = reinterpret_cast<u64 *>(table[2 * RANKS + rank]);
  long long first = 32 + (long long)blockIdx.x * RANKS;
  __syncthreads();
  if (threadIdx.x < RANKS && int(threadIdx.x) != rank) {
    u64 *others = reinterpret_cast<u64 *>(table[2 * RANKS + threadIdx.x]);
    release(others + first + rank, call);
    while (acquire(own + first + threadIdx.x) < call) {
    }
  } else if (threadIdx.x == threads - 1) {
    count(own, call);
  }
  __syncthreads();
}

} // namespace

extern "C" __global__ void __launch_bounds__(threads, 8)
    push_merge(uint4 *out, float *outLse, const uint4 *rows, const float *lses,
               const u64 *table, int total, int rank) {
  u64 call =
      *reinterpret_cast<const volatile u64 *>(table[2 * RANKS + rank]) + 1;
  int row = blockIdx.x * rowsPerBlock + threadIdx.x / lanes;
  int lane = threadIdx.x % lanes;
  long long half = (long long)(call & 1) * RANKS;
  uint4 packs[RANKS];
  float lse[RANKS];
  if (row < total) {
    long long at = (long long)(row / HEADS) * ALL_HEADS + row % HEADS;
#pragma unroll
    for (int r = 0; r < RANKS; ++r) {
      packs[r] = rows[(at + r * STEP) * lanes + lane];
      lse[r] = lses[at + r * STEP];
    }
    long long to = (half + rank) * total + row;
#pragma unroll
    for (int r = 0; r < RANKS; ++r) {
      if (r == rank)
        continue;
      reinterpret_cast<uint4 *>(table[r])[to * lanes + lane] = packs[r];
      if (lane == 0)
        reinterpret_cast<float *>(table[RANKS + r])[to] = lse[r];
    }
  }
  exchange(table, rank, call);
  if (row < total) {
#pragma unroll
    for (int r = 0; r < RANKS; ++r) {
      if (r == rank)
        continue;
      long long from = (half + r) * total + row;
      packs[r] =
          reinterpret_cast<const uint4 *>(table[rank])[from * lanes + lane];
      lse[r] = reinterpret_cast<const float *>(table[RANKS + rank])[from];
    }
    merge(out + (long long)row * lanes + lane, outLse + row, packs, lse,
          lane == 0);
  }
}

extern "C" __global__ void __launch_bounds__(threads, 8)
    push_alone(const uint4 *rows, const float *lses, const u64 *table,
               int total, int rank) {
  int first = blockIdx.x * rowsPerBlock;
  int row = first + threadIdx.x / lanes, lane = threadIdx.x % lanes;
  auto source = [](int row) {
    return (long long)(row / HEADS) * ALL_HEADS + row % HEADS;
  };
#pragma unroll
  for (int r = 0; r < RANKS; ++r) {
    if (r == rank)
      continue;
    long long to = (long long)rank * total;
    if (row < total)
      reinterpret_cast<uint4 *>(table[r])[(to + row) * lanes + lane] =
          rows[(source(row) + r * STEP) * lanes + lane];
    int scalar = first + threadIdx.x;
    if (threadIdx.x < rowsPerBlock && scalar < total)
      reinterpret_cast<float *>(table[RANKS + r])[to + scalar] =
          lses[source(scalar) + r * STEP];
  }
}
