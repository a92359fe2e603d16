//===- main.cpp - chunked prefill: the main job of mlafix -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Computes attention of a ragged batch of prefill requests in pieces, as vLLM
// and SGLang do: first over the cached context in chunks of ChunkTokens, then
// over the new tokens. Each chunk gives one piece (a partial state) of a row,
// and so do the new tokens. A request whose context ends before a chunk has no
// keys in that chunk. Attention does not write the request's rows of the
// chunk's output. In this program, these rows hold NaN and a stale lse.
//
//   for each chunk:   attention -> (chunk_out, chunk_lse)
//                     fixup_zero_kv_rows, only if some request has no keys
//                     merge_attn_states into the context's state, in place
//   new tokens:       attention -> (suffix_out, suffix_lse)
//                     merge_attn_states; rows past the last request that has a
//                     context copy the suffix
//
// The result is compared with attention over all keys at once, in f64.
//
// The bound on the error: every piece is rounded to bf16 before it is merged,
// and so is the result of every merge. A rounding has an error of at most one
// part in 2^8. A merge is a weighted mean, so the roundings of all pieces of a
// row together add at most 2^-8 m, where m is the sum of weight x |piece|. The
// rounding of each merge adds at most as much. A row of k pieces has k - 1
// merges:
//     |error| <= k 2^-8 m.
// This bound is at most k units in the last place of a bf16 of size m. If
// values cancel so that m < 2^-10, the f32 sums of attention have larger
// errors. Such elements are measured in units of a bf16 of size 2^-10.
//
//===----------------------------------------------------------------------===//

#include "Attention.h"

#include "examples/support/Device.h"
#include "mlafix/runtime.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

using namespace prefill;

