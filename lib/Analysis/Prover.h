//===- Prover.h - the questions, one by one ---------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_PROVER_H
#define MLAFIX_ANALYSIS_PROVER_H

#include "lib/Analysis/LinearSystem.h"
#include "lib/Analysis/Proofs.h"
#include "lib/Analysis/RowInterpreter.h"

#include <memory>

namespace mlafix {

/// A system whose points are the elements of `argument`; its first columns are
/// `element`.
LinearSystem makeElements(RowModel &model, Work &work, KernelOp kernel,
                          unsigned argument, llvm::SmallVector<Form> &element);

/// True if an index is a constant in both `a` and `b`, but not the same one.
bool haveOtherConstants(const RowAccess &a, const RowAccess &b);

class Prover {
public:
  explicit Prover(KernelOp kernel, bool followsWraps = false);

  std::vector<Answer> run();
  /// The accesses whose bounds run() could not prove.
  std::vector<OpenIndex> takeOpenIndices() { return std::move(openIndices); }

private:
  /// Asks this prover. If the answer is unknown and integer arithmetic may
  /// overflow, asks again with overflow split into cases.
  Answer ask(llvm::function_ref<Answer(Prover &)> question);
  /// The accesses of `argument` that write, or read, it.
  llvm::SmallVector<const RowAccess *> accessesOf(unsigned argument,
                                                  bool isWrite) const;

  Answer proveCoverage(unsigned argument);
  Answer proveOneWriter(unsigned argument);
  Answer proveIndependence(unsigned written, unsigned read);
  /// Proves it for `read` against all arguments that may be written.
  Answer proveIndependence(unsigned read);
  Answer proveWrittenFirst(unsigned argument);
  Answer proveBounds(unsigned argument);

  // Coverage
  bool isPlainCover(llvm::ArrayRef<const RowAccess *> stores);
  bool isReliable(const RowAccess &store) const;
  void placeElement(LinearSystem &system, const RowAccess &store,
                    llvm::ArrayRef<Form> element);
  void assumeLaunch(LinearSystem &system, unsigned argument);
  void addLaunch(LinearSystem &system, const RowAccess &access);
  Answer coverRows(unsigned argument, llvm::ArrayRef<const RowAccess *> stores);
  Answer coverCases(unsigned argument,
                    llvm::ArrayRef<const RowAccess *> stores);

  std::optional<mlir::presburger::PresburgerSet>
  subtractStores(LinearSystem &cases, llvm::ArrayRef<Form> element,
                 const RowAccess &access,
                 llvm::ArrayRef<const RowAccess *> stores);

  // Pairs of rows
  bool haveDistinctElements(const RowAccess &a, const RowAccess &b);
  /// The answer for one pair of accesses, `a` in one row and `b` in another.
  Answer meet(Question question, unsigned argument, const RowAccess &a,
              const RowAccess &b);
  /// The answer if `pair` (restricted to elements inside the tensor) may have a
  /// point. `apart` is the pair in segments that do not overlap.
  Answer concludePair(Question question, unsigned argument, const RowAccess &a,
                      const RowAccess &b, const LinearSystem &pair,
                      const LinearSystem &apart);
  LinearSystem makePair(const RowAccess &a, const RowAccess &b);
  /// Restricts both accesses of the pair to the same element.
  void restrictElement(LinearSystem &pair, const RowAccess &a,
                       const RowAccess &b);
  /// Restricts indices to >= 0: with a negative index a guard suppresses the
  /// access.
  void restrictSigns(LinearSystem &pair, const RowAccess &a);
  /// Restricts indices to be in bounds, for the same reason.
  void restrictInside(LinearSystem &pair, const RowAccess &a);
  LinearSystem makePair(const RowAccess &a, const RowAccess &b,
                        unsigned position, bool isAscending, bool isPromised);

  /// Adds the conditions under which row `instance` executes the access.
  void assumeAccess(LinearSystem &system, const RowAccess &access,
                    unsigned instance);
  /// As above, with `condition` in place of the access's own.
  void assumeAccess(LinearSystem &system, const RowAccess &access,
                    const Condition &condition, unsigned instance);
  /// Without `wantsExample`, an answer that could be refuted is Unknown.
  Answer askBounds(const RowAccess &access, bool wantsExample);
  /// As above, for one index.
  Answer askIndex(const RowAccess &access, unsigned dim, bool wantsExample);

  // Promises: the reason why `wrong` is empty if all promises are kept, or
  // nullopt.
  std::optional<std::string> keepByPromise(const LinearSystem &wrong,
                                           const RowAccess &access);
  std::optional<std::string>
  keepByPromise(LinearSystem pair, const RowAccess &a, const RowAccess &b);
  /// The promises that rule out `pair`, restricted to segments that do not
  /// overlap.
  std::optional<std::string> keepBySegments(const LinearSystem &pair,
                                            const RowAccess &a,
                                            const RowAccess &b);
  const RowAccess *findAccess(LoadOp load) const;
  bool isEntry(const RowAccess &load);
  bool isLoaded(const LinearSystem &pair, LoadOp load, unsigned instance);
  /// Only entries of tables that are promised to be distinct, or of all tables.
  llvm::SmallVector<Var, 2> findEntries(const RowAccess &access,
                                        bool isPromised);
  bool areApart(const LinearSystem &pair, Var x, Var y);
  /// The table whose entries must be distinct to keep the two rows of the pair
  /// apart. Empty if unknown.
  std::string findTable(const LinearSystem &pair, const RowAccess &a,
                        const RowAccess &b);

  /// Executes the launch of `point`. Refutes the question if the run violates
  /// it; else the answer is unknown.
  Answer conclude(Question question, unsigned argument, const RowAccess *access,
                  const LinearSystem &system,
                  std::optional<LinearSystem::Point> point);
  Answer makeUnknown(Question question, unsigned argument,
                     const RowAccess *access, llvm::StringRef why) const;
  /// Names the unknowns that `access` depends on.
  std::string describeUnknowns(const RowAccess &access) const;

  KernelOp kernel;
  RowModel model;
  /// The remaining budget of the question and of the kernel.
  Work work{Budget::question}, all{Budget::kernel};
  /// Number of executed examples.
  unsigned examples = 0;
  /// Ops that examples may still execute.
  int64_t steps = Budget::steps;
  /// (index, size) pairs with 0 <= index < size at every point of the grid.
  std::vector<std::pair<Linear, Linear>> inBounds;
  std::vector<OpenIndex> openIndices;
  /// The prover that splits overflow into cases; created on demand.
  std::unique_ptr<Prover> careful;
};

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_PROVER_H
