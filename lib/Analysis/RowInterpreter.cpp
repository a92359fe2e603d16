//===- RowInterpreter.cpp - a kernel's accesses, run ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/RowInterpreter.h"

#include "lib/Analysis/AccessLog.h"
#include "lib/Analysis/Numbers.h"
#include "lib/Analysis/RowModel.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlafix;

namespace {
using Element = SmallVector<int64_t>;
using Place = AccessLog::Place;

class RowInterpreter {
public:
  RowInterpreter(KernelOp kernel, const SmallLaunch &launch, Oracle oracle,
                 ArrayRef<int64_t> segments)
      : kernel(kernel), launch(launch), oracle(oracle), segments(segments),
        log(kernel, launch) {}

  std::optional<std::vector<Violation>> run();
  Replay replay();

private:
  bool runDense(ForallOp grid);
  bool runRagged(RaggedForallOp grid);
  /// Runs the body for each tuple of inner indices.
  bool runRows(Block &body, ArrayRef<int64_t> outer, ValueRange extents);
  /// False: the budget is used up.
  bool runBlock(Block &block);
  bool runOp(Operation &op);
  bool runLoop(scf::ForOp loop);
  bool runWhile(scf::WhileOp loop);
  void compute(Operation &op);
  void load(LoadOp op);
  /// Whether the access happens, and within bounds.
  bool access(const MemoryAccess &access);

  std::optional<int64_t> get(Value value);
  /// The same of a value on which it depends what is accessed; 0 where it is
  /// not known, and then the row is left.
  int64_t need(Value value);
  bool isNumber(Type type) const {
    return type.isIntOrIndex() || (isReplay && type.isF32());
  }
  /// What memory holds there, or what else an op gives.
  std::optional<int64_t> read(LoadOp op, const Place &place);
  void noteStored(const MemoryAccess &access, const Element &element);
  void setAll(ValueRange targets, ValueRange sources);

  KernelOp kernel;
  const SmallLaunch &launch;
  Oracle oracle;
  ArrayRef<int64_t> segments;
  DenseMap<Value, std::optional<int64_t>> values;
  SmallVector<int64_t> row;
  std::map<Place, std::optional<int64_t>> memory;
  AccessLog log;
  int64_t steps = 0, maxSteps = 100000;
  bool isReplay = false, isUnknown = false; ///< the latter: of this row
  int64_t unknownRows = 0;

  static constexpr int64_t kReplaySteps = 1000000;
};
} // namespace

std::optional<int64_t> RowInterpreter::get(Value value) {
  auto it = values.find(value);
  if (it != values.end())
    return it->second;
  BlockArgument argument = getKernelArgument(value);
  if (argument && isNumber(value.getType()))
    return launch.scalars.lookup(argument.getArgNumber());
  return std::nullopt;
}

int64_t RowInterpreter::need(Value value) {
  std::optional<int64_t> number = get(value);
  isUnknown |= isReplay && !number;
  return number.value_or(0);
}

void RowInterpreter::setAll(ValueRange targets, ValueRange sources) {
  SmallVector<std::optional<int64_t>> passed;
  for (Value source : sources)
    passed.push_back(get(source));
  for (auto [target, value] : llvm::zip(targets, passed))
    values[target] = value;
}

bool RowInterpreter::access(const MemoryAccess &access) {
  unsigned argument = access.getArgNumber();
  if (llvm::is_contained(launch.absent, argument) ||
      (access.predicate && need(access.predicate) == 0))
    return false;
  ArrayRef<int64_t> sizes = launch.sizes.find(argument)->second;
  Element element;
  bool isInside = true;
  for (auto [index, size] : llvm::zip(access.indices, sizes)) {
    element.push_back(need(index));
    isInside &= element.back() >= 0 && element.back() < size;
  }
  if (isUnknown)
    return false;
  if (!isInside) {
    log.report(Question::Bounds, argument, access.op, row, element);
    return false;
  }
  if (!access.isTile) {
    log.add(access, row, element);
    if (access.isWrite)
      noteStored(access, element);
    return true;
  }
  for (int64_t i = 0; i < std::min(sizes.back(), AccessLog::kMaxTile); ++i) {
    element.push_back(i);
    log.add(access, row, element);
    element.pop_back();
  }
  return true;
}

void RowInterpreter::noteStored(const MemoryAccess &access,
                                const Element &element) {
  Place place = {access.getArgNumber(), {element.begin(), element.end()}};
  if (!isReplay) {
    memory.erase(place);
    return;
  }
  auto store = dyn_cast<StoreOp>(access.op);
  memory[place] = store ? get(store.getValue()) : std::nullopt;
}

