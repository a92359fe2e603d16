//===- ContextPool.cpp - a pool of MLIR contexts --------------------------===//
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

/// Returns the pool. It is never destroyed, because other threads may still
/// compile at exit.
static ContextPool &pool() {
  static ContextPool &made = *new ContextPool;
  return made;
}

/// The number of uses after which a context is destroyed. A context that has
/// compiled a hundred kernels retains a few megabytes.
static constexpr unsigned maximalUses = 100;
/// The most idle contexts to keep. Further ones would stay unused.
static constexpr size_t maximalIdle = 8;
/// The most pass managers that a context keeps. There is about one per target,
/// and few processes compile for more than eight targets. At this limit, a new
/// one replaces them all.
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
  // Do not print whole operations in diagnostics.
  pooled.context->printOpOnDiagnostic(false);
  // Load all dialects now: builders create operations before a parser or a pass
  // would load them.
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
