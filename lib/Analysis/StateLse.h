//===- StateLse.h - the lse of a state, on the host -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_STATELSE_H
#define MLAFIX_ANALYSIS_STATELSE_H

#include "dialect/Mlafix.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"

#include <limits>
#include <optional>

namespace mlafix {

/// Returns a scalar (an f32 as its bits) or the lse of a state. Returns nullopt
/// if it is unknown.
using GetNumber = llvm::function_ref<std::optional<int64_t>(mlir::Value)>;

/// Returns the f32 with these bits.
inline float floatOf(int64_t bits) {
  return llvm::bit_cast<float>(static_cast<uint32_t>(bits));
}

/// Returns the bits of the f32 nearest to `value`.
inline int64_t bitsOf(double value) {
  return llvm::bit_cast<uint32_t>(static_cast<float>(value));
}

/// The weights of the states of a merge, computed in f64.
struct MergeWeights {
  /// The largest lse. It is infinite if all states are empty.
  double largest = -std::numeric_limits<double>::infinity();
  /// The weight of each state, base^(lse - largest). It is 0 if all states are
  /// empty, and NaN if the lse is NaN.
  llvm::SmallVector<double> weights;
  bool isBaseE;
};

/// Computes the weights of a merge. Returns nullopt if an lse is unknown.
std::optional<MergeWeights> weighStates(MergeOp merge, GetNumber get);

/// Returns the lse, as f32 bits, of the state that `op` yields. The identity
/// and every empty state have -inf (N1, N2). Merges are computed in f64 and
/// rounded, although kernels compute in f32 (N10). If the base is not bound,
/// the kernel's default is used, or else e. Returns nullopt if `op` yields no
/// state or depends on an unknown.
std::optional<int64_t> computeLse(mlir::Operation *op, GetNumber get);

/// The f32 bits of -inf, the lse of an empty state.
inline constexpr int64_t kEmptyLse = 0xff800000;

/// Returns the lse of a loaded state, as f32 bits. Both infinities become -inf
/// (empty).
int64_t lseOfLoaded(int64_t bits);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_STATELSE_H
