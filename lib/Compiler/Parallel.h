//===- Parallel.h - work shared out over cores ------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_COMPILER_PARALLEL_H
#define MLAFIX_LIB_COMPILER_PARALLEL_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstddef>

namespace mlafix {

/// Calls `work` with each number below `count`, on this thread and on as many
/// more as are of use: all calls of this at a time have no more threads between
/// them than the process has cores. Returns when all is done.
void parallelFor(std::size_t count, llvm::function_ref<void(std::size_t)> work);

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_PARALLEL_H
