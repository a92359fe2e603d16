//===- rivals.cu - Hand-written kernels to be measured against ------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Hand-written CUDA kernels for single shapes. Sizes are constants, a thread
// moves 16 bytes, and every load is issued before any arithmetic. The file is
// compiled to a cubin for `mlafix-bench --rivals` (README.md has the
// convention). A kernel has up to three forms:
//
//  - NAME              the plain form
//  - NAME_dependent    the same with programmatic dependent launch
//  - NAME_lse_first    reads the lse, decides, then reads the payload, as the
//                      merges of engines do
//
// The kernels obey the parts of the numerical contract that the benchmark
// checks (empty sides, thresholds). They work for their shape only.
//
//===----------------------------------------------------------------------===//

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

namespace {

constexpr float log2e = 1.44269504088896340736f;
constexpr float ln2 = 0.69314718055994530942f;

enum class Form { LoadsFirst, Dependent, LseFirst };

//===----------------------------------------------------------------------===//
// Packs of 16 bytes
//===----------------------------------------------------------------------===//

template <typename T> struct Pack {
  static constexpr int size = 16 / sizeof(T);
  static __device__ void unpack(uint4 bits, float *values) {
    const T *elements = reinterpret_cast<const T *>(&bits);
#pragma unroll
    for (int i = 0; i < size; ++i)
      values[i] = float(elements[i]);
  }
  static __device__ void store(T *to, const float *values, float) {
    uint4 bits;
    T *elements = reinterpret_cast<T *>(&bits);
#pragma unroll
    for (int i = 0; i < size; ++i)
      elements[i] = T(values[i]);
    *reinterpret_cast<uint4 *>(to) = bits;
  }
};

/// An fp8 result comes from a pack of eight bf16 elements, so it has 8 bytes.
template <> struct Pack<__nv_fp8_e4m3> {
  static __device__ void store(__nv_fp8_e4m3 *to, const float *values,
                               float inverseScale) {
    __nv_fp8x2_storage_t pairs[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      pairs[i] = __nv_cvt_float2_to_fp8x2(
          make_float2(values[2 * i] * inverseScale,
                      values[2 * i + 1] * inverseScale),
          __NV_SATFINITE, __NV_E4M3);
    *reinterpret_cast<uint2 *>(to) = *reinterpret_cast<uint2 *>(pairs);
  }
};

__device__ float exp2Approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ float log2Approx(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ void waitForPredecessor() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ float emptyAsMinusInfinity(float lse) {
  return lse == INFINITY ? -INFINITY : lse;
}

//===----------------------------------------------------------------------===//
// The merge of two
//===----------------------------------------------------------------------===//

template <typename T, typename Out, int H, int D, bool RowsFirst, Form How>
__device__ void merge(Out *out, float *outLse, const float *outScale,
                      const T *prefix, const float *prefixLse, const T *suffix,
                      const float *suffixLse, int64_t n, int64_t contextRows) {
  constexpr int size = Pack<T>::size, packs = D / size;
  uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t row = item / packs, pack = item % packs;
  uint32_t t = row / H, h = row % H;
  if (t >= n)
    return;
  int64_t at = int64_t(row) * D + pack * size;
  int64_t lseAt = RowsFirst ? int64_t(row) : int64_t(h) * n + t;
  if constexpr (How == Form::Dependent)
    waitForPredecessor();

  bool inContext = t < contextRows;
  uint4 a = {}, b = {};
  float p = -INFINITY, s;
  if constexpr (How == Form::LseFirst) {
    s = emptyAsMinusInfinity(suffixLse[lseAt]);
    if (inContext)
      p = emptyAsMinusInfinity(prefixLse[lseAt]);
    if (p == -INFINITY) {
      // The prefix is empty, so the suffix is copied.
      b = *reinterpret_cast<const uint4 *>(suffix + at);
    } else {
      a = *reinterpret_cast<const uint4 *>(prefix + at);
      b = *reinterpret_cast<const uint4 *>(suffix + at);
    }
  } else {
    b = *reinterpret_cast<const uint4 *>(suffix + at);
    if (inContext) {
      a = *reinterpret_cast<const uint4 *>(prefix + at);
      p = prefixLse[lseAt];
    }
    s = emptyAsMinusInfinity(suffixLse[lseAt]);
    p = emptyAsMinusInfinity(p);
  }

  float top = fmaxf(p, s), origin = top == -INFINITY ? 0 : top;
  float weightA = exp2Approx((p - origin) * log2e);
  float weightB = exp2Approx((s - origin) * log2e);
  float sum = weightA + weightB, inverse = sum > 0 ? reciprocal(sum) : 0;
  float x[size], y[size];
  Pack<T>::unpack(a, x);
  Pack<T>::unpack(b, y);
#pragma unroll
  for (int i = 0; i < size; ++i) {
    float fromA = weightA > 0 ? x[i] * (weightA * inverse) : 0;
    float fromB = weightB > 0 ? y[i] * (weightB * inverse) : 0;
    x[i] = fromA + fromB;
  }
  Pack<Out>::store(out + at, x, outScale ? 1 / *outScale : 1);
  // A merge in place must not replace the lse before all lanes have read it.
  __syncwarp(__activemask());
  if (pack == 0 && outLse)
    outLse[lseAt] = sum > 0 ? top + log2Approx(sum) * ln2 : -INFINITY;
}

//===----------------------------------------------------------------------===//
// The merge of K
//===----------------------------------------------------------------------===//

/// Addresses of the states of a row that lie in separate buffers.
template <typename T> struct List {
  const T *rows[8];
  const float *lses[8];
  __device__ const T *payload(int k, int64_t row, int, int D) const {
    return rows[k] + row * D;
  }
  __device__ float lse(int k, int64_t row, int) const { return lses[k][row]; }
};

/// Addresses of the states of a row in one tensor [n, K, H, D].
template <typename T, int K> struct Dense {
  const T *rows;
  const float *lses;
  __device__ int64_t index(int k, int64_t row, int H) const {
    return (row / H * K + k) * H + row % H;
  }
  __device__ const T *payload(int k, int64_t row, int H, int D) const {
    return rows + index(k, row, H) * D;
  }
  __device__ float lse(int k, int64_t row, int H) const {
    return lses[index(k, row, H)];
  }
};

template <typename T, int K, int H, int D, typename States>
__device__ void mergeMany(T *out, float *outLse, States states, int64_t n) {
  constexpr int size = Pack<T>::size, packs = D / size;
  uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t row = item / packs, pack = item % packs;
  if (row >= n * H)
    return;
  // The number of payloads that are loaded at a time.
  constexpr int chunk = K <= 8 ? K : 4;
  uint4 bits[chunk];
  if constexpr (chunk == K) {
#pragma unroll
    for (int k = 0; k < K; ++k)
      bits[k] = *reinterpret_cast<const uint4 *>(states.payload(k, row, H, D) +
                                                 pack * size);
  }
  float top = -INFINITY;
  float lses[chunk];
#pragma unroll 8
  for (int k = 0; k < K; ++k) {
    float lse = emptyAsMinusInfinity(states.lse(k, row, H));
    if constexpr (chunk == K)
      lses[k] = lse;
    top = fmaxf(top, lse);
  }
  float origin = top == -INFINITY ? 0 : top, sum = 0;
  float result[size] = {};
  for (int base = 0; base < K; base += chunk) {
    if constexpr (chunk != K) {
#pragma unroll
      for (int k = 0; k < chunk; ++k) {
        bits[k] = *reinterpret_cast<const uint4 *>(
            states.payload(base + k, row, H, D) + pack * size);
        lses[k] = emptyAsMinusInfinity(states.lse(base + k, row, H));
      }
    }
#pragma unroll
    for (int k = 0; k < chunk; ++k) {
      float weight = exp2Approx((lses[k] - origin) * log2e);
      sum += weight;
      float values[size];
      Pack<T>::unpack(bits[k], values);
#pragma unroll
      for (int i = 0; i < size; ++i)
        result[i] += weight > 0 ? weight * values[i] : 0;
    }
  }
  float inverse = sum > 0 ? reciprocal(sum) : 0;
#pragma unroll
  for (int i = 0; i < size; ++i)
    result[i] *= inverse;
  Pack<T>::store(out + int64_t(row) * D + pack * size, result, 1);
  if (pack == 0)
    outLse[row] = sum > 0 ? top + log2Approx(sum) * ln2 : -INFINITY;
}

//===----------------------------------------------------------------------===//
// The combine of split-KV partials: few rows, many f32 states
//===----------------------------------------------------------------------===//

/// Copies a float4 from global to shared memory without using a register.
__device__ void copyAsync(float4 *to, const float4 *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   uint32_t(__cvta_generic_to_shared(to))),
               "l"(from));
}
__device__ void commitCopies() { asm volatile("cp.async.commit_group;"); }
template <int Left> __device__ void waitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}

