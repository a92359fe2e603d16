//===- ContextPool.h - MLIR contexts that are used again ----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_COMPILER_CONTEXTPOOL_H
#define MLAFIX_LIB_COMPILER_CONTEXTPOOL_H

#include "mlir/IR/MLIRContext.h"

#include <memory>

namespace mlafix {

/// A context of one user at a time. Making one, and loading the dialects into
/// it, takes longer than parsing a kernel, so contexts go back to a pool. What
/// a context has uniqued (types, attributes, places) it keeps, so each is given
/// up after a number of uses.
class ContextLease {
public:
  ContextLease();
  ~ContextLease();
  ContextLease(const ContextLease &) = delete;
  ContextLease &operator=(const ContextLease &) = delete;

  mlir::MLIRContext &operator*() const { return *context; }
  mlir::MLIRContext *operator->() const { return context.get(); }
  mlir::MLIRContext *get() const { return context.get(); }

private:
  std::unique_ptr<mlir::MLIRContext> context;
  unsigned uses = 0;
};

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_CONTEXTPOOL_H
