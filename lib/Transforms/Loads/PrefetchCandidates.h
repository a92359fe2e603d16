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

/// Loads after a wait that execute if `condition` and `mask` (i1, or null for
/// true) hold.
struct CandidateLoads {
  mlir::Value condition, mask;
  llvm::SmallVector<mlir::Value> rows; // pointers to whole packs of rows
  // Pointers that are equal in every block.
  llvm::SmallVector<mlir::Value> shared;
  int64_t rowBytes = 0;  // bytes of all packs, per thread
  int64_t packBytes = 0; // bytes of the largest pack
};

/// Finds loads after a wait whose pointers and branches do not depend on
/// memory. In loops, only the first iteration is considered. Predicates that
/// depend on memory are assumed to hold.
class PrefetchCandidates {
public:
  /// Finds the loads and changes nothing. Accesses of at least `rowBytes` bytes
  /// count as packs of rows.
  PrefetchCandidates(mlir::Operation *wait, int64_t rowBytes)
      : wait(wait), rowBytes(rowBytes), candidates(find(wait->getNextNode())) {}

  /// Builds the pointers and conditions of the candidates before the wait.
  /// Returns the candidates.
  llvm::SmallVector<CandidateLoads> build();

private:
  /// A load, or a branch or loop with the loads in it. If `op` is null, the
  /// candidate is only a value to compute before the wait, and `pointer` holds
  /// this value: a bound of a loop.
  struct Early {
    mlir::Operation *op;
    mlir::Value pointer, mask; ///< of a load; null `mask`: no mask
    int64_t bytes;             ///< bytes of a load of a pack, else 0
    std::vector<Early> inner;  ///< loads in a branch or a loop
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
  // Initial values of the induction variables of the enclosing loops.
  mlir::IRMapping starts;
  std::vector<Early> candidates;
  llvm::SmallVector<CandidateLoads> loads;
};

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LOADS_PREFETCHCANDIDATES_H