/// Rounds four sums to bf16 and stores them.
__device__ void storePack(__nv_bfloat16 *to, float4 sums) {
  __nv_bfloat162 pairs[2] = {__floats2bfloat162_rn(sums.x, sums.y),
                             __floats2bfloat162_rn(sums.z, sums.w)};
  *reinterpret_cast<uint2 *>(to) = *reinterpret_cast<uint2 *>(pairs);
}

__device__ void addWeighted(float4 &sums, float weight, float4 values) {
  // The payload of an empty state may be NaN.
  if (weight == 0)
    return;
  sums.x += weight * values.x;
  sums.y += weight * values.y;
  sums.z += weight * values.z;
  sums.w += weight * values.w;
}

/// The merged lse of a row, and the numbers from which `of` computes the weight
/// of a split.
struct RowWeights {
  float origin, inverse, lse;
  __device__ float of(float lse) const {
    return exp2Approx((lse - origin) * log2e) * inverse;
  }
};

template <int Lanes>
__device__ RowWeights findWeights(const float *lses, int64_t row,
                                  int64_t splits, int64_t numRows, int lane) {
  float top = -INFINITY, sum = 0;
  for (int64_t s = lane; s < splits; s += Lanes)
    top = fmaxf(top, emptyAsMinusInfinity(lses[s * numRows + row]));
#pragma unroll
  for (int step = Lanes / 2; step > 0; step /= 2)
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
  float origin = top == -INFINITY ? 0 : top;
  for (int64_t s = lane; s < splits; s += Lanes)
    sum += exp2Approx((emptyAsMinusInfinity(lses[s * numRows + row]) - origin) *
                      log2e);
#pragma unroll
  for (int step = Lanes / 2; step > 0; step /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, step);
  return {origin, sum > 0 ? reciprocal(sum) : 0,
          sum > 0 ? top + log2Approx(sum) * ln2 : -INFINITY};
}