namespace {

constexpr int64_t ChunkTokens = 1024;

/// Requests with a context come first, so that one threshold separates them
/// from the other requests.
const std::vector<Request> Requests = {{2300, 96}, {1100, 128}, {513, 1},
                                       {256, 200}, {90, 256},   {0, 180},
                                       {0, 1},     {0, 300}};

/// The contents of rows that no attention kernel writes: a payload of NaN (bf16
/// bits), and an lse as an earlier call might leave it.
constexpr uint16_t DeadPayload = 0x7fc0;
constexpr float StaleLse = 12345.0f;

struct Options {
  std::string Units = "units", Device = "auto", Cubin;
};

/// One piece's state on the host: out [n, H, D] bf16 and lse [H, n] f32.
struct HostState {
  std::vector<uint16_t> Out;
  std::vector<float> Lse;
  explicit HostState(int64_t Rows)
      : Out(Rows * Heads * VDim, DeadPayload), Lse(Heads * Rows, StaleLse) {}
};

/// One piece's state on the device, with the layout of HostState.
class DeviceState {
public:
  DeviceState(support::Device &On, int64_t Rows)
      : On(On), Rows(Rows), Out(On, Rows * Heads * VDim * 2),
        Lse(On, Heads * Rows * 4) {}
  void upload(const HostState &From) {
    On.upload(Out.data(), From.Out.data(), From.Out.size() * 2);
    On.upload(Lse.data(), From.Lse.data(), From.Lse.size() * 4);
  }
  void download(HostState &To) {
    On.download(To.Out.data(), Out.data(), To.Out.size() * 2);
    On.download(To.Lse.data(), Lse.data(), To.Lse.size() * 4);
  }
  /// Returns the first \p Count rows of the outputs. lse() returns the lses of
  /// these rows: the slice [:, 0:Count].
  mlafix::Tensor out(int64_t Count) const {
    return mlafix::Tensor::contiguous(Out.data(), MLAFIX_BF16,
                                      {Count, Heads, VDim}, On.handle());
  }
  mlafix::Tensor lse(int64_t Count) const {
    return mlafix::Tensor::strided(Lse.data(), MLAFIX_F32, {Heads, Count},
                                   {Rows, 1}, On.handle());
  }

private:
  support::Device &On;
  int64_t Rows;
  support::Memory Out, Lse;
};

/// The results of attention, which the merges read.
struct Pieces {
  /// The number of rows that belong to requests with a context.
  int64_t ContextRows = 0;
  /// The state of each chunk of context.
  std::vector<HostState> Chunks;
  /// The number of keys, as [chunk][request with a context].
  std::vector<std::vector<int32_t>> KvLens;
  /// The first row of each request with a context, then the end of the last.
  std::vector<int32_t> CuSeqlens;
  HostState Suffix;
  explicit Pieces(int64_t Rows) : Suffix(Rows) {}
};

void store(HostState &To, int64_t Rows, int64_t Row, int64_t Head,
           const State<float> &From) {
  for (int64_t I = 0; I < VDim; ++I)
    To.Out[(Row * Heads + Head) * VDim + I] = toBf16(From.Out[I]);
  To.Lse[Head * Rows + Row] = From.Lse;
}

/// A row of the batch as (request, position among its new tokens).
struct RowOf {
  int64_t Request, Position;
};

RowOf rowOf(const Batch &B, int64_t Row) {
  auto After = std::upper_bound(B.FirstRow.begin(), B.FirstRow.end(), Row);
  int64_t R = After - B.FirstRow.begin() - 1;
  return {R, Row - B.FirstRow[R]};
}

Pieces computePieces(const Batch &B) {
  int64_t Rows = B.rows(), Longest = 0;
  Pieces P(Rows);
  P.CuSeqlens.push_back(0);
  for (const Request &R : B.Requests)
    if (R.Context > 0) {
      P.ContextRows += R.New;
      P.CuSeqlens.push_back(int32_t(P.ContextRows));
      Longest = std::max(Longest, R.Context);
    }
  for (int64_t Begin = 0; Begin < Longest; Begin += ChunkTokens) {
    P.Chunks.emplace_back(Rows);
    P.KvLens.emplace_back();
    for (const Request &R : B.Requests)
      if (R.Context > 0)
        P.KvLens.back().push_back(
            int32_t(std::clamp(R.Context - Begin, int64_t(0), ChunkTokens)));
  }
  forAll("attention in pieces, f32", Rows, [&](int64_t Row) {
    RowOf At = rowOf(B, Row);
    int64_t Context = B.Requests[At.Request].Context;
    for (int64_t Head = 0; Head < Heads; ++Head) {
      for (size_t C = 0; C < P.Chunks.size(); ++C) {
        int64_t Begin = int64_t(C) * ChunkTokens;
        int64_t End = std::min(Begin + ChunkTokens, Context);
        if (Begin < End) // otherwise this row is not written
          store(P.Chunks[C], Rows, Row, Head,
                attend<float>(B, At.Request, At.Position, Head, Begin, End));
      }
      store(P.Suffix, Rows, Row, Head,
            attend<float>(B, At.Request, At.Position, Head, Context,
                          Context + At.Position + 1));
    }
  });
  return P;
}

/// A line of the printed table: a launch, its rows, and the time it took.
struct Step {
  std::string What;
  int64_t Rows, Dead;
  double Microseconds;
};

/// Runs the fixups and merges. Stores the result in \p Result, and returns a
/// line for each launch.
std::vector<Step> combine(support::Device &On, const Options &Opts,
                          const Pieces &P, HostState &Result) {
  mlafix::Unit MergeUnit =
      mlafix::Unit::load(Opts.Units + "/merge_attn_states.mlafix");
  mlafix::Unit FixupUnit =
      mlafix::Unit::load(Opts.Units + "/fixup_zero_kv_rows.mlafix");
  const char *Shape = "H=16,D=128,T=bf16";
  mlafix::Kernel Merge = MergeUnit.kernel("merge_attn_states", Shape);
  mlafix::Kernel Fixup = FixupUnit.kernel("fixup_zero_kv_rows", Shape);
  MergeUnit.prepare(On.handle());
  FixupUnit.prepare(On.handle());

  int64_t Rows = int64_t(P.Suffix.Out.size()) / (Heads * VDim);
  int64_t N = P.ContextRows;
  std::vector<DeviceState> Chunks;
  for (const HostState &Chunk : P.Chunks) {
    Chunks.emplace_back(On, Rows);
    Chunks.back().upload(Chunk);
  }
  DeviceState Suffix(On, Rows), Out(On, Rows);
  Suffix.upload(P.Suffix);
  Out.upload(HostState(Rows)); // undefined, as from torch.empty

  int64_t Segments = int64_t(P.CuSeqlens.size()) - 1;
  support::Memory CuSeqlens(On, P.CuSeqlens.size() * 4);
  On.upload(CuSeqlens.data(), P.CuSeqlens.data(), P.CuSeqlens.size() * 4);

  std::vector<Step> Steps;
  auto Launch = [&](const std::string &What, int64_t Covered, int64_t Dead,
                    const mlafix::Kernel &Kernel,
                    const std::vector<mlafix::Arg> &Args) {
    auto Start = std::chrono::steady_clock::now();
    Kernel.launch(Args, On.handle(), On.stream(), MLAFIX_LAUNCH_DEEP_CHECKS);
    On.synchronize();
    std::chrono::duration<double, std::micro> Took =
        std::chrono::steady_clock::now() - Start;
    Steps.push_back({What, Covered * Heads, Dead * Heads, Took.count()});
  };

  DeviceState &Context = Chunks[0];
  for (size_t C = 0; C < Chunks.size(); ++C) {
    std::string Chunk = "chunk " + std::to_string(C);
    int64_t Dead = 0;
    for (int64_t S = 0; S < Segments; ++S)
      if (P.KvLens[C][S] <= 0)
        Dead += P.CuSeqlens[S + 1] - P.CuSeqlens[S];
    // The host knows the lengths, so it launches the fixup only for a chunk in
    // which some rows have no keys.
    if (Dead > 0) {
      support::Memory KvLens(On, P.KvLens[C].size() * 4);
      On.upload(KvLens.data(), P.KvLens[C].data(), P.KvLens[C].size() * 4);
      Launch("fixup " + Chunk, N, Dead, Fixup,
             {Chunks[C].out(N), Chunks[C].lse(N),
              mlafix::Tensor::contiguous(KvLens.data(), MLAFIX_I32, {Segments},
                                         On.handle()),
              mlafix::Tensor::contiguous(CuSeqlens.data(), MLAFIX_I32,
                                         {Segments + 1}, On.handle())});
    }
    if (C > 0)
      Launch("merge " + Chunk + ", in place", N, Dead, Merge,
             {Context.out(N), Context.lse(N), Context.out(N), Context.lse(N),
              Chunks[C].out(N), Chunks[C].lse(N), N});
  }
  Launch("merge new tokens", Rows, 0, Merge,
         {Out.out(Rows), Out.lse(Rows), Context.out(Rows), Context.lse(Rows),
          Suffix.out(Rows), Suffix.lse(Rows), N});
  Out.download(Result);
  return Steps;
}

/// The largest errors in a comparison with f64. `Ulp` and `Bound` are the error
/// of the output and its bound in units in the last place of bf16. `Lse` is the
/// absolute error of the lse.
struct Errors {
  double Ulp = 0, Bound = 0, Lse = 0;
  bool Good = true;
};

Errors compare(const Batch &B, const Pieces &P, const HostState &Result) {
  int64_t Rows = B.rows();
  std::vector<Errors> PerRow(Rows);
  forAll("attention over all keys, f64", Rows, [&](int64_t Row) {
    RowOf At = rowOf(B, Row);
    int64_t Context = B.Requests[At.Request].Context;
    int64_t Keys = Context + At.Position + 1;
    Errors &E = PerRow[Row];
    for (int64_t Head = 0; Head < Heads; ++Head) {
      State<double> Whole =
          attend<double>(B, At.Request, At.Position, Head, 0, Keys);
      double Magnitude[VDim] = {};
      int64_t Count = 0;
      auto Add = [&](const HostState &Piece) {
        double Weight = std::exp(Piece.Lse[Head * Rows + Row] - Whole.Lse);
        for (int64_t I = 0; I < VDim; ++I)
          Magnitude[I] +=
              Weight *
              std::fabs(fromBf16(Piece.Out[(Row * Heads + Head) * VDim + I]));
        ++Count;
      };
      for (size_t C = 0; C < P.Chunks.size(); ++C)
        if (int64_t(C) * ChunkTokens < Context)
          Add(P.Chunks[C]);
      Add(P.Suffix);
      double Bound = double(Count);
      for (int64_t I = 0; I < VDim; ++I) {
        double Got = fromBf16(Result.Out[(Row * Heads + Head) * VDim + I]);
        int Exponent;
        std::frexp(std::max(Magnitude[I], 0x1p-10), &Exponent);
        double Ulp = std::ldexp(1.0, Exponent - 8);
        double Error = std::fabs(Got - Whole.Out[I]) / Ulp;
        // The bound covers only the roundings to bf16. Add 1% for the f32
        // arithmetic in the pieces and in the merges.
        E.Good = E.Good && Error <= 1.01 * Bound; // false if Error is NaN
        if (!(Error <= E.Ulp))
          E.Ulp = Error;
        E.Bound = std::max(E.Bound, Bound);
      }
      double LseError = std::fabs(Result.Lse[Head * Rows + Row] - Whole.Lse);
      E.Good = E.Good && LseError <= 1e-4;
      if (!(LseError <= E.Lse))
        E.Lse = LseError;
    }
  });
  Errors All;
  for (const Errors &E : PerRow) {
    All.Good = All.Good && E.Good;
    if (!(E.Ulp <= All.Ulp))
      All.Ulp = E.Ulp;
    if (!(E.Lse <= All.Lse))
      All.Lse = E.Lse;
    All.Bound = std::max(All.Bound, E.Bound);
  }
  return All;
}

int run(const Options &Opts) {
  std::string Name = Opts.Device;
  if (Name == "auto")
    Name = mlafix::cudaDeviceCount() > 0 ? "cuda:0" : "cpu";
  std::unique_ptr<support::Device> On = support::openDevice(Name);

  Batch B = makeBatch(Requests, 2026);
  int64_t WithContext = 0;
  for (const Request &R : B.Requests)
    WithContext += R.Context > 0;
  std::printf("chunked prefill: %zu requests (%d with context), %d new tokens, "
              "%d heads, q and k %d, v %d, bf16, chunks of %d\n",
              B.Requests.size(), int(WithContext), int(B.rows()), int(Heads),
              int(QkDim), int(VDim), int(ChunkTokens));
  Pieces P = computePieces(B);

  HostState Result(B.rows());
  combine(*On, Opts, P, Result); // warms up; the second run is timed
  std::vector<Step> Steps = combine(*On, Opts, P, Result);
  Errors E = compare(B, P, Result);

  std::printf("\n%-26s %8s %10s %10s\n", "launch", "rows", "dead rows", "us");
  for (const Step &S : Steps)
    std::printf("%-26s %8lld %10lld %10.1f\n", S.What.c_str(),
                static_cast<long long>(S.Rows), static_cast<long long>(S.Dead),
                S.Microseconds);
  mlafix_code_info Code =
      mlafix::Unit::load(Opts.Units + "/merge_attn_states.mlafix")
          .kernel("merge_attn_states", "H=16,D=128,T=bf16")
          .code(On->handle());
  std::string Model = On->isCuda() ? " (" + On->name() + ")" : "";
  std::printf("\ndevice      %s%s, %s code for %s\n", Name.c_str(),
              Model.c_str(), Code.format, Code.target);
  std::printf("max error   %.2f ulp of bf16, bound %.0f (a row of k pieces: k "
              "ulp); lse %.1e\n",
              E.Ulp, E.Bound, E.Lse);
  if (!Opts.Cubin.empty())
    std::printf("cubin       %s (sm_90)\n", Opts.Cubin.c_str());
  std::printf("result      %s\n", E.Good ? "agrees with attention over all "
                                           "keys in f64"
                                         : "WRONG: beyond the bound");
  return E.Good ? 0 : 1;
}

} // namespace

int main(int Argc, char **Argv) {
  Options Opts;
  for (int I = 1; I < Argc; ++I) {
    std::string Text = Argv[I];
    size_t Equals = Text.find('=');
    std::string Key = Text.substr(0, Equals);
    std::string Value =
        Equals == std::string::npos ? "" : Text.substr(Equals + 1);
    if (Key == "--units" && !Value.empty()) {
      Opts.Units = Value;
    } else if (Key == "--device" && !Value.empty()) {
      Opts.Device = Value;
    } else if (Key == "--cubin" && !Value.empty()) {
      Opts.Cubin = Value;
    } else {
      std::fprintf(stderr,
                   "chunked_prefill: expected --units=DIR, "
                   "--device=auto|cpu|cuda:N or --cubin=FILE, got '%s'\n",
                   Argv[I]);
      return 2;
    }
  }
  try {
    return run(Opts);
  } catch (const std::exception &Error) {
    std::fprintf(stderr, "chunked_prefill: %s\n", Error.what());
    return 1;
  }
}
