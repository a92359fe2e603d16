//===- ContextPool.cpp - MLIR contexts that are used again
//---------------------===//
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

namespace {
struct Pooled {
  std::unique_ptr<mlir::MLIRContext> context;
  unsigned uses;
};

struct Pool {
  std::mutex mutex;
  std::vector<Pooled> idle;
};
} // namespace

/// Never destroyed: threads may still compile while a process ends.
static Pool &pool() {
  static Pool &made = *new Pool;
  return made;
}

/// A hundred kernels leave a few megabytes.
static constexpr unsigned maximalUses = 100;
/// More idle contexts than this serve nobody.
static constexpr size_t maximalIdle = 8;

ContextLease::ContextLease() {
  {
    std::lock_guard<std::mutex> lock(pool().mutex);
    if (!pool().idle.empty()) {
      context = std::move(pool().idle.back().context);
      uses = pool().idle.back().uses;
      pool().idle.pop_back();
    }
  }
  ++uses;
  if (context)
    return;
  context = std::make_unique<mlir::MLIRContext>(
      dialectRegistry(), mlir::MLIRContext::Threading::DISABLED);
  // A dump of the whole operation below each message helps no user.
  context->printOpOnDiagnostic(false);
  // Builders name operations before any parser or pass has loaded them.
  context->loadAllAvailableDialects();
}

ContextLease::~ContextLease() {
  if (uses >= maximalUses)
    return;
  std::lock_guard<std::mutex> lock(pool().mutex);
  if (pool().idle.size() < maximalIdle)
    pool().idle.push_back({std::move(context), uses});
}
