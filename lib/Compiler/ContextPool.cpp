//===- ContextPool.cpp - MLIR contexts that are used again ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/ContextPool.h"

#include "lib/Compiler/Dialects.h"
#include "mlir/IR/Dialect.h"

#include <mutex>
#include <vector>

using namespace mlafix;

namespace mlafix {
struct ContextPool {
  std::mutex mutex;
  std::vector<ContextLease::Pooled> idle;
};
} // namespace mlafix

/// Never destroyed: other threads may still compile at exit.
static ContextPool &pool() {
  static ContextPool &made = *new ContextPool;
  return made;
}

/// Uses per context: a hundred kernels retain a few megabytes.
static constexpr unsigned maximalUses = 100;
/// More idle contexts than this would stay unused.
static constexpr size_t maximalIdle = 8;
/// Pass managers per context: few processes compile for more targets.
static constexpr size_t maximalPasses = 8;

ContextLease::ContextLease() {
  {
    std::lock_guard<std::mutex> lock(pool().mutex);
    if (!pool().idle.empty()) {
      pooled = std::move(pool().idle.back());
      pool().idle.pop_back();
    }
  }
  ++pooled.uses;
  if (pooled.context)
    return;
  pooled.context = std::make_unique<mlir::MLIRContext>(
      dialectRegistry(), mlir::MLIRContext::Threading::DISABLED);
  // Keep whole operations out of diagnostics.
  pooled.context->printOpOnDiagnostic(false);
  // Builders create operations before a parser or pass loads their dialects.
  pooled.context->loadAllAvailableDialects();
}

ContextLease::~ContextLease() {
  if (pooled.uses >= maximalUses)
    return;
  std::lock_guard<std::mutex> lock(pool().mutex);
  if (pool().idle.size() < maximalIdle)
    pool().idle.push_back(std::move(pooled));
}

mlir::PassManager &
ContextLease::passes(llvm::StringRef name,
                     llvm::function_ref<void(mlir::PassManager &)> build) {
  auto found = pooled.passes.find(name);
  if (found != pooled.passes.end())
    return *found->second;
  if (pooled.passes.size() >= maximalPasses)
    pooled.passes.clear();
  auto made = std::make_unique<mlir::PassManager>(get());
  build(*made);
  return *(pooled.passes[name] = std::move(made));
}
