//===- Counterexample.cpp - launches that refute a question ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Counterexample.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlafix;

Counterexample::Counterexample(RowModel &model, const LinearSystem &system,
                               const LinearSystem::Point &point)
    : model(model), system(system), point(point) {
  for (Var var = 0; var < model.size(); ++var)
    if (model[var].kind == Variable::Unknown)
      unknowns[model[var].value].push_back(var);
  readLaunch();
  readRows();
  readSegments();
}

void Counterexample::readLaunch() {
  KernelOp kernel = model.getKernel();
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    auto type = dyn_cast<MemRefType>(kernel.getArgumentTypes()[i]);
    if (!type) {
      if (kernel.getArgumentTypes()[i].isIntOrIndex())
        if (std::optional<Var> var =
                model.getValue(kernel.getArgument(i)).getVar())
          launch.scalars[i] = get(*var, 0).value_or(0);
      continue;
    }
    auto &sizes = launch.sizes[i];
    for (unsigned dim = 0; dim < model.getRank(i); ++dim) {
      Linear size = model.getSize(i, dim);
      sizes.push_back(size.isConstant() ? size.constant
                                        : get(*size.getVar(), 0).value_or(1));
    }
    if (model.getRank(i) > type.getRank()) {
      int64_t group = launch.groupSizes[i] = sizes.pop_back_val();
      if (__builtin_mul_overflow(sizes.back(), group, &sizes.back()))
        sizes.back() = std::numeric_limits<int64_t>::max();
    }
    bool isOmitted =
        kernel.isArgAbsent(i) || (kernel.isArgOptional(i) &&
                                  get(model.getPresent(i), 0).value_or(1) == 0);
    if (isOmitted)
      launch.absent.push_back(i);
  }
}

void Counterexample::readRows() {
  for (unsigned instance : {0u, 1u}) {
    SmallVector<int64_t> row;
    for (Var var : model.getGridIndices())
      if (std::optional<int64_t> index = get(var, instance))
        row.push_back(*index);
    if (row.size() == model.getGridIndices().size())
      rows.push_back(row);
  }
}

void Counterexample::readSegments() {
  if (!model.getSegmentEnds())
    return;
  auto grid = cast<RaggedForallOp>(model.getKernel().getGrid());
  unsigned argument = getKernelArgument(grid.getCuSeqlens()).getArgNumber();
  int64_t entries = std::min<int64_t>(launch.sizes[argument][0], 1024);
  segments.assign(std::max<int64_t>(entries, 0), 0);
  auto [start, end] = *model.getSegmentEnds();
  for (unsigned instance : {0u, 1u}) {
    std::optional<int64_t> segment = get(model.getGridIndices()[0], instance),
                           first = get(start, instance),
                           past = get(end, instance);
    if (!segment || !first || !past || *segment < 0 || *segment + 1 >= entries)
      continue;
    segments[*segment] = *first;
    segments[*segment + 1] = *past;
  }
}

std::optional<int64_t> Counterexample::find(ArrayRef<Var> vars,
                                            ArrayRef<int64_t> row) const {
  std::optional<int64_t> elsewhere;
  for (Var var : vars) {
    for (auto [instance, known] : llvm::enumerate(rows))
      if (std::optional<int64_t> chosen = get(var, instance)) {
        if (ArrayRef<int64_t>(known) == row)
          return *chosen;
        elsewhere = elsewhere.value_or(*chosen);
      }
    if (std::optional<int64_t> chosen = get(var, 0))
      elsewhere = elsewhere.value_or(*chosen);
  }
  return elsewhere;
}

