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

/// Returns a scalar (an f32 as its bits) or the lse of a state; nullopt if it
/// is unknown.
using GetNumber = llvm::function_ref<std::optional<int64_t>(mlir::Value)>;

/// The f32 with these bits.
inline float floatOf(int64_t bits) {
  return llvm::bit_cast<float>(static_cast<uint32_t>(bits));
}

/// The bits of the f32 nearest to `value`.
inline int64_t bitsOf(double value) {
  return llvm::bit_cast<uint32_t>(static_cast<float>(value));
}

/// The weights of a merge's states, in f64.
struct MergeWeights {
  /// The largest lse; -inf or +inf if all states are empty.
  double largest = -std::numeric_limits<double>::infinity();
  /// base^(lse - largest) of each state. Zero if all are empty; NaN if its lse
  /// is NaN.
  llvm::SmallVector<double> weights;
  bool isBaseE;
};

/// Returns nullopt if an lse is unknown.
std::optional<MergeWeights> weighStates(MergeOp merge, GetNumber get);

/// The lse, as f32 bits, of the state that `op` yields. The identity and every
/// empty state have -inf (N1, N2). Merges are computed in f64 and rounded;
/// kernels compute in f32 (N10). An unbound base is the kernel's default, or e.
/// Returns nullopt if `op` yields no state or depends on an unknown.
std::optional<int64_t> computeLse(mlir::Operation *op, GetNumber get);

/// The bits of -inf, the lse of an empty state.
inline constexpr int64_t kEmptyLse = 0xff800000;

/// The lse of a loaded state, as bits: both infinities become -inf (empty).
int64_t lseOfLoaded(int64_t bits);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_STATELSE_H
