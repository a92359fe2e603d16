//===- RowValues.cpp - SSA values as linear forms and conditions ----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/RowModel.h"

#include <limits>

using namespace mlir;
using namespace mlafix;

Linear RowModel::getValue(Value value) {
  auto it = values.find(value);
  if (it != values.end())
    return it->second;
  Linear linear;
  if (std::optional<int64_t> number = getInteger(value)) {
    linear = Linear::of(*number);
  } else if (auto argument = dyn_cast<BlockArgument>(value)) {
    linear = buildArgument(argument);
  } else {
    std::optional<Linear> built = buildResult(value);
    linear = built ? *built : addOpaque(value);
  }
  return values[value] = linear;
}

Linear RowModel::buildArgument(BlockArgument argument) {
  auto it = gridVars.find(argument);
  if (it != gridVars.end())
    return Linear::of(it->second);
  if (BlockArgument scalar = getKernelArgument(argument)) {
    unsigned index = scalar.getArgNumber();
    auto bound = kernel.getArgAttrOfType<StringAttr>(index, kAtMostAttr);
    Linear size;
    if (bound) {
      std::optional<int64_t> fixed = getFixedSize(kernel, bound.getValue());
      size = fixed ? Linear::of(*fixed)
                   : Linear::of(getNamedSize(bound.getValue()));
    }
    auto define = [&](Var var) -> std::optional<Condition> {
      if (!bound)
        return Condition::always();
      return Condition::of(*add(size, Linear::of(var), -1));
    };
    Interval range = getIntegerRange(argument.getType());
    if (bound)
      range = {0, std::min(range.high, getRange(size).high)};
    Var var = addDerived(argument, range, define);
    variables[var].kind = Variable::Scalar;
    variables[var].name = kernel.getArgName(index).str();
    variables[var].isLaunch = true;
    return Linear::of(var);
  }
  auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
  if (loop && argument == loop.getInductionVar())
    return buildLoopIndex(loop);
  return addOpaque(argument);
}

/// lower + step * k below upper, of a loop that steps up by a constant.
Linear RowModel::buildLoopIndex(scf::ForOp loop) {
  Value value = loop.getInductionVar();
  Interval type = getIntegerRange(value.getType());
  std::optional<int64_t> step = getInteger(loop.getStep());
  auto addLoopVar = [&](Interval range, auto define) {
    Var var = addDerived(value, range, define);
    variables[var].kind = Variable::Loop;
    variables[var].isLaunch = false;
    variables[var].name = "iteration";
    return var;
  };
  if (!step || *step < 1 || *step > (1 << 20) || loop.getUnsignedCmp()) {
    Var var = addLoopVar(type, [](Var) -> std::optional<Condition> {
      return Condition::always();
    });
    variables[var].isUncertain = true;
    return Linear::of(var);
  }
  Linear lower = getValue(loop.getLowerBound()),
         upper = getValue(loop.getUpperBound());
  Interval low = getRange(lower), high = getRange(upper);
  auto isWithin = [&](const Linear &index) -> std::optional<Condition> {
    std::optional<Linear> above = add(index, lower, -1),
                          below = add(upper, index, -1);
    if (!above || !below ||
        __builtin_sub_overflow(below->constant, 1, &below->constant))
      return std::nullopt;
    return Condition{{Conjunct{{*above}, {*below}}}};
  };
  if (*step == 1)
    return Linear::of(
        addLoopVar({low.low, std::max(low.low, high.high - 1)},
                   [&](Var var) { return isWithin(Linear::of(var)); }));
  __int128 most = std::max<__int128>(high.high - low.low, 0) / *step + 1;
  Var count = addLoopVar({0, std::min<__int128>(most, kMaxI64)},
                         [&](Var var) -> std::optional<Condition> {
                           std::optional<Linear> index =
                               add(lower, Linear::of(var), *step);
                           return index ? isWithin(*index) : std::nullopt;
                         });
  std::optional<Linear> index = add(lower, Linear::of(count), *step);
  return index ? *index : addOpaque(value);
}

/// An omitted tensor has dims of size 0.
Linear RowModel::buildDim(Value value, unsigned argument, unsigned dim) {
  Linear size = getSize(argument, dim);
  if (!kernel.isArgOptional(argument) || size.isConstant())
    return size;
  Var present = getPresent(argument);
  Var var = addDerived(
      value, {0, kMaxSize}, [&](Var var) -> std::optional<Condition> {
        Linear isThere = Linear::of(present);
        isThere.constant = -1;
        std::optional<Linear> same = add(size, Linear::of(var), -1);
        if (!same)
          return std::nullopt;
        return Condition{
            {Conjunct{{isThere, true}, {*same, true}},
             Conjunct{{Linear::of(present), true}, {Linear::of(var), true}}}};
      });
  return Linear::of(var);
}

