//===- CpuImage.h - an object as position-independent bytes -----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_CPUIMAGE_H
#define MLAFIX_LIB_TARGET_CPUIMAGE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace mlafix::target {

/// Position-independent code; it must be mapped at a multiple of 64 bytes
/// (x86-64) or 4096 bytes (AArch64). See docs/UnitFormat.md, "The kernel ABI".
struct CpuImage {
  std::string bytes;
  std::vector<uint64_t> offsets; // entry offsets, in the order of the request
};

/// Returns an error that names the undefined symbols of `object`, if any:
/// generated code calls nothing.
llvm::Error checkDefined(llvm::StringRef object);

/// Links `object` (ELF, x86-64 or AArch64) into an image with the entry points
/// `entries`; sections that they do not reach are left out. Errors, each naming
/// the culprit: an undefined symbol, writable data, an absolute address, a
/// missing entry.
llvm::Expected<CpuImage> linkCpuImage(llvm::StringRef object,
                                      llvm::ArrayRef<std::string> entries);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_CPUIMAGE_H
