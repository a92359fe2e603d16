//===- Declaration.h - a kernel before names are bound ---------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_COMPILER_DECLARATION_H
#define MLAFIX_LIB_COMPILER_DECLARATION_H

#include "dialect/Mlafix.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mlafix {

/// What a host must know of a kernel before names are bound: Emit::Signature.
llvm::Expected<llvm::json::Object> declare(KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_DECLARATION_H
