//===- PrefetchCandidates.h - loads that can be prefetched ------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LATE_PREFETCHCANDIDATES_H
#define MLAFIX_TRANSFORMS_LATE_PREFETCHCANDIDATES_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace mlafix {

/// Memory that is loaded after the wait if `condition` and `mask` (null: true)
/// hold.
struct CandidateLoads {
  mlir::Value condition, mask;
  llvm::SmallVector<mlir::Value> rows;   // pointers to whole packs
  llvm::SmallVector<mlir::Value> shared; // pointers that are equal in every
                                         // block
  int64_t rowBytes = 0;                  // of all packs, per thread
  int64_t packBytes = 0;                 // of the largest pack
};

/// Finds loads after a wait whose pointers and branches do not depend on
/// memory, and computes these before the wait. For loops, considers the first
/// iteration. Predicates that depend on memory are assumed to hold.
class PrefetchCandidates {
public:
  /// Accesses of at least `rowBytes` count as packs of rows.
  PrefetchCandidates(mlir::Operation *wait, int64_t rowBytes)
      : wait(wait), rowBytes(rowBytes) {
    collect(wait->getNextNode(), mlir::Value());
    joinRows();
  }
  llvm::SmallVector<CandidateLoads> loads;

private:
  void collect(mlir::Operation *op, mlir::Value condition);
  void collectLoad(mlir::Value pointer, mlir::Type type, mlir::Value mask,
                   mlir::Value condition);
  void collectLoop(mlir::scf::ForOp loop, mlir::Value condition);
  mlir::Value buildBeforeWait(mlir::Value value);
  mlir::Value buildKnown(mlir::Value mask);
  CandidateLoads &find(mlir::Value condition, mlir::Value mask);
  void joinRows();

  mlir::Operation *wait;
  int64_t rowBytes;
  mlir::IRMapping starts; // initial values of the enclosing loops' induction
                          // variables
};

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LATE_PREFETCHCANDIDATES_H
