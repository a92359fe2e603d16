//===- merge_roof.cu - merge_attn_states against the stream roof ----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Usage: merge_roof UNIT [--device=N] [--rounds=R] [--csv=FILE]
//
// How close merge_attn_states (bf16, H = D = 128) comes to what this GPU can
// move: a kernel that reads two streams and writes one, the same number of
// bytes, in the best of twelve shapes measured in the same run.
//
//  - Every measurement is a replay of a CUDA graph of many launches; launches
//    rotate through buffers that together exceed four times the L2 cache.
//  - Inputs are random and not zero. The merge is checked against f64 before
//    anything is timed.
//  - Roof and merge take turns, round by round; the median over the rounds is
//    reported, and the spread from the 10th to the 90th percentile.
//
//===----------------------------------------------------------------------===//

#include "mlafix/runtime.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr int64_t H = 128, D = 128;

void checkCuda(cudaError_t Result, const char *Call) {
  if (Result == cudaSuccess)
    return;
  std::fprintf(stderr, "merge_roof: %s: %s\n", Call,
               cudaGetErrorString(Result));
  std::exit(1);
}
#define CUDA(CALL) checkCuda(CALL, #CALL)

//===----------------------------------------------------------------------===//
// The roof: as little as a kernel can do with these bytes
//===----------------------------------------------------------------------===//

/// C = A ^ B in accesses of 16 bytes, Unroll of them a thread, a block's
/// accesses side by side. Loads first.
template <int Unroll>
__global__ void twoReadsOneWrite(const uint4 *A, const uint4 *B, uint4 *C,
                                 int64_t Count) {
  int64_t First = int64_t(blockIdx.x) * blockDim.x * Unroll + threadIdx.x;
  uint4 X[Unroll], Y[Unroll];
#pragma unroll
  for (int I = 0; I < Unroll; ++I) {
    int64_t At = First + I * blockDim.x;
    if (At < Count) {
      X[I] = A[At];
      Y[I] = B[At];
    }
  }
#pragma unroll
  for (int I = 0; I < Unroll; ++I) {
    int64_t At = First + I * blockDim.x;
    if (At < Count)
      C[At] = make_uint4(X[I].x ^ Y[I].x, X[I].y ^ Y[I].y, X[I].z ^ Y[I].z,
                         X[I].w ^ Y[I].w);
  }
}

template <int Unroll> __global__ void fill(uint4 *C, int64_t Count, uint32_t V) {
  int64_t First = int64_t(blockIdx.x) * blockDim.x * Unroll + threadIdx.x;
#pragma unroll
  for (int I = 0; I < Unroll; ++I) {
    int64_t At = First + I * blockDim.x;
    if (At < Count)
      C[At] = make_uint4(V, V, V, V);
  }
}

struct Shape {
  int Unroll, Block;
};
const Shape Shapes[] = {{1, 128}, {1, 256}, {1, 512}, {1, 1024},
                        {2, 128}, {2, 256}, {2, 512}, {2, 1024},
                        {4, 128}, {4, 256}, {4, 512}, {4, 1024}};

unsigned blocks(Shape S, int64_t Count) {
  int64_t PerBlock = int64_t(S.Unroll) * S.Block;
  return unsigned((Count + PerBlock - 1) / PerBlock);
}

void launchRoof(Shape S, const void *A, const void *B, void *C, int64_t Bytes,
                cudaStream_t Stream) {
  auto *X = static_cast<const uint4 *>(A);
  auto *Y = static_cast<const uint4 *>(B);
  auto *Z = static_cast<uint4 *>(C);
  int64_t Count = Bytes / 16;
  unsigned Grid = blocks(S, Count);
  if (S.Unroll == 1)
    twoReadsOneWrite<1><<<Grid, S.Block, 0, Stream>>>(X, Y, Z, Count);
  else if (S.Unroll == 2)
    twoReadsOneWrite<2><<<Grid, S.Block, 0, Stream>>>(X, Y, Z, Count);
  else
    twoReadsOneWrite<4><<<Grid, S.Block, 0, Stream>>>(X, Y, Z, Count);
}

