//===- Prover.cpp - proves the answers to the questions -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Prover.h"

#include "dialect/KnownNumbers.h"
#include "lib/Analysis/AccessLog.h"
#include "lib/Analysis/Aliasing.h"
#include "lib/Analysis/Counterexample.h"
#include "lib/Analysis/JoinStores.h"
#include "lib/Analysis/SplitIndices.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <utility>

using namespace mlir;
using namespace mlir::presburger;
using namespace mlafix;

StringRef mlafix::spelling(Question question) {
  constexpr StringLiteral names[] = {"coverage", "one writer", "independence",
                                     "written before read", "bounds"};
  return names[static_cast<int>(question)];
}

StringRef mlafix::spelling(Verdict verdict) {
  constexpr StringLiteral names[] = {"proved", "promised", "unknown",
                                     "refuted"};
  return names[static_cast<int>(verdict)];
}

SmallVector<const RowAccess *> Prover::accessesOf(unsigned argument,
                                                  bool isWrite) const {
  SmallVector<const RowAccess *> found;
  for (const RowAccess &access : model.getAccesses())
    if (access.access.getArgNumber() == argument &&
        access.access.isWrite == isWrite)
      found.push_back(&access);
  return found;
}

/// True if the access belongs to the predicate of a ragged grid. Such an access
/// executes per segment, not per row.
static bool isOfSegment(const RowAccess &access) {
  auto grid = access.access.op->getParentOfType<RaggedForallOp>();
  return grid &&
         grid.getPredicate().isAncestor(access.access.op->getParentRegion());
}

void Prover::assumeAccess(LinearSystem &system, const RowAccess &access,
                          unsigned instance) {
  assumeAccess(system, access, access.condition, instance);
}

void Prover::assumeAccess(LinearSystem &system, const RowAccess &access,
                          const Condition &condition, unsigned instance) {
  ArrayRef<Var> grid = model.getGridIndices();
  for (Var var : isOfSegment(access) ? grid.take_front(1) : grid)
    (void)system.getColumn(var, instance);
  for (Var var : access.loops)
    (void)system.getColumn(var, instance);
  system.restrict(condition, instance);
  if (instance == 0)
    system.restrict(model.getLaunchCheck());
}

