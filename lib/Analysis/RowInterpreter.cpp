//===- RowInterpreter.cpp - a kernel's accesses, run ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Numbers.h"
#include "lib/Analysis/RowInterpreterImpl.h"
#include "lib/Analysis/RowModel.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlafix;

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
    if (isReplay && isa<StateType>(result.getType()))
      values[result] = computeLse(&op, [&](Value value) { return get(value); });
    if (!isNumber(result.getType()))
      continue;
    if (auto lse = dyn_cast<LseOfOp>(op); lse && isReplay) {
      values[result] = get(lse.getState());
      continue;
    }
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

bool RowInterpreter::note(Operation &op) {
  auto assumption = dyn_cast<AssumeOp>(op);
  // A launch that is refused, or one that breaks a promise, refutes nothing.
  if (!isReplay)
    return !assumption || get(assumption.getCondition()).value_or(0) != 0;
  if (assumption && get(assumption.getCondition()) == 0)
    watch.breaks(assumption, row);
  if (auto distinct = dyn_cast<DistinctOp>(op))
    watch.check(distinct, launch);
  if (auto print = dyn_cast<PrintOp>(op))
    watch.print(print, row, [&](Value value) { return get(value); });
  return true;
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
  if (isa<AssumeOp, DistinctOp, PrintOp>(op))
    return note(op);
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
  if (auto loaded = dyn_cast<LoadStateOp>(op)) {
    loadState(loaded);
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
  watch.finish(result);
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