/// Combines splits with a block for each tile of rows and columns. Partials are
/// copied through shared memory, several splits ahead. The weights are computed
/// while the first partials arrive. A thread reads only what it has copied
/// itself, so no thread waits for another.
template <int D, bool IsDependent>
__device__ void combineTile(__nv_bfloat16 *out, float *outLse,
                            const float *partials, const float *lses,
                            int64_t splits, int64_t numRows) {
  constexpr int threads = 128, columns = D < 128 ? D : 128;
  constexpr int packs = columns / 4, tile = threads / packs, stages = 8;
  constexpr int lanes = threads / tile, mostSplits = 128;
  __shared__ float4 ring[stages][threads];
  __shared__ float weights[mostSplits][tile];
  int local = threadIdx.x / packs, pack = threadIdx.x % packs;
  int64_t row = int64_t(blockIdx.x) * tile + local;
  int64_t known = row < numRows ? row : numRows - 1;
  int64_t at = known * D + blockIdx.y * columns + pack * 4;
  auto partial = [&](int64_t s) {
    return reinterpret_cast<const float4 *>(partials + s * numRows * D + at);
  };
  if constexpr (IsDependent)
    waitForPredecessor();
#pragma unroll
  for (int s = 0; s < stages - 1; ++s) {
    if (s < splits)
      copyAsync(&ring[s][threadIdx.x], partial(s));
    commitCopies();
  }
  RowWeights found =
      findWeights<lanes>(lses, known, splits, numRows, pack % lanes);
  for (int64_t s = pack; s < splits; s += lanes)
    weights[s][local] =
        found.of(emptyAsMinusInfinity(lses[s * numRows + known]));
  if (pack == 0 && blockIdx.y == 0 && row < numRows)
    outLse[row] = found.lse;
  __syncthreads();
  float4 sums = {};
  for (int64_t s = 0; s < splits; ++s) {
    waitForCopies<stages - 2>();
    float4 values = ring[s % stages][threadIdx.x];
    int64_t next = s + stages - 1;
    if (next < splits)
      copyAsync(&ring[next % stages][threadIdx.x], partial(next));
    commitCopies();
    addWeighted(sums, weights[s][local], values);
  }
  if (row < numRows)
    storePack(out + at, sums);
}