static const Answer &worse(const Answer &a, const Answer &b) {
  return static_cast<int>(b.verdict) > static_cast<int>(a.verdict) ? b : a;
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

Answer Prover::askIndex(const RowAccess &access, unsigned dim,
                        bool wantsExample) {
  unsigned argument = access.access.getArgNumber();
  const Linear &index = access.indices[dim];
  Linear size = model.getSize(argument, dim);
  Answer answer = {Question::Bounds, argument};
  bool isKnown = llvm::any_of(inBounds, [&](auto &known) {
    return known.first == index && known.second == size;
  });
  if (isKnown)
    return answer;
  for (bool isBelow : {true, false}) {
    LinearSystem outside(model, work);
    Form form = outside.getForm(index);
    outside.restrict(isBelow ? -form - 1 : form - outside.getForm(size));
    assumeAccess(outside, access, access.executes, 0);
    std::optional<bool> none = outside.isEmpty();
    if (none == true)
      continue;
    if (std::optional<std::string> why = keepByPromise(outside, access)) {
      answer.verdict = Verdict::Promised;
      answer.op = access.access.op;
      answer.reason = *why;
      continue;
    }
    if (!none)
      return makeUnknown(Question::Bounds, argument, &access, kTooManyCases);
    if (!wantsExample || model.isUncertain(index))
      return makeUnknown(Question::Bounds, argument, &access, "");
    return conclude(Question::Bounds, argument, &access, outside,
                    outside.findPoint());
  }
  return answer;
}

Answer Prover::askBounds(const RowAccess &access, bool wantsExample) {
  Answer answer = {Question::Bounds, access.access.getArgNumber()};
  // The index of dim `last` is in bounds without a proof in two cases:
  //
  //   - It counts the elements of a slice, and the row length is bound. The
  //     verifier has then checked the slice.
  //   - The access is to a member of every group. The index then counts the
  //     groups of the row.
  unsigned last = access.access.indices.size();
  bool isInside =
      access.access.slice
          ? !getKnownSize(kernel, answer.argument, last).isOfLaunch()
          : access.access.member && !access.access.group;
  for (unsigned dim = 0; dim < access.indices.size(); ++dim) {
    if (isInside && dim == last)
      continue;
    Answer one = askIndex(access, dim,
                          wantsExample && answer.verdict != Verdict::Refuted);
    bool isTrusted =
        one.verdict == Verdict::Proved ||
        (one.verdict == Verdict::Promised && kernel.provesBounds());
    if (!isTrusted)
      openIndices.push_back({access.access, dim});
    answer = worse(answer, one);
  }
  return answer;
}

Answer Prover::proveBounds(unsigned argument) {
  Answer answer = {Question::Bounds, argument};
  for (const RowAccess &access : model.getAccesses())
    if (access.access.getArgNumber() == argument)
      answer =
          worse(answer, askBounds(access, answer.verdict != Verdict::Refuted));
  return answer;
}

//===----------------------------------------------------------------------===//
// Two rows
//===----------------------------------------------------------------------===//

bool mlafix::haveOtherConstants(const RowAccess &a, const RowAccess &b) {
  return llvm::any_of(llvm::zip(a.indices, b.indices), [](const auto &pair) {
    const auto &[x, y] = pair;
    return x.isConstant() && y.isConstant() && x.constant != y.constant;
  });
}

/// True if every row index occurs at the same position in `a` and in `b`.
/// Distinct rows then access distinct elements.
bool Prover::haveDistinctElements(const RowAccess &a, const RowAccess &b) {
  if (isa<RaggedForallOp>(kernel.getGrid()))
    return false;
  return llvm::all_of(model.getRowIndices(), [&](Var row) {
    for (auto [x, y] : llvm::zip(a.indices, b.indices))
      if (x.getVar() == row && y.getVar() == row)
        return true;
    return false;
  });
}

static bool isSplit(ArrayRef<SplitIndex> splits, unsigned position) {
  return llvm::any_of(
      splits, [&](const SplitIndex &split) { return split.has(position); });
}

/// Equates the indices of `a` and `b` at each position. If both accesses split
/// a number into a quotient and a remainder, equates the two dividends instead
/// of the quotients and the remainders.
void Prover::restrictElement(LinearSystem &pair, const RowAccess &a,
                             const RowAccess &b) {
  SmallVector<SplitIndex, 1> equal;
  for (const SplitIndex &x : findSplitIndices(model, a.access))
    for (const SplitIndex &y : findSplitIndices(model, b.access))
      if (haveEqualDividends(x, y)) {
        pair.restrict(
            pair.getForm(x.dividend, 0).add(pair.getForm(y.dividend, 1), -1),
            /*isEquality=*/true);
        equal.push_back(x);
      }
  size_t shared = std::min(a.indices.size(), b.indices.size());
  for (size_t position = 0; position < shared; ++position)
    if (!isSplit(equal, position))
      pair.restrict(pair.getForm(a.indices[position], 0)
                        .add(pair.getForm(b.indices[position], 1), -1),
                    /*isEquality=*/true);
}

void Prover::restrictSigns(LinearSystem &pair, const RowAccess &a) {
  SmallVector<SplitIndex, 1> splits = findSplitIndices(model, a.access);
  for (const SplitIndex &split : splits)
    if (split.keepsSign)
      pair.restrict(pair.getForm(split.dividend, 0));
  for (auto [position, index] : llvm::enumerate(a.indices))
    if (!isSplit(splits, position))
      pair.restrict(pair.getForm(index, 0));
}

/// Returns the system of all pairs of rows in which `a` in the first row
/// (instance 0) and `b` in the second row (instance 1) access the same element.
LinearSystem Prover::makePair(const RowAccess &a, const RowAccess &b) {
  LinearSystem pair(model, work);
  restrictElement(pair, a, b);
  assumeAccess(pair, a, 0);
  assumeAccess(pair, b, 1);
  return pair;
}

void Prover::restrictInside(LinearSystem &pair, const RowAccess &a) {
  restrictSigns(pair, a);
  SmallVector<SplitIndex, 1> splits = findSplitIndices(model, a.access);
  for (auto [dim, index] : llvm::enumerate(a.indices)) {
    if (isSplit(splits, dim))
      continue;
    Form form = pair.getForm(index, 0);
    Linear size = model.getSize(a.access.getArgNumber(), dim);
    pair.restrict(pair.getForm(size) - form - 1);
  }
}

/// Returns makePair(a, b), restricted to rows whose grid indices agree before
/// `position` and differ at it. If `isAscending`, the index of instance 1 is
/// the larger one. If `isPromised`, assumes that the segments of the two rows
/// do not overlap.
LinearSystem Prover::makePair(const RowAccess &a, const RowAccess &b,
                              unsigned position, bool isAscending,
                              bool isPromised) {
  LinearSystem pair = makePair(a, b);
  ArrayRef<Var> grid = model.getGridIndices();
  auto difference = [&](Var var) {
    Form form = pair.getForm(Linear::of(var), 1);
    return form.add(pair.getForm(Linear::of(var), 0), -1);
  };
  for (Var var : grid.take_front(position))
    pair.restrict(difference(var), /*isEquality=*/true);
  pair.restrict((isAscending ? 1 : -1) * difference(grid[position]) - 1);
  if (isPromised && position == 0) {
    auto [start, end] = *model.getSegmentEnds();
    unsigned first = isAscending ? 0 : 1;
    pair.restrict(pair.getForm(Linear::of(start), 1 - first)
                      .add(pair.getForm(Linear::of(end), first), -1));
  }
  return pair;
}

Answer Prover::concludePair(Question question, unsigned argument,
                            const RowAccess &a, const RowAccess &b,
                            const LinearSystem &pair,
                            const LinearSystem &apart) {
  // If an index depends on memory contents, the answer is unknown.
  for (const RowAccess *access : {&a, &b}) {
    if (!model.isUncertain(access->indices))
      continue;
    Answer open = makeUnknown(question, argument, access, "");
    if (auto table = findTable(apart, a, b, /*isPromised=*/false))
      open.table = kernel.getArgName(*table).str();
    return open;
  }
  Answer answer = conclude(question, argument, &b, pair, pair.findPoint());
  answer.other = a.access.op;
  return answer;
}

Answer Prover::meet(Question question, unsigned argument, const RowAccess &a,
                    const RowAccess &b) {
  Answer answer = {question, argument};
  if (haveDistinctElements(a, b) || haveOtherConstants(a, b))
    return answer;
  // An access in the predicate of a segment belongs to no row, so it is paired
  // with every row.
  if (isOfSegment(b)) {
    LinearSystem pair = makePair(a, b);
    if (pair.isEmpty() == true)
      return answer;
    return conclude(question, argument, &b, pair, pair.findPoint());
  }
  bool isRagged = model.getSegmentEnds().has_value();
  for (unsigned i = 0; i < model.getGridIndices().size(); ++i)
    for (bool isAscending : {true, false}) {
      if (&a == &b && !isAscending)
        continue;
      LinearSystem pair = makePair(a, b, i, isAscending, /*isPromised=*/false);
      std::optional<bool> none = pair.isEmpty();
      if (none == true)
        continue;
      std::optional<std::string> why = keepByPromise(pair, a, b);
      // Assume that the segments of a ragged grid do not overlap.
      LinearSystem apart = makePair(a, b, i, isAscending, isRagged);
      if (!why && isRagged)
        why = keepBySegments(apart, a, b);
      if (why) {
        // Keep the reason of the outermost grid index that relies on a promise:
        // in a ragged grid, usually the segment.
        if (answer.verdict != Verdict::Promised)
          answer.reason = *why;
        answer.verdict = Verdict::Promised;
        answer.op = b.access.op;
        continue;
      }
      if (!none)
        return makeUnknown(question, argument, &b, kTooManyCases);
      restrictInside(pair, a);
      if (pair.isEmpty() == true)
        continue;
      restrictInside(apart, a);
      return concludePair(question, argument, a, b, pair, apart);
    }
  return answer;
}

Answer Prover::proveOneWriter(unsigned argument) {
  Answer answer = {Question::OneWriter, argument};
  SmallVector<const RowAccess *> stores = accessesOf(argument, true);
  for (auto [i, a] : llvm::enumerate(stores))
    for (const RowAccess *b : ArrayRef(stores).drop_front(i))
      if (!writeOneNumber(a->access, b->access))
        answer = worse(answer, meet(Question::OneWriter, argument, *a, *b));
  return answer;
}

Answer Prover::proveIndependence(unsigned written, unsigned read) {
  Answer answer = {Question::Independence, read};
  for (const RowAccess *store : accessesOf(written, true))
    for (const RowAccess *load : accessesOf(read, false))
      answer = worse(answer, meet(Question::Independence, read, *store, *load));
  return answer;
}

Answer Prover::proveIndependence(unsigned read) {
  Answer answer = {Question::Independence, read};
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (i == read ? !accessesOf(i, true).empty()
                  : mayBeOneTensor(kernel, i, read))
      answer = worse(answer, proveIndependence(i, read));
  return answer;
}

//===----------------------------------------------------------------------===//
// Written before read
//===----------------------------------------------------------------------===//

/// True if `write` executes before `read` in every iteration of the loops that
/// contain both.
static bool isBefore(Operation *write, Operation *read) {
  for (Operation *op = write; op; op = op->getParentOp())
    if (Operation *other = op->getBlock()->findAncestorOpInBlock(*read))
      return other != op && op->isBeforeInBlock(other);
  return false;
}

Answer Prover::proveWrittenFirst(unsigned argument) {
  SmallVector<const RowAccess *> stores = accessesOf(argument, true);
  for (const RowAccess *load : accessesOf(argument, false)) {
    SmallVector<const RowAccess *> earlier;
    llvm::copy_if(stores, std::back_inserter(earlier),
                  [&](const RowAccess *store) {
                    return isBefore(store->access.op, load->access.op);
                  });
    std::vector<RowAccess> joined = joinStores(model, earlier);
    SmallVector<Form> element;
    LinearSystem cases = makeElements(model, work, kernel, argument, element);
    assumeAccess(cases, *load, 0);
    placeElement(cases, *load, element);
    std::optional<PresburgerSet> missed =
        subtractStores(cases, element, *load, pointersTo(joined));
    std::optional<bool> none =
        missed ? mlafix::isEmpty(*missed, work) : std::optional<bool>();
    if (!none)
      return makeUnknown(Question::WrittenFirst, argument, load, kTooManyCases);
    if (!*none)
      return conclude(Question::WrittenFirst, argument, load, cases,
                      cases.findPoint(*missed));
  }
  return {Question::WrittenFirst, argument};
}

//===----------------------------------------------------------------------===//
// All questions
//===----------------------------------------------------------------------===//

Prover::Prover(KernelOp kernel, bool followsWraps)
    : kernel(kernel), model(kernel, followsWraps) {
  if (auto grid = dyn_cast<ForallOp>(kernel.getGrid()))
    for (auto [var, extent] :
         llvm::zip(model.getGridIndices(), grid.getExtents()))
      inBounds.push_back({Linear::of(var), model.getValue(extent)});
}

Answer Prover::ask(function_ref<Answer(Prover &)> question) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  const int64_t units =
      std::clamp(all.getLeft(), Budget::last, Budget::question);
  work = Work(units);
  Answer answer = question(*this);
  all.spend(units - work.getLeft());
  if (answer.verdict == Verdict::Unknown && model.omitsWraps()) {
    if (!careful)
      careful = std::make_unique<Prover>(kernel, /*followsWraps=*/true);
    const int64_t left = std::max(work.getLeft(), Budget::last);
    careful->work = Work(left);
    Answer other = question(*careful);
    all.spend(left - careful->work.getLeft());
    std::vector<OpenIndex> open = std::exchange(careful->openIndices, {});
    if (other.verdict != Verdict::Unknown) {
      if (other.question == Question::Bounds) {
        llvm::erase_if(openIndices, [&](const OpenIndex &index) {
          return index.access.getArgNumber() == other.argument;
        });
        llvm::append_range(openIndices, open);
      }
      answer = std::move(other);
    }
  }
  answer.microseconds =
      std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  return answer;
}

