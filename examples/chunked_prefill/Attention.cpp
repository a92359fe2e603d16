//===- Attention.cpp - attention on a ragged batch, on the host -----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Attention.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

using namespace prefill;

uint16_t prefill::toBf16(float Value) {
  uint32_t Bits;
  std::memcpy(&Bits, &Value, 4);
  if (std::isnan(Value))
    return uint16_t(Bits >> 16) | 0x40;
  return uint16_t((Bits + 0x7fff + (Bits >> 16 & 1)) >> 16);
}

float prefill::fromBf16(uint16_t Bits) {
  uint32_t Wide = uint32_t(Bits) << 16;
  float Value;
  std::memcpy(&Value, &Wide, 4);
  return Value;
}

Batch prefill::makeBatch(const std::vector<Request> &Requests, uint64_t Seed) {
  Batch B;
  B.Requests = Requests;
  B.FirstRow.push_back(0);
  std::mt19937_64 Engine(Seed);
  auto Fill = [&](std::vector<float> &To, int64_t Rows, int64_t Dim,
                  float Scale) {
    std::normal_distribution<float> Normal(0, Scale);
    To.resize(Rows * Heads * Dim);
    for (float &Value : To)
      Value = fromBf16(toBf16(Normal(Engine)));
  };
  for (const Request &R : Requests) {
    B.FirstRow.push_back(B.FirstRow.back() + int32_t(R.New));
    Tensors T;
    Fill(T.Q, R.New, QkDim, 1.5f);
    Fill(T.K, R.Context + R.New, QkDim, 1.5f);
    Fill(T.V, R.Context + R.New, VDim, 1.0f);
    B.Data.push_back(std::move(T));
  }
  return B;
}

namespace {

/// Computes a dot product with eight running sums, which compilers vectorise.
template <typename Real> Real dot(const float *A, const float *B, int64_t N) {
  Real Sums[8] = {};
  for (int64_t I = 0; I < N; I += 8)
    for (int64_t J = 0; J < 8; ++J)
      Sums[J] += Real(A[I + J]) * Real(B[I + J]);
  Real Total = 0;
  for (Real Sum : Sums)
    Total += Sum;
  return Total;
}

} // namespace

template <typename Real>
State<Real> prefill::attend(const Batch &B, int64_t R, int64_t Row,
                            int64_t Head, int64_t Begin, int64_t End) {
  static_assert(QkDim % 8 == 0, "dot takes eight elements at a time");
  const Tensors &T = B.Data[R];
  const float *Q = &T.Q[(Row * Heads + Head) * QkDim];
  const Real Scale = Real(1) / std::sqrt(Real(QkDim));
  std::vector<Real> Scores(End - Begin);
  Real Max = -INFINITY;
  for (int64_t Key = Begin; Key < End; ++Key) {
    Real Score =
        Scale * dot<Real>(Q, &T.K[(Key * Heads + Head) * QkDim], QkDim);
    Scores[Key - Begin] = Score;
    Max = std::max(Max, Score);
  }
  State<Real> Result = {};
  Real Sum = 0;
  for (int64_t Key = Begin; Key < End; ++Key) {
    Real Weight = std::exp(Scores[Key - Begin] - Max);
    Sum += Weight;
    const float *V = &T.V[(Key * Heads + Head) * VDim];
    for (int64_t I = 0; I < VDim; ++I)
      Result.Out[I] += Weight * Real(V[I]);
  }
  for (Real &Value : Result.Out)
    Value /= Sum;
  Result.Lse = Max + std::log(Sum);
  return Result;
}

template State<float> prefill::attend(const Batch &, int64_t, int64_t, int64_t,
                                      int64_t, int64_t);
template State<double> prefill::attend(const Batch &, int64_t, int64_t, int64_t,
                                       int64_t, int64_t);

void prefill::forAll(const std::string &What, int64_t Count,
                     const std::function<void(int64_t)> &Work) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point Start = Clock::now();
  std::atomic<int64_t> Next{0};
  std::atomic<bool> Shown{false};
  auto Run = [&](bool Reports) {
    Clock::time_point Last = Start;
    for (int64_t I; (I = Next++) < Count;) {
      Work(I);
      Clock::time_point Now = Clock::now();
      if (Reports && Now - Start > std::chrono::seconds(2) &&
          Now - Last > std::chrono::seconds(1)) {
        std::fprintf(stderr, "%s%s %d%%", Shown ? "," : What.c_str(),
                     Shown ? "" : ":", int(100 * I / Count));
        Shown = true;
        Last = Now;
      }
    }
  };
  std::vector<std::thread> Others;
  for (unsigned I = 1; I < std::thread::hardware_concurrency(); ++I)
    Others.emplace_back(Run, false);
  Run(true);
  for (std::thread &Other : Others)
    Other.join();
  if (Shown)
    std::fprintf(stderr, ", done\n");
}
