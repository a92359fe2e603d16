//===- Attention.h - attention on a ragged batch, on the host ---*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The part of the example that does not use mlafix. It makes q, k and v of a
// ragged batch, and computes attention over a range of keys: in f32 as an
// attention kernel does, and in f64 over all keys as the reference.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_EXAMPLES_CHUNKED_PREFILL_ATTENTION_H
#define MLAFIX_EXAMPLES_CHUNKED_PREFILL_ATTENTION_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace prefill {

/// The shape of a prefill with DeepSeek's multi-head latent attention on one of
/// eight GPUs: 16 heads, 128 + 64 (rotary) elements of q and k, 128 of v.
constexpr int64_t Heads = 16, QkDim = 192, VDim = 128;

/// A request: the number of its tokens that are in the cache already, and the
/// number of new tokens.
struct Request {
  int64_t Context, New;
};

/// q, k and v of one request. Each is [rows, Heads, dim], with values rounded
/// to bf16.
struct Tensors {
  std::vector<float> Q, K, V;
};

/// A batch and its tensors. The new tokens of all requests lie one behind the
/// other: those of request r are the rows FirstRow[r] to FirstRow[r + 1] - 1.
struct Batch {
  std::vector<Request> Requests;
  std::vector<int32_t> FirstRow;
  std::vector<Tensors> Data;
  int64_t rows() const { return FirstRow.back(); }
};

Batch makeBatch(const std::vector<Request> &Requests, uint64_t Seed);

/// The attention of a row over some of its keys: the normalised output, and the
/// natural logarithm of the sum of the exponentials of its scores.
template <typename Real> struct State {
  Real Out[VDim];
  Real Lse;
};

/// Computes attention of new token \p Row of request \p R, head \p Head, over
/// the keys [Begin, End), of which there must be at least one. Scores are
/// scaled by 1/sqrt(QkDim).
template <typename Real>
State<Real> attend(const Batch &B, int64_t R, int64_t Row, int64_t Head,
                   int64_t Begin, int64_t End);

extern template State<float> attend(const Batch &, int64_t, int64_t, int64_t,
                                    int64_t, int64_t);
extern template State<double> attend(const Batch &, int64_t, int64_t, int64_t,
                                     int64_t, int64_t);

/// Runs Work(i) for i in [0, Count) on all processors. If this takes more than
/// two seconds, prints \p What and the percentage that is done.
void forAll(const std::string &What, int64_t Count,
            const std::function<void(int64_t)> &Work);

/// Rounds to bf16, ties to even, and returns the bits; fromBf16 converts back.
uint16_t toBf16(float Value);
float fromBf16(uint16_t Bits);

} // namespace prefill

#endif // MLAFIX_EXAMPLES_CHUNKED_PREFILL_ATTENTION_H