void launchFill(Shape S, void *C, int64_t Bytes, cudaStream_t Stream) {
  auto *Z = static_cast<uint4 *>(C);
  int64_t Count = Bytes / 16;
  unsigned Grid = blocks(S, Count);
  if (S.Unroll == 1)
    fill<1><<<Grid, S.Block, 0, Stream>>>(Z, Count, 0);
  else if (S.Unroll == 2)
    fill<2><<<Grid, S.Block, 0, Stream>>>(Z, Count, 0);
  else
    fill<4><<<Grid, S.Block, 0, Stream>>>(Z, Count, 0);
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

__device__ uint32_t mix(uint32_t V) {
  V = (V ^ (V >> 16)) * 0x7feb352du;
  V = (V ^ (V >> 15)) * 0x846ca68bu;
  return V ^ (V >> 16);
}

/// bf16 of magnitude 0.25 to 4, any sign.
__global__ void randomBf16(uint16_t *To, int64_t Count, uint32_t Seed) {
  for (int64_t I = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; I < Count;
       I += int64_t(gridDim.x) * blockDim.x) {
    uint32_t Bits = mix(uint32_t(I) ^ mix(Seed + uint32_t(I >> 32)));
    To[I] = uint16_t((Bits & 0x807f) | ((125 + (Bits >> 20) % 4) << 7));
  }
}

/// f32 from -3 to 3.
__global__ void randomLse(float *To, int64_t Count, uint32_t Seed) {
  for (int64_t I = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; I < Count;
       I += int64_t(gridDim.x) * blockDim.x)
    To[I] = float(mix(uint32_t(I) ^ mix(Seed))) * (6.0f / 4294967296.0f) - 3;
}

/// The six tensors of one merge, in three allocations of payload + lse, so that
/// the roof streams over exactly the bytes of the merge.
struct Buffers {
  char *Side[3]; // prefix, suffix, out; each n x H x D bf16, then H x n f32
  int64_t N;
  int64_t payloadBytes() const { return N * H * D * 2; }
  int64_t bytes() const { return payloadBytes() + N * H * 4; }
  float *lse(int S) const {
    return reinterpret_cast<float *>(Side[S] + payloadBytes());
  }
};

Buffers makeBuffers(int64_t N, uint32_t Seed) {
  Buffers B;
  B.N = N;
  for (int S = 0; S < 3; ++S) {
    CUDA(cudaMalloc(&B.Side[S], B.bytes()));
    randomBf16<<<1024, 256>>>(reinterpret_cast<uint16_t *>(B.Side[S]),
                              N * H * D, Seed * 8 + S);
    randomLse<<<64, 256>>>(B.lse(S), N * H, Seed * 8 + 4 + S);
  }
  CUDA(cudaDeviceSynchronize());
  return B;
}

mlafix::Bound bindMerge(const mlafix::Kernel &Merge, const Buffers &B,
                        mlafix_device Device) {
  auto Payload = [&](int S) {
    return mlafix::Tensor::contiguous(B.Side[S], MLAFIX_BF16, {B.N, H, D},
                                      Device);
  };
  auto Lse = [&](int S) {
    return mlafix::Tensor::contiguous(B.lse(S), MLAFIX_F32, {H, B.N}, Device);
  };
  return Merge.bind({Payload(2), Lse(2), Payload(0), Lse(0), Payload(1),
                     Lse(1), B.N},
                    Device);
}

//===----------------------------------------------------------------------===//
// Check, capture, time
//===----------------------------------------------------------------------===//

double fromBf16(uint16_t Bits) {
  uint32_t Wide = uint32_t(Bits) << 16;
  float Value;
  std::memcpy(&Value, &Wide, 4);
  return Value;
}

/// 512 rows of out against f64, to 1 ulp of bf16.
bool resultIsRight(const Buffers &B) {
  std::vector<std::vector<char>> Host(3, std::vector<char>(B.bytes()));
  for (int S = 0; S < 3; ++S)
    CUDA(cudaMemcpy(Host[S].data(), B.Side[S], B.bytes(),
                    cudaMemcpyDeviceToHost));
  auto Lse = [&](int S, int64_t Head, int64_t T) {
    float Value;
    std::memcpy(&Value,
                &Host[S][B.payloadBytes() + (Head * B.N + T) * 4], 4);
    return double(Value);
  };
  auto Payload = [&](int S, int64_t Row, int64_t I) {
    uint16_t Bits;
    std::memcpy(&Bits, &Host[S][(Row * D + I) * 2], 2);
    return fromBf16(Bits);
  };
  int64_t Rows = B.N * H, Step = std::max<int64_t>(1, Rows / 512);
  for (int64_t Row = 0; Row < Rows; Row += Step) {
    int64_t T = Row / H, Head = Row % H;
    double P = std::exp(Lse(0, Head, T)), S = std::exp(Lse(1, Head, T));
    if (std::fabs(Lse(2, Head, T) - std::log(P + S)) > 4e-6)
      return false;
    for (int64_t I = 0; I < D; ++I) {
      double A = Payload(0, Row, I), C = Payload(1, Row, I);
      double Expected = (P * A + S * C) / (P + S);
      double Size = (P * std::fabs(A) + S * std::fabs(C)) / (P + S);
      if (!(std::fabs(Payload(2, Row, I) - Expected) <=
            std::fabs(Expected) * 0x1p-7 + 4e-6 * Size))
        return false;
    }
  }
  return true;
}

/// A graph of \p Launches launches; the i-th is made by Launch(i).
struct Replay {
  cudaGraphExec_t Graph = nullptr;
  int Launches;
  Replay(cudaStream_t Stream, int Launches,
         const std::function<void(int)> &Launch)
      : Launches(Launches) {
    cudaGraph_t Source;
    CUDA(cudaStreamBeginCapture(Stream, cudaStreamCaptureModeGlobal));
    for (int I = 0; I < Launches; ++I)
      Launch(I);
    CUDA(cudaStreamEndCapture(Stream, &Source));
    CUDA(cudaGraphInstantiate(&Graph, Source, 0));
    CUDA(cudaGraphDestroy(Source));
    CUDA(cudaGraphUpload(Graph, Stream));
  }
  Replay(const Replay &) = delete;
  ~Replay() { cudaGraphExecDestroy(Graph); }

  /// Microseconds a launch.
  double time(cudaStream_t Stream, cudaEvent_t Begin, cudaEvent_t End) const {
    CUDA(cudaEventRecord(Begin, Stream));
    CUDA(cudaGraphLaunch(Graph, Stream));
    CUDA(cudaEventRecord(End, Stream));
    CUDA(cudaEventSynchronize(End));
    float Milliseconds;
    CUDA(cudaEventElapsedTime(&Milliseconds, Begin, End));
    return 1e3 * Milliseconds / Launches;
  }
};

struct Summary {
  double Low, Median, High;
};

Summary summarize(std::vector<double> Times) {
  std::sort(Times.begin(), Times.end());
  auto At = [&](double Part) { return Times[size_t(Part * (Times.size() - 1))]; };
  return {At(0.1), At(0.5), At(0.9)};
}

struct Options {
  std::string Unit, Csv;
  int Device = 0, Rounds = 40;
};

int run(const Options &Opts) {
  CUDA(cudaSetDevice(Opts.Device));
  cudaDeviceProp Properties;
  CUDA(cudaGetDeviceProperties(&Properties, Opts.Device));
  cudaStream_t Stream;
  CUDA(cudaStreamCreateWithFlags(&Stream, cudaStreamNonBlocking));
  cudaEvent_t Begin, End;
  CUDA(cudaEventCreate(&Begin));
  CUDA(cudaEventCreate(&End));
  mlafix_device Device = mlafix::cuda(Opts.Device);
  mlafix::Unit Unit = mlafix::Unit::load(Opts.Unit);
  mlafix::Kernel Merge = Unit.kernel("merge_attn_states", "H=128,D=128,T=bf16");
  mlafix_code_info Code = Merge.code(Device);
  std::printf("%s, merge_attn_states bf16 H = D = 128, %s %s, %d rounds\n",
              Properties.name, Code.target, Code.format, Opts.Rounds);
  std::printf("%6s | %-28s | %-28s | %-28s | %-20s | %s\n", "n",
              "roof 2R1W: us, spread, GB/s", "merge: us, spread, GB/s",
              "in a dependent chain: us", "fill: us, GB/s", "% of roof");
  FILE *Csv = Opts.Csv.empty() ? nullptr : std::fopen(Opts.Csv.c_str(), "w");
  if (Csv)
    std::fprintf(Csv, "n,what,us_p10,us_median,us_p90,bytes\n");

  for (int64_t N : {16, 64, 256, 1024, 8192}) {
    int64_t BytesAll = 3 * Buffers{{}, N}.bytes();
    int64_t Sets =
        std::max<int64_t>(2, 4 * int64_t(Properties.l2CacheSize) / BytesAll + 1);
    std::vector<Buffers> All;
    std::vector<mlafix::Bound> Bounds;
    for (int64_t I = 0; I < Sets; ++I) {
      All.push_back(makeBuffers(N, uint32_t(I)));
      Bounds.push_back(bindMerge(Merge, All.back(), Device));
    }
    CUDA(cudaMemset(All[0].Side[2], 0xff, All[0].bytes()));
    Bounds[0].launch(Stream);
    CUDA(cudaStreamSynchronize(Stream));
    if (!resultIsRight(All[0])) {
      std::fprintf(stderr, "merge_roof: the merge of %d tokens is wrong\n",
                   int(N));
      return 1;
    }
    int Launches = int((std::max<int64_t>(Sets, 8) + Sets - 1) / Sets * Sets);
    auto Of = [&](int I) -> const Buffers & { return All[I % Sets]; };

    auto Best = [&](const std::function<void(Shape, int)> &Launch) {
      Shape Result = Shapes[0];
      double Fastest = 1e30;
      for (Shape S : Shapes) {
        Replay R(Stream, Launches, [&](int I) { Launch(S, I); });
        std::vector<double> Times;
        for (int I = 0; I < 7; ++I)
          Times.push_back(R.time(Stream, Begin, End));
        double Median = summarize(Times).Median;
        if (Median < Fastest) {
          Fastest = Median;
          Result = S;
        }
      }
      return Result;
    };
    auto Roof = [&](Shape S, int I) {
      const Buffers &B = Of(I);
      launchRoof(S, B.Side[0], B.Side[1], B.Side[2], B.bytes(), Stream);
    };
    auto Fill = [&](Shape S, int I) {
      launchFill(S, Of(I).Side[2], Of(I).bytes(), Stream);
    };
    // The roof writes over `out`, the merge's inputs stay as they are.
    Shape RoofShape = Best(Roof), FillShape = Best(Fill);
    bool Dependent = Bounds[0].info().dependent != 0;
    Replay RoofGraph(Stream, Launches, [&](int I) { Roof(RoofShape, I); });
    Replay FillGraph(Stream, Launches, [&](int I) { Fill(FillShape, I); });
    Replay MergeGraph(Stream, Launches, [&](int I) {
      Bounds[I % Sets].launch(Stream, MLAFIX_LAUNCH_NO_DEPENDENT);
    });
    Replay ChainGraph(Stream, Launches,
                      [&](int I) { Bounds[I % Sets].launch(Stream); });
    struct {
      const char *Name;
      Replay *Graph;
      std::vector<double> Times;
    } Runs[] = {{"roof", &RoofGraph, {}},
                {"merge", &MergeGraph, {}},
                {"chain", &ChainGraph, {}},
                {"fill", &FillGraph, {}}};
    for (int Round = -3; Round < Opts.Rounds; ++Round)
      for (auto &Run : Runs) {
        double Time = Run.Graph->time(Stream, Begin, End);
        if (Round >= 0)
          Run.Times.push_back(Time);
      }
    Summary R[4];
    for (int I = 0; I < 4; ++I) {
      R[I] = summarize(Runs[I].Times);
      if (Csv)
        std::fprintf(Csv, "%d,%s,%.4f,%.4f,%.4f,%lld\n", int(N), Runs[I].Name,
                     R[I].Low, R[I].Median, R[I].High,
                     (long long)(I == 3 ? BytesAll / 3 : BytesAll));
    }
    auto Speed = [&](double Microseconds, int64_t Bytes) {
      return double(Bytes) / Microseconds * 1e-3;
    };
    std::printf("%6d | %8.2f [%.2f-%.2f] %5.0f | %8.2f [%.2f-%.2f] %5.0f | ",
                int(N), R[0].Median, R[0].Low, R[0].High,
                Speed(R[0].Median, BytesAll), R[1].Median, R[1].Low, R[1].High,
                Speed(R[1].Median, BytesAll));
    if (Dependent)
      std::printf("%8.2f [%.2f-%.2f] %5.0f | ", R[2].Median, R[2].Low,
                  R[2].High, Speed(R[2].Median, BytesAll));
    else
      std::printf("%-28s | ", "code has no dependent launch");
    std::printf("%8.2f %8.0f | %.1f%%\n", R[3].Median,
                Speed(R[3].Median, BytesAll / 3),
                100 * R[0].Median / R[1].Median);
    std::fflush(stdout);
    Bounds.clear();
    for (Buffers &B : All)
      for (char *Side : B.Side)
        CUDA(cudaFree(Side));
  }
  if (Csv)
    std::fclose(Csv);
  return 0;
}

} // namespace

int main(int Argc, char **Argv) {
  Options Opts;
  for (int I = 1; I < Argc; ++I) {
    std::string Text = Argv[I];
    if (Text.rfind("--device=", 0) == 0) {
      Opts.Device = std::atoi(Text.c_str() + 9);
    } else if (Text.rfind("--rounds=", 0) == 0) {
      Opts.Rounds = std::max(1, std::atoi(Text.c_str() + 9));
    } else if (Text.rfind("--csv=", 0) == 0) {
      Opts.Csv = Text.substr(6);
    } else if (Text[0] != '-' && Opts.Unit.empty()) {
      Opts.Unit = Text;
    } else {
      std::fprintf(stderr,
                   "usage: merge_roof UNIT [--device=N] [--rounds=R] "
                   "[--csv=FILE], got '%s'\n",
                   Argv[I]);
      return 2;
    }
  }
  if (Opts.Unit.empty()) {
    std::fprintf(stderr, "merge_roof: expected a unit file\n");
    return 2;
  }
  try {
    return run(Opts);
  } catch (const std::exception &Error) {
    std::fprintf(stderr, "merge_roof: %s\n", Error.what());
    return 1;
  }
}
