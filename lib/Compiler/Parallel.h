//===- Parallel.h - distributes work over cores -----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_COMPILER_PARALLEL_H
#define MLAFIX_LIB_COMPILER_PARALLEL_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstddef>
#include <memory>

namespace mlir {
class MLIRContext;
} // namespace mlir

namespace mlafix {

/// Calls `work` with each number from 0 to `count` - 1, on this thread and on
/// helper threads. Returns when all calls have returned. If the process may run
/// on n cores, all concurrent calls of parallelFor together have at most n - 1
/// helper threads.
void parallelFor(std::size_t count, llvm::function_ref<void(std::size_t)> work);

/// Lets several threads use `context` as long as this object lives. Passes on
/// the kernels or functions of a module then run in parallel through
/// parallelFor. At other times, only one thread may use `context`.
class SharedContext {
public:
  explicit SharedContext(mlir::MLIRContext &context);
  ~SharedContext();
  SharedContext(const SharedContext &) = delete;
  SharedContext &operator=(const SharedContext &) = delete;

private:
  class Tasks;
  mlir::MLIRContext &context;
  std::unique_ptr<Tasks> tasks;
};

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_PARALLEL_H
