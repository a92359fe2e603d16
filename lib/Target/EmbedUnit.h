//===- EmbedUnit.h - C and C++ text for the kernels of a unit ---*- C++ -*-===//
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

/// Writes a C definition of `mlafix_unit_of_<unit>`, a variable of type
/// mlafix_embedded for `kernels`. If the macro <UNIT>_UNIT is defined, the
/// variable embeds the file that the macro names.
void writeEmbeddedUnit(llvm::raw_ostream &stream, llvm::StringRef unit,
                       llvm::ArrayRef<HostKernel> kernels);

/// Returns the text of the header through which C and C++ programs call the
/// kernels of a unit (docs/Embedding.md). `signatures` are the kernels'
/// manifest entries without "code", in the order of the unit. `unit` is the
/// name that the header uses for the unit. Returns an error if checkUnitName()
/// refuses this name.
llvm::Expected<std::string>
writeHeader(llvm::StringRef unit,
            llvm::ArrayRef<llvm::json::Object> signatures);

/// Returns the C source of a library with one TVM-FFI function
/// `__tvm_ffi_<name>` per kernel name (docs/Embedding.md). See writeHeader()
/// for the arguments and errors.
llvm::Expected<std::string>
writeTvmFfi(llvm::StringRef unit,
            llvm::ArrayRef<llvm::json::Object> signatures);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_EMBEDUNIT_H
