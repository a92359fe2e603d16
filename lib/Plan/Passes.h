//===- Passes.h - code versions and their plans -----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PLAN_PASSES_H
#define MLAFIX_PLAN_PASSES_H

#include "dialect/Mlafix.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlafix {
#define GEN_PASS_DECL
#include "lib/Plan/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "lib/Plan/Passes.h.inc"
} // namespace mlafix

#endif // MLAFIX_PLAN_PASSES_H