std::vector<Answer> Prover::run() {
  std::vector<Answer> answers;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    StringRef access = kernel.getArgAccess(i);
    if (access.empty() || access == kAbsent)
      continue;
    bool isRead = !accessesOf(i, false).empty(),
         isWritten = !accessesOf(i, true).empty();
    auto add = [&](auto question) { answers.push_back(ask(question)); };
    if (access == "write") {
      add([&](Prover &prover) { return prover.proveCoverage(i); });
      if (isRead)
        add([&](Prover &prover) { return prover.proveWrittenFirst(i); });
    }
    if (isWritten)
      add([&](Prover &prover) { return prover.proveOneWriter(i); });
    if (isRead)
      add([&](Prover &prover) { return prover.proveIndependence(i); });
    if (isRead || isWritten)
      add([&](Prover &prover) { return prover.proveBounds(i); });
  }
  return answers;
}

KernelProofs::KernelProofs(Operation *op) {
  auto kernel = cast<KernelOp>(op);
  // No question applies if the grid is already lowered to the program of a
  // thread.
  if (!kernel.getGrid())
    return;
  Prover prover(kernel);
  answers = prover.run();
  openIndices = prover.takeOpenIndices();
}

//===----------------------------------------------------------------------===//
// Promises
//===----------------------------------------------------------------------===//

