//===- RowInterpreter.cpp - interprets a kernel's rows --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/RowInterpreter.h"

#include "lib/Analysis/AccessLog.h"
#include "lib/Analysis/LaunchWatch.h"
#include "lib/Analysis/RowModel.h"
#include "lib/Analysis/RowValues.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinAttributes.h"

#include <cmath>
#include <optional>

using namespace mlir;
using namespace mlafix;

namespace {
/// Executes the rows of one launch sequentially.
class RowInterpreter {
public:
  using Element = llvm::SmallVector<int64_t>;
  using TensorElement = AccessLog::TensorElement;

  RowInterpreter(KernelOp kernel, const SmallLaunch &launch, Oracle oracle,
                 llvm::ArrayRef<int64_t> segments)
      : kernel(kernel), launch(launch), oracle(oracle), segments(segments),
        log(kernel, launch) {}

  std::optional<std::vector<Violation>> run(int64_t *budget = nullptr);
  Replay replay();

private:
  bool runDense(ForallOp grid);
  bool runRagged(RaggedForallOp grid);
  /// Executes the body for each row whose first indices are `outer`. The other
  /// indices run up to `extents`. Returns false if the budget is used up.
  bool runRows(mlir::Block &body, llvm::ArrayRef<int64_t> outer,
               mlir::ValueRange extents);
  /// Executes a block. Returns false if the budget is used up.
  bool runBlock(mlir::Block &block);
  bool runOp(mlir::Operation &op);
  /// Handles a promise or a print. Returns false if the launch breaks an
  /// assumption and this is not a replay, because such a launch cannot refute
  /// anything.
  bool note(mlir::Operation &op);
  bool runLoop(mlir::scf::ForOp loop);
  bool runWhile(mlir::scf::WhileOp loop);
  void compute(mlir::Operation &op);
  void load(LoadOp op);
  void loadRow(LoadOp op, const MemoryAccess &access, bool happens);
  void loadState(LoadStateOp op);
  /// The elements of a row that an access touches: `count` elements from
  /// `first` on, at a distance of `step`.
  struct RowElements {
    int64_t first = 0, count = 0, step = 1;
    bool isInside = true;

    bool contains(int64_t place) const {
      int64_t distance = place - first;
      return distance >= 0 && distance % step == 0 && distance / step < count;
    }
  };
  RowElements elementsOf(const MemoryAccess &access, int64_t size);
  /// Performs an access. Returns true if it executes and is in bounds.
  bool access(const MemoryAccess &access);

  std::optional<int64_t> get(mlir::Value value);
  /// Like get(), for a value that determines an access or a branch. If the
  /// value is unknown, returns 0 and, in a replay, abandons the row.
  int64_t need(mlir::Value value);
  bool isNumber(mlir::Type type) const {
    return type.isIntOrIndex() || (isReplay && type.isF32());
  }
  /// Returns the value of an element, which must be in bounds.
  std::optional<int64_t> read(const MemoryAccess &access);
  /// Returns the value of an element that no row has written yet.
  std::optional<int64_t> readInitial(mlir::Operation *op,
                                     const TensorElement &place);
  void noteStored(const MemoryAccess &access, const Element &element);
  /// Returns the elements that a row access reads. The access must be in
  /// bounds.
  std::optional<RowValues::Row> readRow(const MemoryAccess &access);
  void noteStoredRow(const MemoryAccess &access, const Element &indices,
                     const RowElements &part);
  /// Records a stored value if it is a NaN or an infinity that the kernel made,
  /// or if it differs from the reference.
  void noteOdd(const MemoryAccess &access, const Element &element,
               mlir::Value value, std::optional<int64_t> number);
  /// Returns the operand that `op` stores: a number, a row or a state.
  static mlir::Value storedBy(mlir::Operation *op);
  void setAll(mlir::ValueRange targets, mlir::ValueRange sources);

