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

/// Linked, position-independent CPU code. It must be mapped at a multiple of 64
/// bytes (x86-64) or 4096 bytes (AArch64). See docs/UnitFormat.md, "The kernel
/// ABI".
struct CpuImage {
  std::string bytes;
  /// The offset in `bytes` of each entry point, in the order in which
  /// linkCpuImage() takes them.
  std::vector<uint64_t> offsets;
};

/// Returns an error that lists the undefined symbols of `object`, if it has
/// any. Generated code must call nothing outside itself.
llvm::Error checkDefined(llvm::StringRef object);

/// Links `object` (ELF for x86-64 or AArch64) into an image with the entry
/// points `entries`. Sections that no entry point uses are left out. Returns an
/// error for an undefined symbol, writable data, an absolute address or a
/// missing entry point. The message names the cause.
llvm::Expected<CpuImage> linkCpuImage(llvm::StringRef object,
                                      llvm::ArrayRef<std::string> entries);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_CPUIMAGE_H