std::optional<int64_t> RowInterpreter::read(LoadOp op, const Place &place) {
  if (!isReplay)
    return oracle(op, row);
  auto found = launch.elements.find(place.first);
  if (found == launch.elements.end())
    return std::nullopt;
  size_t at = 0;
  for (auto [index, size] :
       llvm::zip(place.second, launch.sizes.find(place.first)->second))
    at = at * size + index;
  return at < found->second.size() ? std::optional(found->second[at])
                                   : std::nullopt;
}

void RowInterpreter::load(LoadOp op) {
  MemoryAccess access = op.getAccesses().front();
  bool happens = this->access(access);
  if (isRowTile(op.getType()) || !isNumber(op.getType()))
    return;
  if (!happens) {
    bool isOff = access.predicate && get(access.predicate) == 0;
    values[op] = isOff && op.getOther() ? get(op.getOther()) : 0;
    return;
  }
  Place place = {access.getArgNumber(), {}};
  for (Value index : access.indices)
    place.second.push_back(get(index).value_or(0));
  auto [it, isNew] = memory.try_emplace(place, 0);
  if (isNew)
    it->second = read(op, place);
  values[op] = it->second;
}

/// What an op gives for constants, as the compiler folds it.
void RowInterpreter::compute(Operation &op) {
  SmallVector<Attribute> operands;
  for (Value operand : op.getOperands()) {
    std::optional<int64_t> value = get(operand);
    Type type = operand.getType();
    operands.push_back(value && isNumber(type) ? attributeOf(type, *value)
                                               : Attribute());
  }
  SmallVector<OpFoldResult> results;
  bool isFolded = llvm::all_of(operands, [](Attribute a) { return !!a; }) &&
                  succeeded(op.fold(operands, results)) && !results.empty();
  for (auto [index, result] : llvm::enumerate(op.getResults())) {
    if (!isNumber(result.getType()))
      continue;
    std::optional<int64_t> number;
    if (isFolded) {
      auto known = dyn_cast<Value>(results[index]);
      number = known ? get(known) : numberOf(cast<Attribute>(results[index]));
      if (known || number) {
        values[result] = number;
        continue;
      }
    }
    values[result] =
        isReplay ? std::nullopt : std::optional(oracle(result, row));
  }
}

bool RowInterpreter::runLoop(scf::ForOp loop) {
  int64_t low = need(loop.getLowerBound()), high = need(loop.getUpperBound()),
          step = get(loop.getStep()).value_or(1);
  setAll(loop.getRegionIterArgs(), loop.getInitArgs());
  for (int64_t i = low; step > 0 && i < high; i += step) {
    values[loop.getInductionVar()] = i;
    if (!runBlock(*loop.getBody()))
      return false;
    if (isUnknown)
      return true;
    setAll(loop.getRegionIterArgs(),
           loop.getBody()->getTerminator()->getOperands());
    if (i > high - step)
      break;
  }
  setAll(loop.getResults(), loop.getRegionIterArgs());
  return true;
}

bool RowInterpreter::runWhile(scf::WhileOp loop) {
  setAll(loop.getBeforeArguments(), loop.getInits());
  while (true) {
    if (!runBlock(*loop.getBeforeBody()))
      return false;
    auto condition = loop.getConditionOp();
    if (need(condition.getCondition()) == 0) {
      setAll(loop.getResults(), condition.getArgs());
      return true;
    }
    setAll(loop.getAfterArguments(), condition.getArgs());
    if (!runBlock(*loop.getAfterBody()))
      return false;
    setAll(loop.getBeforeArguments(), loop.getYieldOp().getOperands());
  }
}

bool RowInterpreter::runOp(Operation &op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return runLoop(loop);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return runWhile(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    Block *taken =
        need(branch.getCondition()) ? branch.thenBlock() : branch.elseBlock();
    if (!taken || isUnknown)
      return true;
    if (!runBlock(*taken))
      return false;
    setAll(branch.getResults(), taken->getTerminator()->getOperands());
    return true;
  }
  // A launch that is refused, or one that breaks a promise, shows nothing.
  if (auto assumption = dyn_cast<AssumeOp>(op))
    return get(assumption.getCondition()).value_or(0) != 0;
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    unsigned argument = getKernelArgument(dim.getSource()).getArgNumber();
    bool isAbsent = llvm::is_contained(launch.absent, argument);
    values[dim.getResult()] =
        isAbsent ? 0
                 : launch.sizes.find(argument)->second[*dim.getConstantIndex()];
    return true;
  }
  if (auto present = dyn_cast<PresentOp>(op)) {
    unsigned argument = getKernelArgument(present.getSource()).getArgNumber();
    values[present.getResult()] = !llvm::is_contained(launch.absent, argument);
    return true;
  }
  if (auto loaded = dyn_cast<LoadOp>(op)) {
    load(loaded);
    return true;
  }
  if (auto accesses = dyn_cast<MemoryAccessOpInterface>(op)) {
    for (const MemoryAccess &one : accesses.getAccesses())
      access(one);
    return true;
  }
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    std::optional<int64_t> condition = get(select.getCondition());
    if (isReplay && !condition)
      values[select] = std::nullopt;
    else
      values[select] = get(condition.value_or(0) ? select.getTrueValue()
                                                 : select.getFalseValue());
    return true;
  }
  compute(op);
  return true;
}