  KernelOp kernel;
  const SmallLaunch &launch;
  Oracle oracle;
  llvm::ArrayRef<int64_t> segments;
  llvm::DenseMap<mlir::Value, std::optional<int64_t>> values;
  RowValues tiles{[this](mlir::Value value) { return get(value); }};
  llvm::SmallVector<int64_t> row;
  std::map<TensorElement, std::optional<int64_t>> memory;
  AccessLog log;
  LaunchWatch watch; // used by replays only
  int64_t steps = 0, maxSteps = 100000;
  /// `isUnknown` is true once the current row is abandoned.
  bool isReplay = false, isUnknown = false;

  static constexpr int64_t kReplaySteps = 1000000;
};
} // namespace

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

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
  if (isReplay)
    tiles.copyAll(targets, sources);
}

/// Computes the results of `op` with the compiler's folder. If `op` does not
/// fold, takes them from the oracle or, in a replay, from foldFloats().
void RowInterpreter::compute(Operation &op) {
  bool hasNumbers = llvm::any_of(op.getResultTypes(),
                                 [&](Type type) { return isNumber(type); });
  bool isDone =
      op.hasTrait<OpTrait::ConstantLike>() && values.contains(op.getResult(0));
  if (isReplay && !isDone)
    if (auto numbers = tiles.compute(&op)) {
      for (auto [result, number] : llvm::zip(op.getResults(), *numbers))
        values[result] = number;
      return;
    }
  if (!hasNumbers || isDone)
    return;
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
    Value known = isFolded ? dyn_cast<Value>(results[index]) : Value();
    std::optional<int64_t> number;
    if (known)
      number = get(known);
    else if (isFolded)
      number = numberOf(cast<Attribute>(results[index]));
    if (!known && !number)
      number = isReplay ? foldFloats(&op, operands)
                        : std::optional(oracle(result, row));
    values[result] = number;
    if (isReplay && number)
      tiles.noteOrigins(&op, result, *number);
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
  // A launch refutes nothing if it is refused or breaks a promise.
  if (!isReplay)
    return !assumption || get(assumption.getCondition()).value_or(0) != 0;
  if (assumption && get(assumption.getCondition()) == 0)
    watch.breaks(assumption, row);
  if (auto distinct = dyn_cast<DistinctOp>(op))
    watch.check(distinct, launch);
  if (auto print = dyn_cast<PrintOp>(op))
    watch.print(print, row, tiles);
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
  auto select = dyn_cast<arith::SelectOp>(op);
  if (select && !isRowTile(select.getCondition().getType())) {
    std::optional<int64_t> condition = get(select.getCondition());
    Value chosen =
        condition.value_or(0) ? select.getTrueValue() : select.getFalseValue();
    values[select] = isReplay && !condition ? std::nullopt : get(chosen);
    if (isReplay && condition)
      tiles.copyAll(select->getResults(), chosen);
    else
      tiles.set(select, std::nullopt);
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
    watch.unknownRows += isUnknown;
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
    isUnknown = false;
    Block &predicate = grid.getPredicate().front();
    if (!runBlock(predicate))
      return false;
    int64_t start = segments[s], end = segments[s + 1];
    bool isChosen = need(predicate.getTerminator()->getOperand(0));
    bool isWellFormed = 0 <= start && start <= end && end <= rows;
    if (isUnknown && isWellFormed)
      watch.unknownRows += end - start;
    bool counts = isChosen && !isUnknown && isWellFormed;
    for (int64_t t = start; counts && t < end; ++t)
      if (++steps > maxSteps ||
          !runRows(grid.getBody().front(), {int64_t(s), t}, grid.getInner()))
        return false;
  }
  return true;
}

