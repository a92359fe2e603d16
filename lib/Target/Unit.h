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
  std::string assembler; // for cubins, else empty
};

/// A kernel's code for one target.
struct UnitCode {
  std::string target;            // "sm_90", "x86-64-v3"
  std::vector<UnitImage> images; // in order of preference
  llvm::json::Array variants;    // the manifest's "variants"
};

/// A kernel with one set of bindings.
struct UnitKernel {
  llvm::json::Object signature; // the manifest's entry, less "code"
  std::vector<UnitCode> code;
};

/// Fails if the kernel exceeds a limit of the runtime (mlafix/UnitLimits.h)
/// that its verifier could not check earlier.
llvm::Error checkLimits(const UnitKernel &kernel);

/// Writes `kernels` as a unit. The bytes depend only on the arguments. Error:
/// too many kernels, or too large a unit for the runtime.
llvm::Expected<std::string> writeUnit(llvm::ArrayRef<UnitKernel> kernels);

/// An entry of "variants" (docs/UnitFormat.md) without the fields that code
/// generation adds.
llvm::json::Object toJson(VariantAttr variant);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_UNIT_H
