//===- Passes.h - passes from mlafix to mlafix ------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_PASSES_H
#define MLAFIX_TRANSFORMS_PASSES_H

#include "dialect/Mlafix.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlafix {

/// The metadata key under which the error about an unbound dim holds the dim's
/// name.
inline constexpr llvm::StringLiteral kUnboundDimKey = "mlafix.unbound_dim";

#define GEN_PASS_DECL
#include "lib/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lib/Transforms/Passes.h.inc"

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_PASSES_H
