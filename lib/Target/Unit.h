//===- Unit.h - writes unit files -------------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Writes unit files, which lib/Runtime/Unit.cpp reads. docs/UnitFormat.md
// specifies the format.
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

/// One piece of compiled code in a unit.
struct UnitImage {
  std::string format;    // "cubin", "ptx" or "cpu"
  std::string bytes;     // the code itself
  std::string assembler; // name of a cubin's assembler, else empty
};

/// The code of a kernel for one target.
struct UnitCode {
  std::string target;            // a target's name, such as "sm_90"
  std::vector<UnitImage> images; // the preferred one first
  llvm::json::Array variants;    // the manifest's field "variants"
};

/// A kernel with one set of bindings, and its code.
struct UnitKernel {
  llvm::json::Object signature; // the kernel's manifest entry without "code"
  std::vector<UnitCode> code;
};

/// Fails if the kernel exceeds a limit of the runtime (mlafix/UnitLimits.h)
/// that the kernel's verifier could not check.
llvm::Error checkLimits(const UnitKernel &kernel);

/// Returns the bytes of a unit with `kernels`. The bytes depend only on
/// `kernels`. Returns an error if the unit has too many kernels or is too large
/// for the runtime.
llvm::Expected<std::string> writeUnit(llvm::ArrayRef<UnitKernel> kernels);

/// Returns an entry of the manifest's "variants" (docs/UnitFormat.md), without
/// the fields that code generation adds.
llvm::json::Object toJson(VariantAttr variant);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_UNIT_H