/// Whether nothing that a launch allows writes what the argument reads.
static bool isNeverWritten(KernelOp kernel, unsigned argument) {
  if (kernel.getArgAccess(argument) != "read")
    return false;
  for (unsigned other = 0; other < kernel.getNumArguments(); ++other) {
    auto written = dyn_cast<MemRefType>(kernel.getArgumentTypes()[other]);
    StringRef access = kernel.getArgAccess(other);
    auto read = cast<MemRefType>(kernel.getArgumentTypes()[argument]);
    if (written && access != "read" && access != kAbsent &&
        written.getElementType() == read.getElementType() &&
        kernel.getArgDims(other) == kernel.getArgDims(argument))
      return false;
  }
  return true;
}

/// An unknown of the element's range, the same for every load of an element
/// that does not change.
Linear RowModel::buildLoad(LoadOp load) {
  BlockArgument source = getKernelArgument(load.getSource());
  if (!source || isRowTile(load.getType()))
    return addOpaque(load);
  if (isNeverWritten(kernel, source.getArgNumber()))
    for (Operation *user : source.getUsers()) {
      auto other = dyn_cast<LoadOp>(user);
      auto known = other ? values.find(other.getResult()) : values.end();
      if (known != values.end() && other != load &&
          other.getType() == load.getType() &&
          other.getPredicate() == load.getPredicate() &&
          other.getOther() == load.getOther() &&
          llvm::equal(other.getIndices(), load.getIndices()) &&
          other.getGroup() == load.getGroup() &&
          other.getMember() == load.getMember() &&
          load->getParentOp() == other->getParentOp())
        return known->second;
    }
  Interval range =
      getIntegerRange(cast<MemRefType>(source.getType()).getElementType());
  if (!load.getPredicate())
    return Linear::of(addUnknown(load, range));
  Linear other =
      load.getOther() ? getValue(load.getOther()) : Linear::of(int64_t(0));
  Interval none = getRange(other);
  Interval all = {std::min(range.low, none.low),
                  std::max(range.high, none.high)};
  bool isDistinct = llvm::any_of(
      source.getUsers(), [](Operation *user) { return isa<DistinctOp>(user); });
  if (!isDistinct)
    return Linear::of(addUnknown(load, all));
  // Of such a table it matters which values are entries.
  Linear entry = Linear::of(addUnknown(load, range));
  return chooseLinear(load, load.getPredicate(), entry, other);
}

/// At least 0, and below the length of the row.
Linear RowModel::buildElementIndex(ArgReduceOp op) {
  DimAttr dim = getTileDim(op.getSource().getType());
  Linear size = dim.isBound() ? Linear::of(dim.getSize())
                              : Linear::of(getNamedSize(dim.getText()));
  Var var = addDerived(
      op, {0, kMaxSize - 1}, [&](Var var) -> std::optional<Condition> {
        std::optional<Linear> after = add(size, Linear::of(var), -1);
        if (!after ||
            __builtin_sub_overflow(after->constant, 1, &after->constant))
          return std::nullopt;
        return both(Condition::of(Linear::of(var)), Condition::of(*after));
      });
  return Linear::of(var);
}

Linear RowModel::buildChoice(Value value, Value condition, Value x, Value y) {
  return chooseLinear(value, condition, getValue(x), getValue(y));
}

Linear RowModel::chooseLinear(Value value, Value condition, const Linear &a,
                              const Linear &b) {
  Condition holds = getCondition(condition, true),
            fails = getCondition(condition, false);
  Interval p = getRange(a), q = getRange(b);
  Var var = addDerived(
      value, {std::min(p.low, q.low), std::max(p.high, q.high)},
      [&](Var var) -> std::optional<Condition> {
        std::optional<Linear> isA = add(a, Linear::of(var), -1),
                              isB = add(b, Linear::of(var), -1);
        if (!isA || !isB)
          return std::nullopt;
        std::optional<Condition> first = both(holds, Condition::of(*isA, true)),
                                 second =
                                     both(fails, Condition::of(*isB, true));
        return first && second ? either(*first, *second) : std::nullopt;
      });
  return Linear::of(var);
}