bool RowInterpreter::runBlock(Block &block) {
  for (Operation &op : block) {
    if (++steps > maxSteps)
      return false;
    if (isUnknown)
      return true;
    if (op.hasTrait<OpTrait::IsTerminator>() ||
        isa<ForallOp, RaggedForallOp>(op))
      continue;
    if (!runOp(op))
      return false;
  }
  return true;
}

bool RowInterpreter::runRows(Block &body, ArrayRef<int64_t> outer,
                             ValueRange extents) {
  SmallVector<int64_t> limits, inner(extents.size(), 0);
  for (Value extent : extents)
    limits.push_back(need(extent));
  if (llvm::any_of(limits, [](int64_t limit) { return limit <= 0; }))
    return true;
  while (true) {
    row.assign(outer.begin(), outer.end());
    llvm::append_range(row, inner);
    for (auto [argument, index] : llvm::zip(body.getArguments(), row))
      values[argument] = index;
    isUnknown = false;
    if (!runBlock(body))
      return false;
    unknownRows += isUnknown;
    int64_t dim = inner.size();
    while (dim > 0 && ++inner[dim - 1] == limits[dim - 1])
      inner[--dim] = 0;
    if (dim == 0)
      return true;
  }
}

bool RowInterpreter::runDense(ForallOp grid) {
  return runRows(grid.getBody().front(), {}, grid.getExtents());
}

bool RowInterpreter::runRagged(RaggedForallOp grid) {
  int64_t rows = get(grid.getRows()).value_or(0);
  for (size_t s = 0; s + 1 < segments.size(); ++s) {
    row = {int64_t(s)};
    values[grid.getPredicate().getArgument(0)] = s;
    Block &predicate = grid.getPredicate().front();
    if (!runBlock(predicate))
      return false;
    int64_t start = segments[s], end = segments[s + 1];
    bool counts = get(predicate.getTerminator()->getOperand(0)).value_or(0) &&
                  0 <= start && start <= end && end <= rows;
    for (int64_t t = start; counts && t < end; ++t)
      if (++steps > maxSteps ||
          !runRows(grid.getBody().front(), {int64_t(s), t}, grid.getInner()))
        return false;
  }
  return true;
}

std::optional<std::vector<Violation>> RowInterpreter::run() {
  if (!runBlock(kernel.getBody().front()))
    return std::nullopt;
  Operation *grid = kernel.getGrid();
  bool isDone = isa<ForallOp>(grid) ? runDense(cast<ForallOp>(grid))
                                    : runRagged(cast<RaggedForallOp>(grid));
  if (!isDone)
    return std::nullopt;
  return log.finish();
}

Replay RowInterpreter::replay() {
  isReplay = true;
  maxSteps = kReplaySteps;
  Replay result;
  std::optional<std::vector<Violation>> violations = run();
  result.isWhole = violations.has_value();
  result.violations = violations ? std::move(*violations) : log.finish();
  result.unknownRows = unknownRows;
  if (!result.isWhole || unknownRows)
    llvm::erase_if(result.violations, [](const Violation &violation) {
      return violation.question == Question::Coverage;
    });
  return result;
}

Replay mlafix::replayRows(KernelOp kernel, const SmallLaunch &launch) {
  SmallVector<int64_t> segments;
  if (auto grid = dyn_cast<RaggedForallOp>(kernel.getGrid())) {
    unsigned argument = getKernelArgument(grid.getCuSeqlens()).getArgNumber();
    llvm::append_range(segments, launch.elements.lookup(argument));
  }
  auto nothing = [](Value, ArrayRef<int64_t>) { return int64_t(0); };
  return RowInterpreter(kernel, launch, nothing, segments).replay();
}

std::optional<std::vector<Violation>>
mlafix::interpretRows(KernelOp kernel, const SmallLaunch &launch, Oracle oracle,
                      ArrayRef<int64_t> segments) {
  return RowInterpreter(kernel, launch, oracle, segments).run();
}
