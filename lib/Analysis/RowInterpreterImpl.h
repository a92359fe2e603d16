//===- RowInterpreterImpl.h - the interpreter itself ----------------*- C++
//-*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_ROWINTERPRETERIMPL_H
#define MLAFIX_ANALYSIS_ROWINTERPRETERIMPL_H

#include "lib/Analysis/AccessLog.h"
#include "lib/Analysis/LaunchWatch.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlafix {

/// Runs the rows of one launch, one after the other.
class RowInterpreter {
public:
  using Element = llvm::SmallVector<int64_t>;
  using Place = AccessLog::Place;

  RowInterpreter(KernelOp kernel, const SmallLaunch &launch, Oracle oracle,
                 llvm::ArrayRef<int64_t> segments)
      : kernel(kernel), launch(launch), oracle(oracle), segments(segments),
        log(kernel, launch) {}

  std::optional<std::vector<Violation>> run();
  Replay replay();

private:
  bool runDense(ForallOp grid);
  bool runRagged(RaggedForallOp grid);
  /// Runs the body for each tuple of inner indices.
  bool runRows(mlir::Block &body, llvm::ArrayRef<int64_t> outer,
               mlir::ValueRange extents);
  /// False: the budget is used up.
  bool runBlock(mlir::Block &block);
  bool runOp(mlir::Operation &op);
  /// A promise or a print. False: the launch shows nothing.
  bool note(mlir::Operation &op);
  bool runLoop(mlir::scf::ForOp loop);
  bool runWhile(mlir::scf::WhileOp loop);
  void compute(mlir::Operation &op);
  void load(LoadOp op);
  void loadState(LoadStateOp op);
  /// The elements of a row that an access is of, by their index in the row:
  /// `count` of them from `first` on, `step` apart.
  struct RowElements {
    int64_t first = 0, count = 0, step = 1;
    bool isInside = true;

    bool contains(int64_t place) const {
      int64_t distance = place - first;
      return distance >= 0 && distance % step == 0 && distance / step < count;
    }
  };
  RowElements elementsOf(const MemoryAccess &access, int64_t size);
  /// Whether the access happens, and within bounds.
  bool access(const MemoryAccess &access);

  std::optional<int64_t> get(mlir::Value value);
  /// The same of a value on which it depends what is accessed; 0 where it is
  /// not known, and then the row is left.
  int64_t need(mlir::Value value);
  bool isNumber(mlir::Type type) const {
    return type.isIntOrIndex() || (isReplay && type.isF32());
  }
  /// What the element holds that `op` reads, which is in bounds.
  std::optional<int64_t> read(const MemoryAccess &access);
  /// The same of one that no row has written.
  std::optional<int64_t> readInitial(mlir::Operation *op, const Place &place);
  void noteStored(const MemoryAccess &access, const Element &element);
  void setAll(mlir::ValueRange targets, mlir::ValueRange sources);

  KernelOp kernel;
  const SmallLaunch &launch;
  Oracle oracle;
  llvm::ArrayRef<int64_t> segments;
  llvm::DenseMap<mlir::Value, std::optional<int64_t>> values;
  llvm::SmallVector<int64_t> row;
  std::map<Place, std::optional<int64_t>> memory;
  AccessLog log;
  LaunchWatch watch; // of a replay
  int64_t steps = 0, maxSteps = 100000;
  bool isReplay = false, isUnknown = false; ///< the latter: of this row
  int64_t unknownRows = 0;

  static constexpr int64_t kReplaySteps = 1000000;
};

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_ROWINTERPRETERIMPL_H
