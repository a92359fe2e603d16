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

/// Returns the base for which `name` stands: "e" or "2". It is the base that
/// `getBound` returns for the name, or else the default of the name. That may
/// be the name of another base, which is resolved in the same way. Returns ""
/// if a name has neither.
llvm::StringRef
resolveBase(KernelOp kernel, llvm::StringRef name,
            llvm::function_ref<llvm::StringRef(llvm::StringRef)> getBound);

} // namespace mlafix

#endif // MLAFIX_DIALECT_BASES_H
