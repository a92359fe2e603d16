//===- Bases.h - names of the bases of log-sum-exps -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_BASES_H
#define MLAFIX_DIALECT_BASES_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// Returns the base for which `name` stands: "e" or "2". A name stands for what
/// `getBound` returns for it or, if that is "", for the name's default. Either
/// may be the name of another base, which is resolved in the same way. Returns
/// "" if a name is reached that is neither bound nor has a default.
llvm::StringRef
resolveBase(KernelOp kernel, llvm::StringRef name,
            llvm::function_ref<llvm::StringRef(llvm::StringRef)> getBound);

} // namespace mlafix

#endif // MLAFIX_DIALECT_BASES_H
