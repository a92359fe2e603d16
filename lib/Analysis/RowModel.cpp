//===- RowModel.cpp - a row's integers as linear forms --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/RowModel.h"

#include "dialect/KnownNumbers.h"
#include "lib/Analysis/Aliasing.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace mlafix;

Interval mlafix::getIntegerRange(Type type) {
  if (type.isIndex())
    return {kMinI64, kMaxI64};
  // Ranges of wider types are cut to 100 bits, so that sums of their ends do
  // not overflow.
  unsigned width = std::min(type.getIntOrFloatBitWidth(), 100u);
  if (type.isUnsignedInteger() || width == 1)
    return {0, (__int128(1) << width) - 1};
  return {-(__int128(1) << (width - 1)), (__int128(1) << (width - 1)) - 1};
}

std::optional<int64_t> mlafix::getInteger(Value value) {
  APInt number;
  if (!matchPattern(value, m_ConstantInt(&number)) || number.getBitWidth() > 64)
    return std::nullopt;
  return value.getType().isInteger(1) ? int64_t(number.getZExtValue())
                                      : number.getSExtValue();
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

Var RowModel::addUnknown(Value value, Interval range, StringRef name) {
  return addVariable({Variable::Unknown, name.str(), value, range,
                      Condition::always(), /*isLaunch=*/false,
                      /*isUncertain=*/true});
}

Linear RowModel::addOpaque(Value value) {
  return Linear::of(addUnknown(value, getIntegerRange(value.getType())));
}

Var RowModel::addDerived(Value value, Interval range,
                         function_ref<std::optional<Condition>(Var)> define,
                         Variable::Kind kind, StringRef name) {
  Var var = addVariable({kind, name.str(), value, range});
  std::optional<Condition> known = define(var);
  Condition definition = known.value_or(Condition::always());
  bool isLaunch = known.has_value(), isUncertain = !known;
  for (const Conjunct &conjunct : definition.disjuncts)
    for (const Constraint &constraint : conjunct)
      for (auto [used, coefficient] : constraint.linear.terms)
        if (used != var) {
          isLaunch &= variables[used].isLaunch;
          isUncertain |= variables[used].isUncertain;
        }
  if (!known && kind == Variable::Derived)
    kind = Variable::Unknown;
  bool isIndex = kind == Variable::Grid || kind == Variable::Loop;
  Variable &variable = variables[var];
  variable.kind = kind;
  variable.definition = std::move(definition);
  variable.isLaunch = kind == Variable::Scalar || (isLaunch && !isIndex);
  variable.isUncertain = isUncertain || kind == Variable::Unknown;
  return var;
}

Var RowModel::addSize(const Twine &name, int64_t least, int64_t most) {
  return addVariable({Variable::Size,
                      name.str(),
                      Value(),
                      {least, most},
                      Condition::always(),
                      /*isLaunch=*/true});
}

Var RowModel::getNamedSize(StringRef name) {
  auto it = namedSizes.find(name);
  if (it != namedSizes.end())
    return it->second;
  KnownNumber size = getKnownSize(kernel, name);
  return namedSizes[name] =
             addSize(name, size.least, size.most.value_or(kMaxSize));
}

Var RowModel::getPresent(unsigned argument) {
  auto it = presences.find(argument);
  if (it != presences.end())
    return it->second;
  return presences[argument] = addVariable({Variable::Present,
                                            kernel.getArgName(argument).str(),
                                            kernel.getArgument(argument),
                                            {0, 1},
                                            Condition::always(),
                                            /*isLaunch=*/true});
}

Interval RowModel::getTermRange(const Linear &linear) const {
  Interval range = {linear.constant, linear.constant};
  for (auto [var, coefficient] : linear.terms) {
    Interval one = variables[var].range;
    // The ends of ranges have 64 bits. A large coefficient could make 128-bit
    // sums overflow, so such a form has an unknown range.
    if (coefficient > (1 << 20) || coefficient < -(1 << 20))
      return {-(__int128(1) << 120), __int128(1) << 120};
    __int128 a = one.low * coefficient, b = one.high * coefficient;
    range.low += std::min(a, b);
    range.high += std::max(a, b);
  }
  return range;
}

/// Returns the range of a form. If the form contains a remainder, dividend -
/// divisor * quotient, the range is tighter than that of its terms, because the
/// remainder is in [0, divisor - 1].
Interval RowModel::getRange(const Linear &linear) const {
  Interval range = getTermRange(linear);
  // A later quotient may depend on earlier ones, so go backwards.
  for (const Quotient &known : llvm::reverse(quotients)) {
    auto *term = llvm::find_if(
        linear.terms, [&](auto &term) { return term.first == known.var; });
    if (term == linear.terms.end() || term->second % known.divisor != 0)
      continue;
    int64_t times = -(term->second / known.divisor);
    std::optional<Linear> remainder =
        add(known.dividend, Linear::of(known.var), -known.divisor);
    std::optional<Linear> others = add(linear, remainder, -times);
    if (!others)
      continue;
    Interval rest = getRange(*others);
    __int128 most = __int128(times) * (known.divisor - 1);
    range.low = std::max(range.low, rest.low + std::min<__int128>(most, 0));
    range.high = std::min(range.high, rest.high + std::max<__int128>(most, 0));
    break;
  }
  return range;
}

bool RowModel::isLaunch(const Linear &linear) const {
  return llvm::all_of(
      linear.terms, [&](auto &term) { return variables[term.first].isLaunch; });
}

bool RowModel::isUncertain(const Linear &linear) const {
  return llvm::any_of(linear.terms, [&](auto &term) {
    return variables[term.first].isUncertain;
  });
}

bool RowModel::isUncertain(const Condition &condition) const {
  for (const Conjunct &conjunct : condition.disjuncts)
    for (const Constraint &constraint : conjunct)
      if (isUncertain(constraint.linear))
        return true;
  return false;
}

llvm::SmallSetVector<Var, 16> RowModel::getVariables(const RowAccess &access,
                                                     ArrayRef<Var> also) const {
  llvm::SmallSetVector<Var, 16> found;
  auto add = [&](const Linear &linear) {
    for (auto [var, coefficient] : linear.terms)
      found.insert(var);
  };
  auto addCondition = [&](const Condition &condition) {
    for (const Conjunct &conjunct : condition.disjuncts)
      for (const Constraint &constraint : conjunct)
        add(constraint.linear);
  };
  llvm::for_each(access.indices, add);
  for (Var var : llvm::concat<const Var>(also, access.loops))
    found.insert(var);
  addCondition(access.condition);
  for (size_t i = 0; i < found.size(); ++i)
    addCondition(variables[found[i]].definition);
  return found;
}

//===----------------------------------------------------------------------===//
// The grid and its accesses
//===----------------------------------------------------------------------===//

Var RowModel::addIndex(Value value, const Linear &extent, Variable::Kind kind,
                       StringRef name) {
  Interval most = getRange(extent);
  return addDerived(
      value, {0, std::max<__int128>(most.high - 1, 0)},
      [&](Var var) { return isBelow(Linear::of(var), extent); }, kind, name);
}

void RowModel::addGrid() {
  auto addGridIndex = [&](BlockArgument argument, const Linear &extent) {
    char name = 'i' + std::min<size_t>(gridIndices.size(), 16);
    Var var = addIndex(argument, extent, Variable::Grid, StringRef(&name, 1));
    gridVars[argument] = var;
    gridIndices.push_back(var);
    if (!(extent.isConstant() && extent.constant == 1))
      rowIndices.push_back(var);
  };
  if (auto grid = dyn_cast<ForallOp>(kernel.getGrid())) {
    for (auto [argument, extent] :
         llvm::zip(grid.getBody().getArguments(), grid.getExtents()))
      addGridIndex(argument, getValue(extent));
    return;
  }
  auto grid = cast<RaggedForallOp>(kernel.getGrid());
  addSegments(grid);
  for (auto [argument, extent] :
       llvm::zip(grid.getBody().getArguments().drop_front(2), grid.getInner()))
    addGridIndex(argument, getValue(extent));
}

/// Adds the indices of a ragged grid. They satisfy 0 <= segment < entries - 1
/// and 0 <= start <= row < end <= rows.
void RowModel::addSegments(RaggedForallOp grid) {
  unsigned argument = getKernelArgument(grid.getCuSeqlens()).getArgNumber();
  Linear entries = getSize(argument, 0), rows = getValue(grid.getRows());
  Value segment = grid.getBody().getArgument(0);
  Linear segments = entries;
  segments.constant -= 1;
  Var var = addIndex(segment, segments, Variable::Grid, "segment");
  gridVars[segment] = var;
  gridVars[grid.getPredicate().getArgument(0)] = var;
  gridIndices.push_back(var);

  constexpr int64_t maxI32 = std::numeric_limits<int32_t>::max();
  Var start = addUnknown(grid.getCuSeqlens(), {0, maxI32}, "start"),
      end = addUnknown(grid.getCuSeqlens(), {0, maxI32}, "end");
  segmentEnds = {start, end};
  Value index = grid.getBody().getArgument(1);
  auto define = [&](Var var) {
    std::optional<Linear> past = add(rows, Linear::of(end), -1),
                          before = add(Linear::of(end), Linear::of(var), -1),
                          behind = add(Linear::of(var), Linear::of(start), -1);
    before->constant -= 1;
    return std::optional<Condition>(
        Condition{{Conjunct{{*past}, {*before}, {*behind}}}});
  };
  Var row = addDerived(index, {0, maxI32 - 1}, define, Variable::Grid, "row");
  gridVars[index] = row;
  gridIndices.push_back(row);
  rowIndices.push_back(row);
}

Condition RowModel::isGiven(unsigned argument) {
  if (!kernel.isArgOptional(argument))
    return Condition::always();
  return Condition::is(getPresent(argument), 1);
}

void RowModel::addAccess(const MemoryAccess &access) {
  RowAccess row = {access,
                   {},
                   Condition::always(),
                   Condition::always(),
                   {},
                   Condition::always(),
                   {}};
  for (Value index : access.indices)
    row.indices.push_back(getValue(index));
  addPart(row);
  auto narrow = [&](const Condition &from, const Condition &condition) {
    if (std::optional<Condition> all = both(from, condition))
      return *all;
    // The conjunction has too many cases. An unknown variable of range [0, 1]
    // stands for the conjunction and admits more points.
    return Condition::is(addUnknown(Value(), {0, 1}), 0);
  };
  auto restrict = [&](const Condition &condition) {
    row.executes = narrow(row.executes, condition);
  };
  restrict(isGiven(access.getArgNumber()));
  if (access.predicate)
    restrict(getCondition(access.predicate));
  for (Operation *op = access.op, *parent = op->getParentOp();
       !isa<ForallOp, RaggedForallOp, KernelOp>(parent);
       op = parent, parent = op->getParentOp()) {
    if (auto branch = dyn_cast<scf::IfOp>(parent)) {
      bool isThen = op->getParentRegion() == &branch.getThenRegion();
      restrict(getCondition(branch.getCondition(), isThen));
      continue;
    }
    bool isKnown = false;
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      for (auto [var, coefficient] : getValue(loop.getInductionVar()).terms)
        if (variables[var].kind == Variable::Loop) {
          row.loops.insert(row.loops.begin(), var);
          isKnown = true;
        }
    if (isKnown)
      continue;
    // The loop runs an unknown number of times, perhaps none. An unknown
    // variable of range [0, 1] stands for the condition that it runs.
    Var runs = addUnknown(
        parent->getNumOperands() ? parent->getOperand(0) : Value(), {0, 1});
    restrict(Condition::is(runs, 1));
  }
  row.condition = narrow(row.executes, hasSlice(access));
  accesses.push_back(std::move(row));
}

void RowModel::addAssumptions(RowAccess &access) {
  for (AssumeOp assumption : assumptions) {
    Operation *op =
        assumption->getBlock()->findAncestorOpInBlock(*access.access.op);
    if (!op || !assumption->isBeforeInBlock(op))
      continue;
    std::optional<Condition> all =
        both(access.assumed, getCondition(assumption.getCondition()));
    if (!all) // too many cases
      continue;
    access.assumed = std::move(*all);
    access.promises.push_back(assumption.getText());
  }
}

void RowModel::addLaunchCheck() {
  for (AssumeOp check : kernel.getBody().getOps<AssumeOp>())
    if (std::optional<Condition> all =
            both(launchCheck, getCondition(check.getCondition())))
      launchCheck = std::move(*all);
}

void RowModel::narrowScalars(const Condition &check) {
  if (check.disjuncts.size() != 1)
    return;
  auto narrow = [&](const Linear &atLeastZero) {
    for (auto [var, factor] : atLeastZero.terms) {
      Variable &variable = variables[var];
      std::optional<Linear> others = add(atLeastZero, Linear::of(var), -factor);
      if (variable.kind != Variable::Scalar || !others)
        continue;
      __int128 most = getRange(*others).high;
      if (most > kMaxI64 || most < kMinI64)
        continue;
      // The constraint implies factor * variable >= -most.
      Interval range = variable.range;
      if (factor > 0)
        range.low = std::max(range.low, most < 0 ? (-most + factor - 1) / factor
                                                 : -(most / factor));
      else
        range.high =
            std::min(range.high, most < 0 ? -((-most - factor - 1) / -factor)
                                          : most / -factor);
      if (range.low <= range.high) // otherwise no launch passes the check
        variable.range = range;
    }
  };
  for (const Constraint &constraint : check.disjuncts.front()) {
    narrow(constraint.linear);
    if (std::optional<Linear> negated = scale(constraint.linear, -1);
        negated && constraint.isEquality)
      narrow(*negated);
  }
}

/// Models all values in program order, so that long chains of ops do not
/// recurse deeply.
void RowModel::addValues() {
  kernel.walk([&](Operation *op) {
    if (auto check = dyn_cast<AssumeOp>(op);
        check && op->getParentOp() == kernel)
      narrowScalars(getCondition(check.getCondition()));
    for (Value result : op->getResults())
      if (result.getType().isInteger(1))
        (void)getCondition(result);
      else if (result.getType().isIntOrIndex())
        (void)getValue(result);
  });
}

StringRef RowModel::getSegmentsName() {
  auto grid = cast<RaggedForallOp>(kernel.getGrid());
  return kernel.getArgName(
      getKernelArgument(grid.getCuSeqlens()).getArgNumber());
}

RowModel::RowModel(KernelOp kernel, bool followsWraps)
    : kernel(kernel), followsWraps(followsWraps) {
  SmallVector<MemoryAccess> found = collectAccesses(kernel);
  // Leave out buffers that are private to a lane, since other rows do not see
  // them.
  llvm::erase_if(
      found, [](const MemoryAccess &access) { return !access.getArgument(); });
  for (const MemoryAccess &access : found)
    if (access.isPart())
      parted.insert(access.getProduct());
  addGrid();
  addValues();
  addLaunchCheck();
  kernel.getGrid()->walk(
      [&](AssumeOp assumption) { assumptions.push_back(assumption); });
  for (const MemoryAccess &access : found) {
    addAccess(access);
    addAssumptions(accesses.back());
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

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
    KnownNumber known = getKnownScalar(kernel, index);
    bool isBounded = known.most || !known.atMost.empty();
    Linear size;
    if (isBounded)
      size = known.most ? Linear::of(*known.most)
                        : Linear::of(getNamedSize(known.atMost));
    auto define = [&](Var var) -> std::optional<Condition> {
      if (!isBounded)
        return Condition::always();
      return Condition::of(*add(size, Linear::of(var), -1));
    };
    Interval range = getIntegerRange(argument.getType());
    if (isBounded)
      range = {known.least, std::min(range.high, getRange(size).high)};
    return Linear::of(addDerived(argument, range, define, Variable::Scalar,
                                 kernel.getArgName(index)));
  }
  auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
  if (loop && argument == loop.getInductionVar())
    return buildLoopIndex(loop);
  return addOpaque(argument);
}

/// Models a loop index as lower + step * k, which is below upper, if the step
/// is a positive constant. Otherwise, the index is unknown.
Linear RowModel::buildLoopIndex(scf::ForOp loop) {
  Value value = loop.getInductionVar();
  Interval type = getIntegerRange(value.getType());
  std::optional<int64_t> step = getInteger(loop.getStep());
  auto addLoopVar = [&](Interval range, auto define) {
    return addDerived(value, range, define, Variable::Loop, "iteration");
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

/// Models the size of a dim. The dims of an omitted tensor have size 0.
Linear RowModel::buildDim(Value value, unsigned argument, unsigned dim) {
  Linear size = getSize(argument, dim);
  if (!kernel.isArgOptional(argument) || size.isConstant())
    return size;
  Var present = getPresent(argument);
  Var var = addDerived(
      value, {0, kMaxSize}, [&](Var var) -> std::optional<Condition> {
        std::optional<Linear> same = add(size, Linear::of(var), -1);
        if (!same)
          return std::nullopt;
        return Condition{
            {Conjunct{{Linear::of(present, 1, -1), true}, {*same, true}},
             Conjunct{{Linear::of(present), true}, {Linear::of(var), true}}}};
      });
  return Linear::of(var);
}

/// True if the kernel only reads the argument, and no launch may alias it with
/// a written one.
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

/// True if `parent` contains `op`, with only branches in between.
static bool isInBranchesOf(Operation *op, Operation *parent) {
  Operation *own = op->getParentOp();
  while (own != parent && isa<scf::IfOp>(own))
    own = own->getParentOp();
  return own == parent;
}

/// Returns an unknown in the range of the element type and of the `else` value.
/// Loads of one element share the unknown of the first load, if nothing writes
/// the element.
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
          isInBranchesOf(load, other->getParentOp()))
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
  // `distinct` holds for entries but not for the `else` value, so each of them
  // gets a variable of its own.
  Linear entry = Linear::of(addUnknown(load, range));
  return chooseLinear(load, load.getPredicate(), entry, other);
}

/// Models the index of an element: 0 <= index < row length. A row with a
/// bounded dim may have length 0, and the index is then 0.
Linear RowModel::buildElementIndex(Value index, Value row) {
  DimAttr dim = getTileDim(row.getType());
  Linear size = dim.isBound() ? Linear::of(dim.getSize())
                              : Linear::of(getNamedSize(dim.getName()));
  Var var = addDerived(
      index, {0, kMaxSize - 1}, [&](Var var) -> std::optional<Condition> {
        std::optional<Condition> isInside = isBelow(Linear::of(var), size);
        if (!isInside || !dim.isBounded())
          return isInside;
        return either(*isInside,
                      {{Conjunct{{size, true}, {Linear::of(var), true}}}});
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
  Var var =
      addDerived(value, {std::min(p.low, q.low), std::max(p.high, q.high)},
                 [&](Var var) -> std::optional<Condition> {
                   std::optional<Linear> isA = add(a, Linear::of(var), -1),
                                         isB = add(b, Linear::of(var), -1);
                   if (!isA || !isB)
                     return std::nullopt;
                   return either(both(holds, Condition::of(*isA, true)),
                                 both(fails, Condition::of(*isB, true)));
                 });
  return Linear::of(var);
}

//===----------------------------------------------------------------------===//
// Values in messages
//===----------------------------------------------------------------------===//

bool mlafix::isInMlir(Location loc) {
  auto range = loc->findInstanceOf<FileLineColRange>();
  StringRef file = range ? range.getFilename().getValue() : "<stdin>";
  return file == "<stdin>" || file.ends_with(".mlir");
}

/// Returns the Python spelling of an integer operation, or "" if it has no
/// single word.
static StringRef spellInPython(Operation *op) {
  bool isBool = op->getResult(0).getType().isInteger(1);
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case<arith::AddIOp>([](auto) { return "+"; })
      .Case<arith::SubIOp>([](auto) { return "-"; })
      .Case<arith::MulIOp>([](auto) { return "*"; })
      .Case<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>(
          [](auto) { return "//"; })
      .Case<arith::RemSIOp, arith::RemUIOp>([](auto) { return "%"; })
      .Case<arith::AndIOp>([&](auto) { return isBool ? "and" : "&"; })
      .Case<arith::OrIOp>([&](auto) { return isBool ? "or" : "|"; })
      .Case<arith::XOrIOp>([&](auto) { return isBool ? "!=" : "^"; })
      .Case<arith::ShLIOp>([](auto) { return "<<"; })
      .Case<arith::ShRSIOp, arith::ShRUIOp>([](auto) { return ">>"; })
      .Case<arith::MinSIOp, arith::MinUIOp>([](auto) { return "min"; })
      .Case<arith::MaxSIOp, arith::MaxUIOp>([](auto) { return "max"; })
      .Case<arith::SelectOp>([](auto) { return "where"; })
      .Default(StringRef());
}

std::string mlafix::describe(const Variable &variable) {
  if (!variable.value)
    return "a value that is not linear";
  if (BlockArgument argument = getKernelArgument(variable.value))
    return ("the entries of " +
            getKernelOf(argument).getArgName(argument.getArgNumber()))
        .str();
  Operation *op = variable.value.getDefiningOp();
  if (auto load = dyn_cast_or_null<LoadOp>(op))
    if (BlockArgument argument = getKernelArgument(load.getSource()))
      return ("what is read from " +
              getKernelOf(argument).getArgName(argument.getArgNumber()))
          .str();
  if (isa_and_nonnull<arith::CmpFOp>(op))
    return "a comparison of floats";
  if (!op)
    return "a value that a loop carries";
  if (isa<arith::FPToSIOp, arith::FPToUIOp>(op))
    return "an integer made of a float";
  if (isInMlir(op->getParentOfType<KernelOp>().getLoc()))
    return ("the result of " + op->getName().getStringRef()).str();
  if (isa<CastOpInterface>(op))
    return "a converted integer";
  StringRef word = spellInPython(op);
  return word.empty() ? "a computed integer"
                      : ("the result of '" + word + "'").str();
}
