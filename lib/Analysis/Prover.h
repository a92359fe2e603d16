//===- Prover.h - proves the answers to the questions -----------*- C++ -*-===//
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

/// Returns a system whose points are the elements of `argument`. The system's
/// first columns are the indices of an element. `element` receives one form for
/// each of these columns.
LinearSystem makeElements(RowModel &model, Work &work, KernelOp kernel,
                          unsigned argument, llvm::SmallVector<Form> &element);

/// True if some index is a constant in both `a` and `b`, with different values.
bool haveOtherConstants(const RowAccess &a, const RowAccess &b);

class Prover {
public:
  explicit Prover(KernelOp kernel, bool followsWraps = false);

  std::vector<Answer> run();
  /// Returns the indices that run() could not prove to be in bounds.
  std::vector<OpenIndex> takeOpenIndices() { return std::move(openIndices); }

private:
  /// Asks `question` of this prover. If the answer is unknown and integers may
  /// overflow, asks a prover that splits overflow into cases.
  Answer ask(llvm::function_ref<Answer(Prover &)> question);
  /// Returns the writes of `argument` if `isWrite`, otherwise its reads.
  llvm::SmallVector<const RowAccess *> accessesOf(unsigned argument,
                                                  bool isWrite) const;

  Answer proveCoverage(unsigned argument);
  Answer proveOneWriter(unsigned argument);
  Answer proveIndependence(unsigned written, unsigned read);
  /// Proves that `read` is independent of all arguments that may be written.
  Answer proveIndependence(unsigned read);
  Answer proveWrittenFirst(unsigned argument);
  Answer proveBounds(unsigned argument);

  // Coverage
  bool isPlainCover(llvm::ArrayRef<const RowAccess *> stores);
  bool isReliable(const RowAccess &store) const;
  void placeElement(LinearSystem &system, const RowAccess &store,
                    llvm::ArrayRef<Form> element);
  void placeReliable(LinearSystem &system, const RowAccess &store,
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
  /// Answers the question for access `a` in one row and `b` in another row.
  Answer meet(Question question, unsigned argument, const RowAccess &a,
              const RowAccess &b);
  /// Answers the question for two rows that may access the same element: `pair`
  /// is not known to be empty, and is restricted to elements inside the tensor.
  /// `apart` is `pair` under the assumption that segments do not overlap.
  Answer concludePair(Question question, unsigned argument, const RowAccess &a,
                      const RowAccess &b, const LinearSystem &pair,
                      const LinearSystem &apart);
  LinearSystem makePair(const RowAccess &a, const RowAccess &b);
  /// Restricts `pair` to rows whose accesses `a` and `b` touch the same
  /// element.
  void restrictElement(LinearSystem &pair, const RowAccess &a,
                       const RowAccess &b);
  /// Restricts the indices of `a` to >= 0. At a negative index, the bounds
  /// guard suppresses the access.
  void restrictSigns(LinearSystem &pair, const RowAccess &a);
  /// Restricts the indices of `a` to be in bounds. Elsewhere, the bounds guard
  /// suppresses the access.
  void restrictInside(LinearSystem &pair, const RowAccess &a);
  LinearSystem makePair(const RowAccess &a, const RowAccess &b,
                        unsigned position, bool isAscending, bool isPromised);

  /// Adds the conditions under which row `instance` executes the access.
  void assumeAccess(LinearSystem &system, const RowAccess &access,
                    unsigned instance);
  /// Adds `condition` and the ranges of the access's grid and loop indices for
  /// row `instance`. For instance 0, also adds what the launch checks.
  void assumeAccess(LinearSystem &system, const RowAccess &access,
                    const Condition &condition, unsigned instance);
  /// Answers bounds for all indices of `access`. Without `wantsExample`,
  /// returns Unknown rather than searching for a refuting example.
  Answer askBounds(const RowAccess &access, bool wantsExample);
  /// Answers bounds for index `dim`, with `wantsExample` as in askBounds().
  Answer askIndex(const RowAccess &access, unsigned dim, bool wantsExample);

  // Promises
  /// Describes the promises under which the system `wrong` (or `pair`) has no
  /// point. Returns nullopt if the system may have a point even then.
  std::optional<std::string> keepByPromise(const LinearSystem &wrong,
                                           const RowAccess &access);
  std::optional<std::string>
  keepByPromise(LinearSystem pair, const RowAccess &a, const RowAccess &b);
  /// Describes the promises under which `pair` has no point. `pair` already
  /// assumes that segments do not overlap. Returns nullopt if `pair` may have a
  /// point even then.
  std::optional<std::string> keepBySegments(const LinearSystem &pair,
                                            const RowAccess &a,
                                            const RowAccess &b);
  const RowAccess *findAccess(LoadOp load) const;
  bool isEntry(const RowAccess &load);
  bool isLoaded(const LinearSystem &pair, LoadOp load, unsigned instance);
  /// Returns the table entries that the accessed element depends on. With
  /// `isPromised`, only considers tables whose entries are promised to be
  /// distinct.
  llvm::SmallVector<Var, 2> findEntries(const RowAccess &access,
                                        bool isPromised);
  bool areApart(const LinearSystem &pair, Var x, Var y);
  /// Returns a table that would keep the two rows of `pair` apart if its
  /// entries were distinct, or nullopt if there is none. `isPromised` is as in
  /// findEntries().
  std::optional<unsigned> findTable(const LinearSystem &pair,
                                    const RowAccess &a, const RowAccess &b,
                                    bool isPromised);

  /// Executes the launch that `point` describes. Returns Refuted if the run
  /// violates the question; otherwise Unknown.
  Answer conclude(Question question, unsigned argument, const RowAccess *access,
                  const LinearSystem &system,
                  std::optional<LinearSystem::Point> point);
  Answer makeUnknown(Question question, unsigned argument,
                     const RowAccess *access, llvm::StringRef why) const;
  /// Names the unknown values that `access` depends on, for messages.
  std::string describeUnknowns(const RowAccess &access) const;

  KernelOp kernel;
  RowModel model;
  /// The remaining budgets of the current question and of the whole kernel.
  Work work{Budget::question}, all{Budget::kernel};
  /// The number of examples executed so far.
  unsigned examples = 0;
  /// The number of ops that further examples may execute.
  int64_t steps = Budget::steps;
  /// The (index, size) pairs with 0 <= index < size at every point of the grid.
  std::vector<std::pair<Linear, Linear>> inBounds;
  std::vector<OpenIndex> openIndices;
  /// A prover that splits overflow into cases. Null until it is needed.
  std::unique_ptr<Prover> careful;
};

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_PROVER_H