/// Combines splits with a block for each row. Its warps (parts of warps if rows
/// are short) share the splits, and their sums are added in shared memory.
template <int D, bool IsDependent>
__device__ void combineShared(__nv_bfloat16 *out, float *outLse,
                              const float *partials, const float *lses,
                              int64_t splits, int64_t numRows) {
  constexpr int threads = 256, packs = D / 4;
  constexpr int lanes = packs < 32 ? packs : 32, mine = packs / lanes;
  constexpr int workers = threads / lanes, ahead = mine > 2 ? 2 : 4;
  __shared__ float4 parts[workers][packs];
  int worker = threadIdx.x / lanes, lane = threadIdx.x % lanes;
  int64_t row = blockIdx.x;
  if constexpr (IsDependent)
    waitForPredecessor();
  RowWeights found;
  float4 sums[mine] = {};
  for (int64_t first = worker; first < splits || first == worker;
       first += workers * ahead) {
    float4 values[ahead][mine] = {};
    float own[ahead];
#pragma unroll
    for (int k = 0; k < ahead; ++k) {
      int64_t s = first + k * workers;
      own[k] = -INFINITY;
      if (s >= splits)
        continue;
      own[k] = emptyAsMinusInfinity(lses[s * numRows + row]);
#pragma unroll
      for (int p = 0; p < mine; ++p)
        values[k][p] = reinterpret_cast<const float4 *>(
            partials + (s * numRows + row) * D)[p * lanes + lane];
    }
    // After the first loads, whose latency hides the latency of the lses.
    if (first == worker)
      found = findWeights<32>(lses, row, splits, numRows, threadIdx.x % 32);
#pragma unroll
    for (int k = 0; k < ahead; ++k)
#pragma unroll
      for (int p = 0; p < mine; ++p)
        addWeighted(sums[p], found.of(own[k]), values[k][p]);
  }
#pragma unroll
  for (int p = 0; p < mine; ++p)
    parts[worker][p * lanes + lane] = sums[p];
  __syncthreads();
  if (threadIdx.x < packs) {
    float4 whole = parts[0][threadIdx.x];
    int64_t live = splits < workers ? splits : workers;
    for (int w = 1; w < live; ++w)
      addWeighted(whole, 1, parts[w][threadIdx.x]);
    storePack(out + row * D + threadIdx.x * 4, whole);
  }
  if (threadIdx.x == 0)
    outLse[row] = found.lse;
}

//===----------------------------------------------------------------------===//
// The merge of segments of states
//===----------------------------------------------------------------------===//

/// Merges segments of states. Loads eight states at a time.
template <typename T, int H, int D, bool IsDependent>
__device__ void mergeRagged(T *out, float *outLse, const T *rows,
                            const float *lses, const int *indptr, int64_t n) {
  constexpr int size = Pack<T>::size, packs = D / size, ahead = 8;
  uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t row = item / packs, pack = item % packs, t = row / H, h = row % H;
  if (t >= n)
    return;
  if constexpr (IsDependent)
    waitForPredecessor();
  int64_t begin = indptr[t], end = indptr[t + 1];
  float top = -INFINITY, sum = 0;
  float result[size] = {};
  for (int64_t base = begin; base < end; base += ahead) {
    uint4 bits[ahead];
    float own[ahead];
#pragma unroll
    for (int k = 0; k < ahead; ++k) {
      own[k] = -INFINITY;
      bits[k] = {};
      if (base + k < end) {
        int64_t at = (base + k) * H + h;
        bits[k] = *reinterpret_cast<const uint4 *>(rows + at * D + pack * size);
        own[k] = emptyAsMinusInfinity(lses[at]);
      }
    }
    float before = top;
#pragma unroll
    for (int k = 0; k < ahead; ++k)
      top = fmaxf(top, own[k]);
    float origin = top == -INFINITY ? 0 : top;
    float scale = exp2Approx((before - origin) * log2e);
    sum *= scale;
#pragma unroll
    for (int i = 0; i < size; ++i)
      result[i] *= scale;
#pragma unroll
    for (int k = 0; k < ahead; ++k) {
      float weight = exp2Approx((own[k] - origin) * log2e);
      sum += weight;
      float values[size];
      Pack<T>::unpack(bits[k], values);
#pragma unroll
      for (int i = 0; i < size; ++i)
        result[i] += weight > 0 ? weight * values[i] : 0;
    }
  }
  float inverse = sum > 0 ? reciprocal(sum) : 0;
#pragma unroll
  for (int i = 0; i < size; ++i)
    result[i] *= inverse;
  Pack<T>::store(out + int64_t(row) * D + pack * size, result, 1);
  if (pack == 0)
    outLse[row] = sum > 0 ? top + log2Approx(sum) * ln2 : -INFINITY;
}