static std::string describeDistinct(KernelOp kernel, unsigned table) {
  return ("the entries of " + kernel.getArgName(table) +
          " that are not negative are distinct")
      .str();
}

std::string mlafix::describePromise(Operation *op) {
  if (auto assumption = dyn_cast<AssumeOp>(op))
    return assumption.getText().str();
  return describeDistinct(
      cast<KernelOp>(op->getParentOp()),
      getKernelArgument(cast<DistinctOp>(op).getTable()).getArgNumber());
}

static std::string describePromises(ArrayRef<StringRef> promises) {
  llvm::SmallSetVector<StringRef, 4> texts(promises.begin(), promises.end());
  return "the kernel assumes " + llvm::join(texts, ", ");
}

std::optional<std::string> Prover::keepByPromise(const LinearSystem &wrong,
                                                 const RowAccess &access) {
  if (access.promises.empty())
    return std::nullopt;
  LinearSystem promised = wrong;
  promised.restrict(access.assumed, 0);
  if (promised.isEmpty() != true)
    return std::nullopt;
  return describePromises(access.promises);
}

static bool isDistinct(Value table) {
  return llvm::any_of(table.getUsers(),
                      [](Operation *user) { return isa<DistinctOp>(user); });
}

/// True if every execution of `load` is inside its table.
bool Prover::isEntry(const RowAccess &load) {
  for (unsigned dim = 0; dim < load.indices.size(); ++dim) {
    Verdict verdict = askIndex(load, dim, /*wantsExample=*/false).verdict;
    if (verdict != Verdict::Proved && verdict != Verdict::Promised)
      return false;
  }
  return true;
}

