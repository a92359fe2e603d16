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

#include <optional>

namespace mlafix {

/// A scalar (an f32 by its bits), or the lse of a state; none if it is unknown.
using GetNumber = llvm::function_ref<std::optional<int64_t>(mlir::Value)>;

/// The lse, as the bits of an f32, of the state that `op` makes of others or of
/// an lse: the identity's and each empty state's is -inf (N1, N2). A merge's is
/// computed in f64 and rounded; kernels compute it in f32 (N10). A base that is
/// not bound is the kernel's default for it, or e. None where `op` makes no
/// state, or one of what is unknown.
std::optional<int64_t> computeLse(mlir::Operation *op, GetNumber get);

/// The bits of -inf, the lse of an empty state.
inline constexpr int64_t kEmptyLse = 0xff800000;

/// The bits of a loaded lse as a state has it: both infinities are empty.
int64_t lseOfLoaded(int64_t bits);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_STATELSE_H