std::optional<std::vector<Violation>> RowInterpreter::run(int64_t *budget) {
  if (budget)
    maxSteps = std::min(maxSteps, *budget);
  Operation *grid = kernel.getGrid();
  bool isDone = runBlock(kernel.getBody().front()) &&
                (isa<ForallOp>(grid) ? runDense(cast<ForallOp>(grid))
                                     : runRagged(cast<RaggedForallOp>(grid)));
  if (budget)
    *budget -= std::min(steps, maxSteps);
  if (!isDone)
    return std::nullopt;
  return log.finish();
}

Replay RowInterpreter::replay() {
  isReplay = true;
  maxSteps = kReplaySteps;
  std::optional<std::vector<Violation>> violations = run();
  watch.isWhole = violations.has_value();
  watch.violations = violations ? std::move(*violations) : log.finish();
  if (!watch.isWhole || watch.unknownRows)
    llvm::erase_if(watch.violations, [](const Violation &violation) {
      return violation.question == Question::Coverage;
    });
  return std::move(watch);
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
                      ArrayRef<int64_t> segments, int64_t *steps) {
  return RowInterpreter(kernel, launch, oracle, segments).run(steps);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

RowInterpreter::RowElements
RowInterpreter::elementsOf(const MemoryAccess &access, int64_t size) {
  if (access.slice)
    return {access.slice->begin, access.slice->end - access.slice->begin, 1,
            access.slice->end <= size};
  if (!access.isPart())
    return {0, size, 1, true};
  DimAttr dim = access.getProduct().getGroup();
  int64_t group = dim.isBound()
                      ? dim.getSize()
                      : launch.groupSizes.lookup(access.getArgNumber());
  isUnknown |= group == 0;
  if (isUnknown)
    return {};
  int64_t groups = size / group;
  int64_t g = access.group ? need(access.group) : 0,
          m = access.member ? need(access.member) : 0;
  RowElements elements;
  elements.isInside = g >= 0 && g < groups && m >= 0 && m < group;
  elements.first = elements.isInside ? g * group + m : access.group ? g : m;
  elements.count = access.group ? (access.member ? 1 : group) : groups;
  elements.step = access.group ? 1 : group;
  return elements;
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
  RowElements part;
  if (access.isRow || access.isPart())
    part = elementsOf(access, sizes.back());
  if (isUnknown)
    return false;
  if (!isInside || !part.isInside) {
    if (access.isPart())
      element.push_back(part.first);
    else if (access.slice)
      element.push_back(access.slice->end - 1);
    log.report(Question::Bounds, argument, access.op, row, element);
    return false;
  }
  if (!access.isRow) {
    if (access.isPart())
      element.push_back(part.first);
    log.add(access, row, element);
    if (access.isWrite)
      noteStored(access, element);
    return true;
  }
  for (int64_t at : log.getElementsOfRow(argument)) {
    if (!part.contains(at))
      continue;
    element.push_back(at);
    log.add(access, row, element);
    element.pop_back();
  }
  if (isReplay && access.isWrite)
    noteStoredRow(access, element, part);
  return true;
}

/// True if a tensor of `type` stores numbers exactly. Narrower floats are
/// rounded.
static bool holdsNumber(Type type) {
  return type.isF32() || type.isIntOrIndex();
}

void RowInterpreter::noteStored(const MemoryAccess &access,
                                const Element &element) {
  TensorElement place = {access.getArgNumber(),
                         {element.begin(), element.end()}};
  if (!isReplay) {
    memory.erase(place);
    return;
  }
  Value value = storedBy(access.op);
  std::optional<int64_t> number = value ? get(value) : std::nullopt;
  if (value)
    noteOdd(access, element, value, number);
  // A store of another type to a tensor of bytes converts the number, so the
  // number in memory is unknown.
  Type type = access.getElementType();
  bool converts = type.isInteger(8) && value && !value.getType().isInteger(8);
  memory[place] = holdsNumber(type) && !converts ? number : std::nullopt;
}

Value RowInterpreter::storedBy(Operation *op) {
  if (auto store = dyn_cast<StoreOp>(op))
    return store.getValue();
  auto state = dyn_cast<StoreStateOp>(op);
  return state ? state.getState() : Value();
}

/// True if the numbers differ by more than the tolerance, or if exactly one of
/// them is NaN. Only the same infinity is near an infinity.
static bool isFarFrom(int64_t got, int64_t want, double tolerance) {
  double a = floatOf(got), b = floatOf(want);
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) != std::isnan(b);
  if (std::isinf(b))
    return a != b;
  return a != b && !(std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b)));
}

