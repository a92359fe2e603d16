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

/// Code that runs wherever it is mapped, from an address that is a multiple of
/// 64 (x86-64) or 4096 (AArch64) up (docs/UnitFormat.md, "The kernel ABI").
struct CpuImage {
  std::string bytes;
  std::vector<uint64_t> offsets; // of the entries, in the order of the request
};

/// An error that names the symbols which `object` leaves undefined, if there
/// are any: code calls nothing.
llvm::Error checkDefined(llvm::StringRef object);

/// Links `object` (ELF, x86-64 or AArch64) into an image with the entry points
/// `entries`; sections that they do not reach are left out. Errors, each naming
/// the culprit: an undefined symbol, writable data, an absolute address, a
/// missing entry.
llvm::Expected<CpuImage> linkCpuImage(llvm::StringRef object,
                                      llvm::ArrayRef<std::string> entries);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_CPUIMAGE_H
