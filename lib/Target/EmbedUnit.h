//===- EmbedUnit.h - C and C++ text for the kernels of a unit ---*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_EMBEDUNIT_H
#define MLAFIX_LIB_TARGET_EMBEDUNIT_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace mlafix::target {

/// An argument of a kernel as hosts in C and C++ see it.
struct HostArg {
  std::string cName;
  /// The C++ type of a scalar, or of a tensor's elements: "int64_t" or
  /// "mlafix::bf16".
  std::string cType;
  std::string maker; ///< name of the function that converts the argument to a
                     ///< mlafix_arg
  std::string description; ///< dtype, shape and access, for the header
  unsigned rank = 0;       ///< number of dims of a tensor
  bool isTensor = false;
  bool isOptional = false;
  bool isWritten = false;
  /// True if a binding omits the argument. The C and C++ functions then have no
  /// parameter for it.
  bool isAbsent = false;
};

struct HostKernel {
  std::string cName;
  std::string name;     ///< the kernel's name, for a comment in the header
  std::string bindings; ///< for the same comment, such as "D=128, T=bf16"
  /// The kernel's name and bindings as C string literals, for
  /// mlafix_unit_find_kernel.
  std::string literal, bindingsLiteral;
  std::vector<HostArg> args;
};

/// Fails unless `unit` is a C identifier that does not clash with a name
/// of the runtime.
llvm::Error checkUnitName(llvm::StringRef unit);

/// Describes the kernels of a unit and gives them C names. A C name is the
/// kernel's name with the prefix "<unit>_", unless the name already has it. If
/// several specialisations have one name, the bindings in which they differ are
/// appended: "merge_D64".
std::vector<HostKernel>
describeKernels(llvm::StringRef unit,
                llvm::ArrayRef<llvm::json::Object> signatures);

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