/// True if `load` executes in row `instance` at every point of `pair`: its
/// table is present, its predicate holds, and the branches to it are taken.
bool Prover::isLoaded(const LinearSystem &pair, LoadOp load,
                      unsigned instance) {
  auto isCertain = [&](const Condition &fails) {
    LinearSystem without = pair;
    without.restrict(fails, instance);
    return without.isEmpty() == true;
  };
  unsigned table = getKernelArgument(load.getSource()).getArgNumber();
  if (kernel.isArgOptional(table) &&
      !isCertain(Condition::is(model.getPresent(table), 0)))
    return false;
  if (load.getPredicate() &&
      !isCertain(model.getCondition(load.getPredicate(), false)))
    return false;
  for (Operation *op = load, *parent = op->getParentOp();
       !isa<ForallOp, RaggedForallOp, KernelOp>(parent);
       op = parent, parent = op->getParentOp())
    if (auto branch = dyn_cast<scf::IfOp>(parent)) {
      bool isThen = op->getParentRegion() == &branch.getThenRegion();
      if (!isCertain(model.getCondition(branch.getCondition(), !isThen)))
        return false;
    }
  return true;
}

const RowAccess *Prover::findAccess(LoadOp load) const {
  for (const RowAccess &access : model.getAccesses())
    if (access.access.op == load.getOperation())
      return &access;
  return nullptr;
}

