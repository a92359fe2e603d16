//===- EmbedUnit.h - C text that holds a unit -------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_EMBEDUNIT_H
#define MLAFIX_LIB_TARGET_EMBEDUNIT_H

#include "lib/Target/HostKernel.h"
#include "llvm/Support/raw_ostream.h"

namespace mlafix::target {

/// Writes the definition of the variable `mlafix_unit_of_<unit>` (a
/// mlafix_embedded with `kernels`). It embeds the file named by the macro
/// <UNIT>_UNIT, if that is defined.
void writeEmbeddedUnit(llvm::raw_ostream &stream, llvm::StringRef unit,
                       llvm::ArrayRef<HostKernel> kernels);

/// The C source of a library with a TVM-FFI function `__tvm_ffi_<name>` per
/// kernel name (docs/Embedding.md). Arguments and errors as in writeHeader.
llvm::Expected<std::string>
writeTvmFfi(llvm::StringRef unit,
            llvm::ArrayRef<llvm::json::Object> signatures);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_EMBEDUNIT_H
