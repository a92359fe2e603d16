//===- ContextPool.h - MLIR contexts that are used again ----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_COMPILER_CONTEXTPOOL_H
#define MLAFIX_LIB_COMPILER_CONTEXTPOOL_H

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringMap.h"

#include <memory>

namespace mlafix {

/// A context that one thread uses at a time. Making one, and loading the
/// dialects into it, takes longer than parsing a kernel, so contexts go back to
/// a pool. A context never releases what it has uniqued (types, attributes,
/// locations), so each is destroyed after a number of uses.
class ContextLease {
public:
  ContextLease();
  ~ContextLease();
  ContextLease(const ContextLease &) = delete;
  ContextLease &operator=(const ContextLease &) = delete;

  mlir::MLIRContext &operator*() const { return *pooled.context; }
  mlir::MLIRContext *operator->() const { return pooled.context.get(); }
  mlir::MLIRContext *get() const { return pooled.context.get(); }

  /// The pass manager called `name`, which `build` fills when it is first asked
  /// for: a canonicalizer's patterns, and what other passes set up before they
  /// run, are made once a context.
  mlir::PassManager &
  passes(llvm::StringRef name,
         llvm::function_ref<void(mlir::PassManager &)> build);

private:
  friend struct ContextPool;

  /// A context and what was made for it.
  struct Pooled {
    std::unique_ptr<mlir::MLIRContext> context;
    llvm::StringMap<std::unique_ptr<mlir::PassManager>> passes;
    unsigned uses = 0;
  };
  Pooled pooled;
};

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_CONTEXTPOOL_H
