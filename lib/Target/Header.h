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

/// Returns the text of the header through which C and C++ programs call the
/// kernels of a unit (docs/Embedding.md). `signatures` are the kernels'
/// manifest entries without "code", in the order of the unit. `unit` is the
/// name that the header uses for the unit. Returns an error if checkUnitName()
/// refuses this name.
llvm::Expected<std::string>
writeHeader(llvm::StringRef unit,
            llvm::ArrayRef<llvm::json::Object> signatures);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_HEADER_H
