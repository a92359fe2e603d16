//===- PrefetchCandidates.h - loads that can be prefetched ------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LOADS_PREFETCHCANDIDATES_H
#define MLAFIX_TRANSFORMS_LOADS_PREFETCHCANDIDATES_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

#include <optional>
#include <vector>

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

/// Loads after a wait whose pointers and branches do not depend on memory. For
/// loops, considers the first iteration. Predicates that depend on memory are
/// assumed to hold.
class PrefetchCandidates {
public:
  /// Finds the loads, and changes nothing. Accesses of at least `rowBytes`
  /// count as packs of rows.
  PrefetchCandidates(mlir::Operation *wait, int64_t rowBytes)
      : wait(wait), rowBytes(rowBytes), candidates(find(wait->getNextNode())) {}

  /// Builds what the candidates need before the wait, and returns them.
  llvm::SmallVector<CandidateLoads> build();

private:
  /// A load, or a branch or loop with its loads. Without an op, a known value.
  struct Early {
    mlir::Operation *op;
    mlir::Value pointer, mask; ///< of a load; the mask may be null
    int64_t bytes;             ///< of a load of a pack, else 0
    std::vector<Early> inner;  ///< of a branch or a loop
  };

  std::vector<Early> find(mlir::Operation *op);
  std::optional<Early> findLoad(mlir::Operation *op);
  bool isKnown(mlir::Value value);
  void build(const std::vector<Early> &candidates, mlir::Value condition);
  void buildLoad(const Early &load, mlir::Value condition);
  mlir::Value buildBeforeWait(mlir::Value value);
  mlir::Value buildKnown(mlir::Value mask);
  CandidateLoads &findGroup(mlir::Value condition, mlir::Value mask);
  void joinRows();

  mlir::Operation *wait;
  int64_t rowBytes;
  mlir::IRMapping starts; // initial values of the enclosing loops' induction
                          // variables
  std::vector<Early> candidates;
  llvm::SmallVector<CandidateLoads> loads;
};

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LOADS_PREFETCHCANDIDATES_H
