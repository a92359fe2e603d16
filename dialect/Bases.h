//===- Bases.h - the bases of log-sum-exps that have names ------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_BASES_H
#define MLAFIX_DIALECT_BASES_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// The base, "e" or "2", that `name` stands for: the one that `getBound` gives
/// it, or that of its default, which may be another base. Returns "" if the
/// last base of this chain has no default.
llvm::StringRef
resolveBase(KernelOp kernel, llvm::StringRef name,
            llvm::function_ref<llvm::StringRef(llvm::StringRef)> getBound);

} // namespace mlafix

#endif // MLAFIX_DIALECT_BASES_H
