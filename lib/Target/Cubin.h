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

/// The resources of one kernel.
struct KernelResources {
  unsigned registers = 0;   // per thread
  uint64_t localBytes = 0;  // stack frame per thread, spills included
  uint64_t sharedBytes = 0; // static shared memory per block
};

/// Reads the resources of every kernel in `cubin` (a little-endian ELF64
/// image), by the kernel's name.
llvm::Expected<llvm::StringMap<KernelResources>>
readResources(llvm::StringRef cubin);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_CUBIN_H
