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
#include <memory>

namespace mlir {
class MLIRContext;
} // namespace mlir

namespace mlafix {

/// Calls `work` with each number below `count`, on this thread and on helper
/// threads. All concurrent calls together start at most as many helpers as the
/// process has further cores. Returns when all calls have returned.
void parallelFor(std::size_t count, llvm::function_ref<void(std::size_t)> work);

/// While in scope, several threads may use `context`, and passes on kernels or
/// functions of a module run in parallel through parallelFor. Otherwise
/// `context` belongs to one thread.
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