//===----------------------------------------------------------------------===//
// Rows of sequences without keys
//===----------------------------------------------------------------------===//

template <typename T, int H, int D>
__device__ void blankToken(T *out, float *lse, int64_t t, int64_t n) {
  uint4 zero = {};
  auto *row = reinterpret_cast<uint4 *>(out + t * H * D);
  for (int i = threadIdx.x; i < H * D * int(sizeof(T)) / 16; i += blockDim.x)
    row[i] = zero;
  for (int h = threadIdx.x; h < H; h += blockDim.x)
    lse[h * n + t] = -INFINITY;
}

/// Blanks rows with a block for each possible token of each sequence: as many
/// as the longest sequence has.
template <typename T, int H, int D>
__device__ void fixupGrid(T *out, float *lse, const int *kvLens,
                          const int *starts, int64_t n) {
  int b = blockIdx.y;
  if (kvLens[b] > 0)
    return;
  int64_t t = int64_t(starts[b]) + blockIdx.x;
  if (t < starts[b + 1])
    blankToken<T, H, D>(out, lse, t, n);
}

/// Blanks rows with a fixed number of blocks. Every block counts the dead
/// tokens (tokens of sequences without keys), a tile of sequences at a time,
/// and blanks every gridDim-th of them.
template <typename T, int H, int D>
__device__ void fixupScan(T *out, float *lse, const int *kvLens,
                          const int *starts, int64_t n, int64_t count) {
  constexpr int block = 256, each = 4, tile = block * each;
  __shared__ int firsts[tile]; // dead tokens of the tile before sequence i
  __shared__ int warpSums[block / 32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int64_t before = 0; // dead tokens of earlier tiles
  for (int64_t base = 0; base < count; base += tile) {
    int lengths[each], mine = 0;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      int64_t b = base + threadIdx.x * each + i;
      bool isDead = b < count && kvLens[b] <= 0;
      lengths[i] = isDead ? max(starts[b + 1] - starts[b], 0) : 0;
      mine += lengths[i];
    }
    int inclusive = mine;
    for (int step = 1; step < 32; step *= 2) {
      int other = __shfl_up_sync(0xffffffffu, inclusive, step);
      inclusive += lane >= step ? other : 0;
    }
    if (lane == 31)
      warpSums[warp] = inclusive;
    if (!__syncthreads_or(mine))
      continue;
    int offset = 0, total = 0;
    for (int w = 0; w < block / 32; ++w) {
      offset += w < warp ? warpSums[w] : 0;
      total += warpSums[w];
    }
    int first = offset + inclusive - mine;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      firsts[threadIdx.x * each + i] = first;
      first += lengths[i];
    }
    __syncthreads();
    for (int64_t r = (blockIdx.x + gridDim.x - before % gridDim.x) % gridDim.x;
         r < total; r += gridDim.x) {
      // The last sequence of the tile that begins at or before r.
      int low = 0, high = tile - 1;
      while (low < high) {
        int middle = (low + high + 1) / 2;
        if (firsts[middle] <= r)
          low = middle;
        else
          high = middle - 1;
      }
      blankToken<T, H, D>(out, lse, starts[base + low] + (r - firsts[low]), n);
    }
    before += total;
    __syncthreads();
  }
}

} // namespace

