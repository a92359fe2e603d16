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
  /// Of a scalar, or of a tensor's elements: "int64_t", "mlafix::bf16".
  std::string cType;
  std::string maker;       ///< the function that makes a mlafix_arg of it
  std::string description; ///< for a comment: dtype, shape, access
  unsigned rank = 0;       ///< of a tensor
  bool isTensor = false;
  bool isOptional = false;
  bool isWritten = false;
  bool isAbsent = false; ///< no parameter: every call omits it
};

struct HostKernel {
  std::string cName;
  std::string name;     ///< for a comment
  std::string bindings; ///< for a comment: "D=128, T=bf16"
  /// For a string literal: the kernel's name, and its bindings for
  /// mlafix_unit_find_kernel.
  std::string literal, bindingsLiteral;
  std::vector<HostArg> args;
};

/// Fails unless `unit` is a C identifier that begins no name of the runtime.
llvm::Error checkUnitName(llvm::StringRef unit);

/// The kernels of a unit, with names for C. A kernel's C name is its own, with
/// "<unit>_" before it unless it begins so; where several specialisations have
/// the kernel's name, the bindings in which they differ follow: "merge_D64".
std::vector<HostKernel>
describeKernels(llvm::StringRef unit,
                llvm::ArrayRef<llvm::json::Object> signatures);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_HOSTKERNEL_H