/// True if a finite f32 becomes an infinity in `type`.
static bool isTooLarge(FloatType type, int64_t bits) {
  APFloat stored(floatOf(bits));
  bool isInexact;
  stored.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                 &isInexact);
  return (type.isF16() || type.isBF16()) && stored.isInfinity() &&
         !isOdd(OddFloat::Infinity, bits);
}

/// Returns the position of an element in the row-major contents of a tensor.
static size_t positionOf(ArrayRef<int64_t> element, const SmallLaunch &launch,
                         unsigned argument) {
  size_t position = 0;
  for (auto [index, size] :
       llvm::zip(element, launch.sizes.find(argument)->second))
    position = position * size + index;
  return position;
}

void RowInterpreter::noteOdd(const MemoryAccess &access, const Element &element,
                             Value value, std::optional<int64_t> number) {
  Type type = access.getElementType();
  if (!isa<FloatType>(type) || !number)
    return;
  auto add = [&](StringRef question, std::string text, Operation *from) {
    watch.add({access.op, access.getArgNumber(), question, row, element,
               std::move(text), from});
  };
  for (OddFloat kind : {OddFloat::NaN, OddFloat::Infinity}) {
    OddOrigin origin = tiles.getOrigin(value, kind);
    if (isOdd(kind, *number) && origin.op && !origin.isInput)
      add(kind == OddFloat::NaN ? "NaN" : "infinity", origin.how, origin.op);
  }
  Type f32 = Float32Type::get(kernel.getContext());
  std::string text;
  llvm::raw_string_ostream stream(text);
  writeNumber(stream, f32, *number);
  bool overflows = isTooLarge(cast<FloatType>(type), *number);
  if (isa<StoreOp>(access.op) && overflows)
    add("infinity", text, access.op);
  auto expected = launch.expected.find(access.getArgNumber());
  if (expected == launch.expected.end())
    return;
  size_t at = positionOf(element, launch, access.getArgNumber());
  int64_t stored =
      overflows ? bitsOf(std::copysign(INFINITY, floatOf(*number))) : *number;
  if (at >= expected->second.size() ||
      !isFarFrom(stored, expected->second[at], launch.tolerance))
    return;
  stream << ", where the reference has ";
  writeNumber(stream, f32, expected->second[at]);
  add("reference", text, nullptr);
}

void RowInterpreter::noteStoredRow(const MemoryAccess &access,
                                   const Element &indices,
                                   const RowElements &part) {
  unsigned argument = access.getArgNumber();
  Value value = storedBy(access.op);
  const RowValues::Row *stored = value ? tiles.get(value) : nullptr;
  bool isRead = launch.elements.contains(argument);
  Type type = access.getElementType();
  Element element = indices;
  element.push_back(0);
  for (int64_t i = 0; i < part.count; ++i) {
    element.back() = part.first + i * part.step;
    std::optional<int64_t> number;
    if (stored && size_t(i) < stored->size())
      number = (*stored)[i];
    if (value)
      noteOdd(access, element, value, number);
    if (isRead)
      memory[{argument, {element.begin(), element.end()}}] =
          holdsNumber(type) ? number : std::nullopt;
    else if (!stored && !launch.expected.contains(argument))
      break;
  }
}

