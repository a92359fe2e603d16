//===- push.cu - A hand-written merge of rows that ranks send -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Hand-written CUDA for one shape. distributed.py puts ranks.cuh before it and
// compiles it with NVRTC. In one launch, each block stores its rows in the
// memory of the ranks that merge them, and sets a flag there. It then waits for
// the flags of the same block of the other ranks, merges the rows in f32 and
// writes the result.
//
// `rows` and `lses` are this rank's state, [tokens, ALL_HEADS, DIM] bf16 and
// [tokens, ALL_HEADS] f32. `table` has, for each rank, the addresses of the
// memory to which other ranks store, in two halves: payloads [2, RANKS, total,
// DIM] bf16 and lses [2, RANKS, total] f32. It also has the address of each
// rank's flags, which are u64 words:
//
//   0                 the number of complete calls
//   1                 the number of blocks that are done in this call
//   32 + RANKS b + r  the last call for which block b of rank r stored its rows
//
// push_alone stores the same bytes and does nothing else. Its time shows the
// rate of the link for a launch of this size.
//
//===----------------------------------------------------------------------===//

namespace {

/// Counts a block as done. The last block prepares the flags for the next call.
/// All threads of a block have read the call's number before.
__device__ void count(u64 *own, u64 call) {
  if (unsigned(atomicAdd(own + 1, 1ull)) + 1 != gridDim.x)
    return;
  own[1] = 0;
  *reinterpret_cast<volatile u64 *>(own) = call;
}

/// Waits until the block's threads have stored their rows, and tells the same
/// block of the other ranks. Then waits until those blocks have stored theirs.
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