SmallVector<Var, 2> Prover::findEntries(const RowAccess &access,
                                        bool isPromised) {
  llvm::SmallSetVector<Var, 8> used;
  auto add = [&](const Linear &linear) {
    for (auto [var, coefficient] : linear.terms)
      used.insert(var);
  };
  for (const Linear &index : access.indices)
    add(index);
  for (const SplitIndex &index : findSplitIndices(model, access.access))
    add(index.dividend);
  SmallVector<Var, 2> entries;
  for (size_t i = 0; i < used.size(); ++i) {
    const Variable &variable = model[used[i]];
    for (const Conjunct &conjunct : variable.definition.disjuncts)
      for (const Constraint &constraint : conjunct)
        add(constraint.linear);
    auto load =
        variable.value ? variable.value.getDefiningOp<LoadOp>() : LoadOp();
    bool isTable = load && variable.kind == Variable::Unknown &&
                   !load.getType().isInteger(1) &&
                   (!isPromised || isDistinct(load.getSource()));
    const RowAccess *found = isTable ? findAccess(load) : nullptr;
    if (found && isEntry(*found))
      entries.push_back(used[i]);
  }
  return entries;
}

/// True if `pair` has no point when the entries >= 0 of the table are distinct.
/// `x` and `y` are the entries that the first and the second row read.
bool Prover::areApart(const LinearSystem &pair, Var x, Var y) {
  auto a = model[x].value.getDefiningOp<LoadOp>(),
       b = model[y].value.getDefiningOp<LoadOp>();
  if (a.getSource() != b.getSource() || !isLoaded(pair, a, 0) ||
      !isLoaded(pair, b, 1))
    return false;
  auto isNone = [&](auto restrict) {
    LinearSystem one = pair;
    restrict(one);
    return one.isEmpty() == true;
  };
  auto difference = [&](LinearSystem &system) {
    Form form = system.getForm(Linear::of(y), 1);
    return form.add(system.getForm(Linear::of(x), 0), -1);
  };
  for (int64_t sign : {1, -1})
    if (!isNone([&](LinearSystem &system) {
          system.restrict(sign * difference(system) - 1);
        }))
      return false;
  bool isPadding = !isNone([&](LinearSystem &system) {
    system.restrict(difference(system), /*isEquality=*/true);
    system.restrict(-system.getForm(Linear::of(x), 0) - 1);
  });
  return !isPadding && isNone([&](LinearSystem &system) {
    for (auto [i, j] : llvm::zip(a.getIndices(), b.getIndices()))
      system.restrict(system.getForm(model.getValue(i), 0)
                          .add(system.getForm(model.getValue(j), 1), -1),
                      /*isEquality=*/true);
  });
}

