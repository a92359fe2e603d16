//===- ContextPool.h - a pool of MLIR contexts ------------------*- C++ -*-===//
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

/// Leases an MLIR context to one thread. Contexts are pooled, because creating
/// one and loading its dialects takes longer than parsing a kernel. A context
/// never frees uniqued objects (types, attributes, locations), so it is
/// destroyed after a number of uses.
class ContextLease {
public:
  ContextLease();
  ~ContextLease();
  ContextLease(const ContextLease &) = delete;
  ContextLease &operator=(const ContextLease &) = delete;

  mlir::MLIRContext &operator*() const { return *pooled.context; }
  mlir::MLIRContext *operator->() const { return pooled.context.get(); }
  mlir::MLIRContext *get() const { return pooled.context.get(); }

  /// Returns the pass manager that the context keeps under `name`. On the first
  /// use of a name, `build` adds its passes. Thus canonicalization patterns and
  /// other initialisation are set up once per context.
  mlir::PassManager &
  passes(llvm::StringRef name,
         llvm::function_ref<void(mlir::PassManager &)> build);

private:
  friend struct ContextPool;

  /// An MLIR context and its pass managers.
  struct Pooled {
    std::unique_ptr<mlir::MLIRContext> context;
    llvm::StringMap<std::unique_ptr<mlir::PassManager>> passes;
    unsigned uses = 0;
  };
  Pooled pooled;
};

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_CONTEXTPOOL_H
