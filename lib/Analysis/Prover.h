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

/// A system of the elements of `argument`; `element` are its first columns.
LinearSystem makeElements(RowModel &model, Work &work, KernelOp kernel,
                          unsigned argument, llvm::SmallVector<Form> &element);

class Prover {
public:
  explicit Prover(KernelOp kernel, bool followsWraps = false);

  std::vector<Answer> run();
  /// The bounds that run() could not decide.
  std::vector<OpenIndex> takeOpenIndices() { return std::move(openIndices); }

private:
  /// Asks with a `question` of a prover; where the answer is unknown and
  /// arithmetic may wrap around, once more with its cases.
  Answer ask(llvm::function_ref<Answer(Prover &)> question);
  /// Of one argument: those that read or write it.
  llvm::SmallVector<const RowAccess *> accessesOf(unsigned argument,
                                                  bool isWrite) const;

  Answer proveCoverage(unsigned argument);
  Answer proveOneWriter(unsigned argument);
  Answer proveIndependence(unsigned written, unsigned read);
  /// Of all that may be written where the argument is read.
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
                 llvm::ArrayRef<Var> loops,
                 llvm::ArrayRef<const RowAccess *> stores);

  // Pairs of rows
  bool haveDistinctElements(const RowAccess &a, const RowAccess &b);
  /// The answer for one pair of accesses: `a` in one row, `b` in another.
  Answer meet(Question question, unsigned argument, const RowAccess &a,
              const RowAccess &b);
  /// The answer where the pair, of elements that there are, has a point.
  Answer concludePair(Question question, unsigned argument, const RowAccess &a,
                      const RowAccess &b, const LinearSystem &pair);
  LinearSystem makePair(const RowAccess &a, const RowAccess &b);
  /// Restricts the pair to one element.
  void restrictElement(LinearSystem &pair, const RowAccess &a,
                       const RowAccess &b);
  /// Restricts the pair to indices of at least 0: elsewhere nothing is
  /// accessed, bounds guards see to it.
  void restrictSigns(LinearSystem &pair, const RowAccess &a);
  /// Restricts the pair to elements that there are, likewise.
  void restrictInside(LinearSystem &pair, const RowAccess &a);
  LinearSystem makePair(const RowAccess &a, const RowAccess &b,
                        unsigned position, bool isAscending, bool isPromised);

  /// Adds what holds in row `instance` where the access reads or writes.
  void assumeAccess(LinearSystem &system, const RowAccess &access,
                    unsigned instance);
  /// The same under another condition of the access.
  void assumeAccess(LinearSystem &system, const RowAccess &access,
                    const Condition &condition, unsigned instance);
  Answer askBounds(const RowAccess &access);
  /// The same of one of its indices.
  Answer askIndex(const RowAccess &access, unsigned dim);

  // Promises: why there is no such point, after all, if all of them are kept.
  std::optional<std::string> keepByPromise(const LinearSystem &wrong,
                                           const RowAccess &access);
  std::optional<std::string>
  keepByPromise(LinearSystem pair, const RowAccess &a, const RowAccess &b);
  const RowAccess *findAccess(LoadOp load) const;
  bool isEntry(const RowAccess &load);
  bool isLoaded(const LinearSystem &pair, LoadOp load, unsigned instance);
  /// Those of tables that are promised to be distinct, or of all.
  llvm::SmallVector<Var, 2> findEntries(const RowAccess &access,
                                        bool isPromised);
  bool areApart(const LinearSystem &pair, Var x, Var y);
  /// The table whose entries, if they are distinct, keep the rows of the pair
  /// apart; empty: none is known.
  std::string findTable(const LinearSystem &pair, const RowAccess &a,
                        const RowAccess &b);

  /// Runs the point's launch. A refutation if the question's answer is then no;
  /// else the answer is unknown.
  Answer conclude(Question question, unsigned argument, const RowAccess *access,
                  const LinearSystem &system,
                  std::optional<LinearSystem::Point> point);
  Answer makeUnknown(Question question, unsigned argument,
                     const RowAccess *access, llvm::StringRef why) const;
  /// The unknowns that `access` depends on.
  std::string describeUnknowns(const RowAccess &access) const;

  KernelOp kernel;
  RowModel model;
  /// The work that is left of the question, and of the kernel.
  Work work{Budget::question}, all{Budget::kernel};
  /// How many examples were run.
  unsigned examples = 0;
  /// How many ops examples may run yet.
  int64_t steps = Budget::steps;
  /// Index and size, of which the first is known to be below the second and not
  /// negative wherever the grid runs.
  std::vector<std::pair<Linear, Linear>> inBounds;
  std::vector<OpenIndex> openIndices;
  /// The one that follows wraps, once it is needed.
  std::unique_ptr<Prover> careful;
};

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_PROVER_H
