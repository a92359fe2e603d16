//===- HostKernel.h - a kernel as hosts in C and C++ see it -----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_HOSTKERNEL_H
#define MLAFIX_LIB_TARGET_HOSTKERNEL_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace mlafix::target {

struct HostArg {
  std::string cName;
  /// C type of a scalar or of a tensor's elements: "int64_t", "mlafix::bf16".
  std::string cType;
  std::string maker;       ///< function that converts the argument to a
                           ///< mlafix_arg
  std::string description; ///< dtype, shape and access, for comments
  unsigned rank = 0;       ///< for tensors
  bool isTensor = false;
  bool isOptional = false;
  bool isWritten = false;
  bool isAbsent = false; ///< has no parameter: every call omits it
};

struct HostKernel {
  std::string cName;
  std::string name;     ///< for comments
  std::string bindings; ///< for comments: "D=128, T=bf16"
  /// String-literal forms of the kernel's name and of its bindings (for
  /// mlafix_unit_find_kernel).
  std::string literal, bindingsLiteral;
  std::vector<HostArg> args;
};

/// Fails unless `unit` is a C identifier that does not clash with the
/// runtime's.
llvm::Error checkUnitName(llvm::StringRef unit);

/// Describes the kernels of a unit and gives them C names: the kernel's name,
/// prefixed by "<unit>_" unless it already is. Specialisations of one name get
/// the bindings in which they differ as a suffix: "merge_D64".
std::vector<HostKernel>
describeKernels(llvm::StringRef unit,
                llvm::ArrayRef<llvm::json::Object> signatures);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_HOSTKERNEL_H
