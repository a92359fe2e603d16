//===- Header.h - writes typed headers --------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_HEADER_H
#define MLAFIX_LIB_TARGET_HEADER_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <string>

namespace mlafix::target {

/// The header through which C and C++ hosts call the kernels of a unit
/// (docs/Embedding.md). `signatures` are the manifest's entries without "code",
/// in the unit's order; `unit` is the program's name for the unit. Error: it is
/// not a C identifier.
llvm::Expected<std::string>
writeHeader(llvm::StringRef unit,
            llvm::ArrayRef<llvm::json::Object> signatures);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_HEADER_H
