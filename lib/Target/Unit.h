//===- Unit.h - writes unit files -------------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// docs/UnitFormat.md is the contract between this and lib/Runtime/Unit.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_UNIT_H
#define MLAFIX_LIB_TARGET_UNIT_H

#include "dialect/Mlafix.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace mlafix::target {

/// One blob of code.
struct UnitImage {
  std::string format;    // "cubin", "ptx" or "cpu"
  std::string bytes;     //
  std::string assembler; // of a cubin, else empty
};

/// A kernel's code for one target.
struct UnitCode {
  std::string target;            // "sm_90", "x86-64-v3"
  std::vector<UnitImage> images; // the one to prefer first
  llvm::json::Array variants;    // the manifest's "variants"
};

/// A kernel with one choice of bindings.
struct UnitKernel {
  llvm::json::Object signature; // the manifest's entry, less "code"
  std::vector<UnitCode> code;
};

/// Fails if the runtime would refuse the kernel for a limit
/// (mlafix/UnitLimits.h) that its verifier could not check before
/// specialisation and the passes.
llvm::Error checkLimits(const UnitKernel &kernel);

/// Writes `kernels` as a unit. The bytes depend on nothing but the arguments.
/// Error: the runtime would refuse a unit of so many kernels, or so large a
/// one.
llvm::Expected<std::string> writeUnit(llvm::ArrayRef<UnitKernel> kernels);

/// An entry of "variants" (docs/UnitFormat.md), less what only code generation
/// knows.
llvm::json::Object toJson(VariantAttr variant);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_UNIT_H