//===----------------------------------------------------------------------===//
// Kernels for single shapes, which CasesMerge.cpp and similar files name
//===----------------------------------------------------------------------===//

#define MERGE_FORM(NAME, T, H, D, ROWS_FIRST, HOW)                             \
  extern "C" __global__ void __launch_bounds__(512)                            \
      NAME(T *out, float *outLse, const T *prefix, const float *prefixLse,     \
           const T *suffix, const float *suffixLse, int64_t n,                 \
           int64_t contextRows) {                                              \
    merge<T, T, H, D, ROWS_FIRST, HOW>(out, outLse, nullptr, prefix,           \
                                       prefixLse, suffix, suffixLse, n,        \
                                       contextRows);                           \
  }
#define MERGE(NAME, T, H, D, ROWS_FIRST)                                       \
  MERGE_FORM(NAME, T, H, D, ROWS_FIRST, Form::LoadsFirst)                      \
  MERGE_FORM(NAME##_dependent, T, H, D, ROWS_FIRST, Form::Dependent)           \
  MERGE_FORM(NAME##_lse_first, T, H, D, ROWS_FIRST, Form::LseFirst)

MERGE(merge_bf16_h128_d128, __nv_bfloat16, 128, 128, false)
MERGE(merge_bf16_h16_d128, __nv_bfloat16, 16, 128, false)
MERGE(merge_bf16_h6_d128, __nv_bfloat16, 6, 128, false)
MERGE(merge_bf16_h32_d128, __nv_bfloat16, 32, 128, false)
MERGE(merge_bf16_h64_d128, __nv_bfloat16, 64, 128, false)
MERGE(merge_bf16_h96_d128, __nv_bfloat16, 96, 128, false)
MERGE(merge_bf16_h16_d64, __nv_bfloat16, 16, 64, false)
MERGE(merge_bf16_h16_d96, __nv_bfloat16, 16, 96, false)
MERGE(merge_bf16_h16_d192, __nv_bfloat16, 16, 192, false)
MERGE(merge_bf16_h16_d256, __nv_bfloat16, 16, 256, false)
MERGE(merge_bf16_h16_d512, __nv_bfloat16, 16, 512, false)
MERGE(merge_bf16_h96_d512, __nv_bfloat16, 96, 512, false)
MERGE(merge_bf16_h6_d512, __nv_bfloat16, 6, 512, false)
MERGE(merge_bf16_h128_d128_rows_first, __nv_bfloat16, 128, 128, true)
MERGE(merge_f16_h128_d128, __half, 128, 128, false)
MERGE(merge_f32_h128_d128, float, 128, 128, false)

#define MERGE_FP8_FORM(NAME, H, D, HOW)                                        \
  extern "C" __global__ void __launch_bounds__(512)                            \
      NAME(__nv_fp8_e4m3 *out, float *outLse, const float *outScale,           \
           const __nv_bfloat16 *prefix, const float *prefixLse,                \
           const __nv_bfloat16 *suffix, const float *suffixLse, int64_t n,     \
           int64_t contextRows) {                                              \
    merge<__nv_bfloat16, __nv_fp8_e4m3, H, D, false, HOW>(                     \
        out, outLse, outScale, prefix, prefixLse, suffix, suffixLse, n,        \
        contextRows);                                                          \
  }
#define MERGE_FP8(NAME, H, D)                                                  \
  MERGE_FP8_FORM(NAME, H, D, Form::LoadsFirst)                                 \
  MERGE_FP8_FORM(NAME##_dependent, H, D, Form::Dependent)                      \
  MERGE_FP8_FORM(NAME##_lse_first, H, D, Form::LseFirst)

MERGE_FP8(merge_fp8_bf16_h128_d128, 128, 128)
MERGE_FP8(merge_fp8_bf16_h64_d128, 64, 128)
MERGE_FP8(merge_fp8_bf16_h32_d128, 32, 128)

// The second bound asks for only one block per multiprocessor. Without it ptxas
// saves registers by moving the exponentials of one state between the loads of
// the next state.
extern "C" __global__ void __launch_bounds__(512, 1)
    merge_list_k4_bf16_h128_d128(__nv_bfloat16 *out, float *outLse,
                                 const __nv_bfloat16 *v0, const float *s0,
                                 const __nv_bfloat16 *v1, const float *s1,
                                 const __nv_bfloat16 *v2, const float *s2,
                                 const __nv_bfloat16 *v3, const float *s3,
                                 int64_t n) {
  List<__nv_bfloat16> states = {{v0, v1, v2, v3}, {s0, s1, s2, s3}};
  mergeMany<__nv_bfloat16, 4, 128, 128>(out, outLse, states, n);
}

extern "C" __global__ void __launch_bounds__(512, 1)
    merge_list_k8_bf16_h128_d128(
        __nv_bfloat16 *out, float *outLse, const __nv_bfloat16 *v0,
        const float *s0, const __nv_bfloat16 *v1, const float *s1,
        const __nv_bfloat16 *v2, const float *s2, const __nv_bfloat16 *v3,
        const float *s3, const __nv_bfloat16 *v4, const float *s4,
        const __nv_bfloat16 *v5, const float *s5, const __nv_bfloat16 *v6,
        const float *s6, const __nv_bfloat16 *v7, const float *s7, int64_t n) {
  List<__nv_bfloat16> states = {{v0, v1, v2, v3, v4, v5, v6, v7},
                                {s0, s1, s2, s3, s4, s5, s6, s7}};
  mergeMany<__nv_bfloat16, 8, 128, 128>(out, outLse, states, n);
}

#define MERGE_DENSE(NAME, K, H, D)                                             \
  extern "C" __global__ void __launch_bounds__(512, 1)                         \
      NAME(__nv_bfloat16 *out, float *outLse, const __nv_bfloat16 *rows,       \
           const float *lses, int64_t n) {                                     \
    mergeMany<__nv_bfloat16, K, H, D>(out, outLse,                             \
                                      Dense<__nv_bfloat16, K>{rows, lses}, n); \
  }

MERGE_DENSE(merge_dense_k4_bf16_h128_d128, 4, 128, 128)
MERGE_DENSE(merge_dense_k100_bf16_h32_d128, 100, 32, 128)

#define COMBINE_FORM(NAME, FUNCTION, THREADS, D, IS_DEPENDENT)                 \
  extern "C" __global__ void __launch_bounds__(THREADS)                        \
      NAME(__nv_bfloat16 *out, float *outLse, const float *partials,           \
           const float *lses, int64_t splits, int64_t numRows) {               \
    FUNCTION<D, IS_DEPENDENT>(out, outLse, partials, lses, splits, numRows);   \
  }
#define COMBINE(D)                                                             \
  COMBINE_FORM(combine_bf16_d##D, combineTile, 128, D, false)                  \
  COMBINE_FORM(combine_bf16_d##D##_dependent, combineTile, 128, D, true)       \
  COMBINE_FORM(combine_shared_bf16_d##D, combineShared, 256, D, false)         \
  COMBINE_FORM(combine_shared_bf16_d##D##_dependent, combineShared, 256, D,    \
               true)

COMBINE(64)
COMBINE(128)
COMBINE(512)

#define MERGE_RAGGED(NAME, IS_DEPENDENT)                                       \
  extern "C" __global__ void __launch_bounds__(512)                            \
      NAME(__half *out, float *outLse, const __half *rows, const float *lses,  \
           const int *indptr, int64_t n) {                                     \
    mergeRagged<__half, 64, 128, IS_DEPENDENT>(out, outLse, rows, lses,        \
                                               indptr, n);                     \
  }

MERGE_RAGGED(merge_ragged_f16_h64_d128, false)
MERGE_RAGGED(merge_ragged_f16_h64_d128_dependent, true)

extern "C" __global__ void __launch_bounds__(256)
    fixup_grid_bf16_h128_d128(__nv_bfloat16 *out, float *lse, const int *kvLens,
                              const int *starts, int64_t n, int64_t) {
  fixupGrid<__nv_bfloat16, 128, 128>(out, lse, kvLens, starts, n);
}

extern "C" __global__ void __launch_bounds__(256)
    fixup_scan_bf16_h128_d128(__nv_bfloat16 *out, float *lse, const int *kvLens,
                              const int *starts, int64_t n, int64_t count) {
  fixupScan<__nv_bfloat16, 128, 128>(out, lse, kvLens, starts, n, count);
}
