//===- Cubin.h - what a cubin says about its kernels ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_CUBIN_H
#define MLAFIX_LIB_TARGET_CUBIN_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mlafix::target {

/// The hardware resources that one kernel uses.
struct KernelResources {
  unsigned registers = 0;   // registers per thread
  uint64_t localBytes = 0;  // bytes of stack per thread, with spilled registers
  uint64_t sharedBytes = 0; // bytes of static shared memory per block
};

/// Returns the resources of every kernel in `cubin` (a little-endian ELF64
/// image). The map's key is the kernel's name.
llvm::Expected<llvm::StringMap<KernelResources>>
readResources(llvm::StringRef cubin);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_CUBIN_H