int64_t Counterexample::choose(Value value, ArrayRef<int64_t> row,
                               int64_t other) {
  if (std::optional<FloatComparison> comparison =
          model.getFloatComparison(value)) {
    Value first = model[comparison->relation].value;
    auto op = first.getDefiningOp<arith::CmpFOp>();
    int64_t relation = find(comparison->relation, row).value_or(other & 3);
    compared.push_back(
        {SmallVector<int64_t>(row), op.getLhs(), op.getRhs(), relation});
    return comparison->outcomes >> relation & 1;
  }
  if (auto itself = value.getDefiningOp<arith::CmpFOp>()) // x compared with x
    compared.push_back({SmallVector<int64_t>(row), itself.getLhs(),
                        itself.getRhs(), /*relation=*/1});
  if (std::optional<int64_t> chosen = find(unknowns.lookup(value), row))
    return *chosen;
  auto best = value.getDefiningOp<TopKOp>();
  if (value.getDefiningOp<ArgReduceOp>() ||
      (best && llvm::is_contained(best.getIndices(),
                                  value))) // an element's index in its row
    return find(*model.getValue(value).getVar(), row).value_or(0);
  if (value.getDefiningOp<TurnOp>())
    return other & 1;
  Interval range = getIntegerRange(value.getType());
  return range.low <= other && other <= range.high ? other : 0;
}

/// True if some floats give all recorded comparisons their assumed outcomes.
/// False if one of the comparisons is not between a float loaded from memory
/// and a finite constant.
bool Counterexample::haveFloats() const {
  for (const Compared &one : compared) {
    APFloat low = APFloat::getInf(APFloat::IEEEdouble(), /*Negative=*/true),
            high = APFloat::getInf(APFloat::IEEEdouble());
    std::optional<APFloat> equal;
    bool isOrdered = false, isUnordered = false;
    if (!one.x.getDefiningOp<LoadOp>())
      return false;
    for (const Compared &also : compared) {
      if (also.row != one.row || (also.x != one.x && also.y != one.x))
        continue;
      APFloat constant(0.0);
      if (also.x != one.x ||
          !matchPattern(also.y, m_ConstantFloat(&constant)) ||
          !constant.isFinite())
        return false;
      bool isExact;
      constant.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                       &isExact);
      (also.relation == 3 ? isUnordered : isOrdered) = true;
      if (also.relation == 0)
        high = minimum(high, constant);
      else if (also.relation == 2)
        low = maximum(low, constant);
      else if (also.relation == 1) {
        if (equal && *equal != constant)
          return false;
        equal = constant;
      }
    }
    if (isUnordered && isOrdered)
      return false;
    if (isOrdered && !(equal ? low < *equal && *equal < high : low < high))
      return false;
  }
  return true;
}

std::optional<Violation>
Counterexample::run(Question question, unsigned argument, int64_t &steps) {
  for (int64_t other : {0, 1, -1, 2}) {
    given.clear();
    compared.clear();
    auto oracle = [&](Value value, ArrayRef<int64_t> row) {
      int64_t chosen = choose(value, row, other);
      given.push_back({SmallVector<int64_t>(row), value, chosen});
      return chosen;
    };
    std::optional<std::vector<Violation>> violations =
        interpretRows(model.getKernel(), launch, oracle, segments, &steps);
    if (!violations)
      return std::nullopt;
    for (Violation &violation : *violations)
      if (violation.question == question && violation.argument == argument &&
          haveFloats())
        return violation;
  }
  return std::nullopt;
}

std::string Counterexample::describe(const Violation &violation) const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::ListSeparator comma;
  auto list = [&](const Twine &name, int64_t value) {
    stream << comma << name << " = " << value;
  };
  for (Var var = 0; var < model.size(); ++var) {
    const Variable &variable = model[var];
    std::optional<int64_t> value = get(var, 0);
    if (!value)
      continue;
    if (variable.kind == Variable::Size || variable.kind == Variable::Scalar)
      list(variable.name, *value);
    if (variable.kind == Variable::Present && *value == 0)
      stream << comma << variable.name << " omitted";
  }
  if (!segments.empty()) {
    stream << comma << model.getSegmentsName() << " = [";
    llvm::interleaveComma(segments, stream);
    stream << "]";
  }
  if (!violation.row.empty())
    for (auto [var, index] : llvm::zip(model.getGridIndices(), violation.row))
      list(model[var].name, index);
  llvm::StringSet<> named;
  for (const Given &one : given) {
    if (!violation.row.empty() && one.row != violation.row)
      continue;
    Variable unknown;
    unknown.value = one.unknown;
    std::string name = mlafix::describe(unknown);
    if (named.size() < 4 && named.insert(name).second)
      stream << comma << name << " is " << one.value;
  }
  return text;
}