std::optional<RowValues::Row>
RowInterpreter::readRow(const MemoryAccess &access) {
  unsigned argument = access.getArgNumber();
  if (!launch.elements.contains(argument))
    return std::nullopt;
  TensorElement place = {argument, {}};
  for (Value index : access.indices)
    place.second.push_back(get(index).value_or(0));
  RowElements part =
      elementsOf(access, launch.sizes.find(argument)->second.back());
  place.second.push_back(0);
  RowValues::Row result;
  for (int64_t i = 0; i < part.count; ++i) {
    place.second.back() = part.first + i * part.step;
    auto written = memory.find(place);
    std::optional<int64_t> number = written != memory.end()
                                        ? written->second
                                        : readInitial(access.op, place);
    if (!number)
      return std::nullopt;
    result.push_back(*number);
  }
  return result;
}

std::optional<int64_t> RowInterpreter::readInitial(Operation *op,
                                                   const TensorElement &place) {
  if (!isReplay)
    return oracle(op->getResult(0), row);
  auto found = launch.elements.find(place.first);
  if (found == launch.elements.end())
    return std::nullopt;
  size_t at = positionOf(place.second, launch, place.first);
  return at < found->second.size() ? std::optional(found->second[at])
                                   : std::nullopt;
}

std::optional<int64_t> RowInterpreter::read(const MemoryAccess &access) {
  TensorElement place = {access.getArgNumber(), {}};
  for (Value index : access.indices)
    place.second.push_back(get(index).value_or(0));
  if (access.isPart())
    place.second.push_back(
        elementsOf(access, launch.sizes.find(place.first)->second.back())
            .first);
  auto [it, isNew] = memory.try_emplace(place, 0);
  if (isNew)
    it->second = readInitial(access.op, place);
  return it->second;
}

void RowInterpreter::load(LoadOp op) {
  MemoryAccess access = op.getAccesses().front();
  bool happens = this->access(access);
  if (isReplay && isRowTile(op.getType()))
    loadRow(op, access, happens);
  if (isRowTile(op.getType()) || !isNumber(op.getType()))
    return;
  if (happens) {
    values[op] = read(access);
    if (isReplay && values[op])
      tiles.noteOrigins(op, op, *values[op]);
    return;
  }
  bool isOff = access.predicate && get(access.predicate) == 0;
  values[op] = isOff && op.getOther() ? get(op.getOther()) : 0;
}

void RowInterpreter::loadRow(LoadOp op, const MemoryAccess &access,
                             bool happens) {
  auto type = cast<RankedTensorType>(op.getType());
  std::optional<RowValues::Row> elements;
  if (happens) {
    elements = readRow(access);
  } else if (!isUnknown && type.hasStaticShape()) {
    bool isOff = access.predicate && get(access.predicate) == 0;
    std::optional<int64_t> other =
        isOff && op.getOther() ? get(op.getOther()) : 0;
    if (other)
      elements = RowValues::Row(type.getNumElements(), *other);
  }
  tiles.noteOrigins(op, op, elements.value_or(RowValues::Row()));
  tiles.set(op, std::move(elements));
}

/// Loads a state. The result is the empty state if the predicate is false, if
/// an argument is omitted, or if the payload or the lse is out of bounds.
void RowInterpreter::loadState(LoadStateOp op) {
  SmallVector<MemoryAccess, 2> accesses = op.getAccesses();
  bool happens = access(accesses[0]);
  happens &= access(accesses[1]);
  if (!isReplay)
    return;
  std::optional<int64_t> lse = happens ? read(accesses[1]) : kEmptyLse;
  values[op] = lse ? std::optional(lseOfLoaded(*lse)) : std::nullopt;
  std::optional<RowValues::Row> payload;
  if (happens)
    payload = RowValues::payloadOf(readRow(accesses[0]), lse);
  else if (int64_t size = op.getType().getDim().getSize(); size >= 0)
    payload = RowValues::Row(size, 0);
  tiles.set(op, std::move(payload));
}