std::optional<unsigned> Prover::findTable(const LinearSystem &pair,
                                          const RowAccess &a,
                                          const RowAccess &b, bool isPromised) {
  for (Var x : findEntries(a, isPromised))
    for (Var y : findEntries(b, isPromised))
      if (areApart(pair, x, y)) {
        auto load = model[x].value.getDefiningOp<LoadOp>();
        return getKernelArgument(load.getSource()).getArgNumber();
      }
  return std::nullopt;
}

std::optional<std::string> Prover::keepByPromise(LinearSystem pair,
                                                 const RowAccess &a,
                                                 const RowAccess &b) {
  SmallVector<StringRef> promises(a.promises.begin(), a.promises.end());
  llvm::append_range(promises, b.promises);
  pair.restrict(a.assumed, 0);
  pair.restrict(b.assumed, 1);
  if (!promises.empty() && pair.isEmpty() == true)
    return describePromises(promises);
  if (kernel.getBody().getOps<DistinctOp>().empty())
    return std::nullopt;
  restrictSigns(pair, a);
  std::optional<unsigned> table = findTable(pair, a, b, /*isPromised=*/true);
  return table ? std::optional(describeDistinct(kernel, *table)) : std::nullopt;
}

std::optional<std::string> Prover::keepBySegments(const LinearSystem &pair,
                                                  const RowAccess &a,
                                                  const RowAccess &b) {
  std::string segments =
      ("the segments of " + model.getSegmentsName() + " do not overlap").str();
  if (pair.isEmpty() == true)
    return segments;
  std::optional<std::string> also = keepByPromise(pair, a, b);
  return also ? std::optional(segments + ", and " + *also) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Conclusions
//===----------------------------------------------------------------------===//

/// Writes an element as "out[0, 1]".
static std::string spellElement(KernelOp kernel, const Violation &violation) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << kernel.getArgName(violation.argument) << "[";
  llvm::interleaveComma(violation.element, stream);
  stream << "]";
  return text;
}

std::string Prover::describeUnknowns(const RowAccess &access) const {
  llvm::SmallSetVector<StringRef, 4> names;
  std::vector<std::string> texts;
  for (Var var : model.getVariables(access))
    if (model[var].kind == Variable::Unknown)
      texts.push_back(describe(model[var]));
  for (const std::string &text : texts)
    names.insert(text);
  return llvm::join(names, ", ");
}

Answer Prover::makeUnknown(Question question, unsigned argument,
                           const RowAccess *access, StringRef why) const {
  Answer answer = {question, argument, Verdict::Unknown};
  answer.reason = why.str();
  if (!access)
    return answer;
  answer.op = access->access.op;
  std::string unknowns = describeUnknowns(*access);
  if (why.empty())
    answer.reason =
        unknowns.empty() ? "no example was found" : "it depends on " + unknowns;
  return answer;
}

Answer Prover::conclude(Question question, unsigned argument,
                        const RowAccess *access, const LinearSystem &system,
                        std::optional<LinearSystem::Point> point) {
  if (!point || ++examples > Budget::examples)
    return makeUnknown(question, argument, access, "");
  Counterexample example(model, system, *point);
  std::optional<Violation> violation = example.run(question, argument, steps);
  if (!violation)
    return makeUnknown(question, argument, access, "");
  Answer answer = {question, argument, Verdict::Refuted};
  answer.op = violation->op ? violation->op
              : access      ? access->access.op
                            : nullptr;
  answer.reason = example.describe(*violation);
  answer.element = spellElement(kernel, *violation);
  return answer;
}
