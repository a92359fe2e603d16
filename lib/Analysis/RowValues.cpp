//===- RowValues.cpp - the elements of rows, on the host ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/RowValues.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace mlafix;

bool mlafix::isOdd(OddFloat kind, int64_t bits) {
  float number = floatOf(bits);
  return kind == OddFloat::NaN ? std::isnan(number) : std::isinf(number);
}

//===----------------------------------------------------------------------===//
// Attributes as numbers
//===----------------------------------------------------------------------===//

std::optional<int64_t> mlafix::numberOf(Attribute attribute) {
  auto real = dyn_cast_if_present<FloatAttr>(attribute);
  if (real && real.getType().isF32())
    return real.getValue().bitcastToAPInt().getZExtValue();
  auto number = dyn_cast_if_present<IntegerAttr>(attribute);
  if (!number || number.getValue().getBitWidth() > 64)
    return std::nullopt;
  return number.getType().isInteger(1)
             ? int64_t(number.getValue().getZExtValue())
             : number.getValue().getSExtValue();
}

Attribute mlafix::attributeOf(Type type, int64_t number) {
  if (type.isF32())
    return FloatAttr::get(
        type, APFloat(APFloat::IEEEsingle(), APInt(32, uint32_t(number))));
  if (type.isInteger(1))
    return BoolAttr::get(type.getContext(), number);
  return IntegerAttr::get(type, number);
}

std::optional<int64_t> mlafix::foldFloats(Operation *op,
                                          ArrayRef<Attribute> operands) {
  SmallVector<double> numbers;
  for (Attribute operand : operands) {
    auto number = dyn_cast_if_present<FloatAttr>(operand);
    if (!number || !number.getType().isF32())
      return std::nullopt;
    numbers.push_back(number.getValue().convertToFloat());
  }
  if (isa<math::RsqrtOp>(op))
    return bitsOf(1 / std::sqrt(numbers[0]));
  if (isa<math::FmaOp>(op))
    return bitsOf(
        std::fma(float(numbers[0]), float(numbers[1]), float(numbers[2])));
  return std::nullopt;
}

static bool isNumberType(Type type) {
  return type.isIntOrIndex() || type.isF32();
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

void mlafix::writeNumber(llvm::raw_ostream &stream, Type type,
                         std::optional<int64_t> number) {
  if (!number) {
    stream << "?";
  } else if (type.isInteger(1)) {
    stream << (*number ? "true" : "false");
  } else if (type.isIntOrIndex()) {
    stream << *number;
  } else {
    char text[32];
    char *end = std::to_chars(text, text + sizeof text, floatOf(*number)).ptr;
    stream << StringRef(text, end - text);
  }
}

/// Writes ", 3 NaN from element 5": the number of elements that are NaN or
/// infinite, and the position of the first. Writes nothing if there are none.
static void writeCount(llvm::raw_ostream &stream, const RowValues::Row &row,
                       OddFloat kind) {
  auto isOfKind = [&](int64_t bits) { return isOdd(kind, bits); };
  auto first = llvm::find_if(row, isOfKind);
  if (first != row.end())
    stream << ", " << std::count_if(first, row.end(), isOfKind)
           << (kind == OddFloat::NaN ? " NaN" : " infinite") << " from element "
           << first - row.begin();
}

void RowValues::write(llvm::raw_ostream &stream, Value value) const {
  Type type = getElementTypeOrSelf(value.getType());
  if (!isRowTile(value.getType()))
    return writeNumber(stream, type, getNumber(value));
  const Row *row = get(value);
  if (!row)
    return writeNumber(stream, type, std::nullopt);
  auto writeAll = [&](llvm::ArrayRef<int64_t> elements) {
    llvm::interleaveComma(elements, stream, [&](int64_t element) {
      writeNumber(stream, type, element);
    });
  };
  llvm::ArrayRef<int64_t> elements = *row;
  stream << "[";
  if (elements.size() <= 8) {
    writeAll(elements);
    stream << "]";
    return;
  }
  writeAll(elements.take_front(4));
  stream << ", ..., ";
  writeAll(elements.take_back(2));
  stream << "] of " << elements.size();
  if (!isa<FloatType>(type))
    return;
  writeCount(stream, *row, OddFloat::NaN);
  writeCount(stream, *row, OddFloat::Infinity);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static int64_t reduceTwo(ReduceKind kind, Type type, int64_t a, int64_t b) {
  if (!type.isF32()) {
    if (kind == ReduceKind::add)
      return type.isInteger(32) ? int64_t(int32_t(a + b)) : a + b;
    return kind == ReduceKind::max ? std::max(a, b) : std::min(a, b);
  }
  float x = floatOf(a), y = floatOf(b);
  if (kind == ReduceKind::add)
    return bitsOf(x + y);
  if (std::isnan(x) || std::isnan(y))
    return std::isnan(x) ? a : b;
  if (x == y) // zeros: order +0 above -0
    return kind == ReduceKind::max ? std::min<int64_t>(a, b)
                                   : std::max<int64_t>(a, b);
  return (x > y) == (kind == ReduceKind::max) ? a : b;
}

static int64_t neutralOf(ReduceKind kind, Type type) {
  if (kind == ReduceKind::add)
    return 0;
  bool isMax = kind == ReduceKind::max;
  if (type.isF32())
    return bitsOf(isMax ? -INFINITY : INFINITY);
  if (type.isInteger(1))
    return isMax ? 0 : 1;
  int64_t most = type.isInteger(32) ? INT32_MAX : INT64_MAX;
  return isMax ? -most - 1 : most;
}

int64_t mlafix::reduceElements(ReduceKind kind, Type type,
                               llvm::ArrayRef<int64_t> elements) {
  SmallVector<int64_t> level(elements.begin(), elements.end());
  if (level.empty())
    return neutralOf(kind, type);
  while (level.size() > 1) {
    size_t half = (level.size() + 1) / 2;
    for (size_t i = 0; i < half; ++i)
      level[i] = 2 * i + 1 < level.size()
                     ? reduceTwo(kind, type, level[2 * i], level[2 * i + 1])
                     : level[2 * i];
    level.truncate(half);
  }
  return level.front();
}

std::optional<RowValues::Row> RowValues::reduceGroups(ReduceOp op,
                                                      size_t groups) {
  const RowValues::Row *source = get(op.getSource());
  if (!source || op.getInLane() || groups == 0 || source->size() % groups)
    return std::nullopt;
  size_t size = source->size() / groups;
  Type type = getElementTypeOrSelf(op.getSource().getType());
  RowValues::Row result;
  for (size_t g = 0; g < groups; ++g)
    result.push_back(
        reduceElements(op.getKind(), type,
                       llvm::ArrayRef<int64_t>(*source).slice(g * size, size)));
  return result;
}

//===----------------------------------------------------------------------===//
// Origins of NaN and of infinities
//===----------------------------------------------------------------------===//

RowValues::Row RowValues::elementsOf(Operation *op, Value operand,
                                     size_t index) const {
  if (!getElementTypeOrSelf(operand.getType()).isF32())
    return {};
  auto select = dyn_cast<arith::SelectOp>(op);
  if (select) {
    bool isTrue = getElement(select.getCondition(), index) == 1;
    if (operand != (isTrue ? select.getTrueValue() : select.getFalseValue()))
      return {};
  }
  const Row *row = get(operand);
  if (row && isa<ReduceOp>(op))
    return *row;
  auto broadcast = dyn_cast<BroadcastOp>(op);
  // The result has no elements yet, so take the number of them from its type.
  if (row && !row->empty() && broadcast)
    index /= cast<RankedTensorType>(broadcast.getType()).getShape().front() /
             static_cast<int64_t>(row->size());
  std::optional<int64_t> element = getElement(operand, index);
  return element ? Row{*element} : Row{};
}

std::string RowValues::describeOperands(Operation *op, size_t index) const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  auto describe = [&](Value operand) {
    if (isa<ReduceOp>(op))
      return write(stream, operand);
    Type type = getElementTypeOrSelf(operand.getType());
    std::optional<int64_t> number = getElement(operand, index);
    writeNumber(stream, type, isNumberType(type) ? number : std::nullopt);
    OddOrigin origin = getOrigin(operand, OddFloat::Infinity);
    if (type.isF32() && number && isOdd(OddFloat::Infinity, *number) &&
        origin.op && !origin.isInput)
      stream << " (made of " << origin.how << " by "
             << origin.op->getName().stripDialect() << ")";
  };
  llvm::interleave(op->getOperands(), stream, describe, " and ");
  return text;
}

OddOrigin RowValues::findOrigin(Operation *op, OddFloat kind, int64_t bits,
                                size_t index) const {
  std::optional<OddOrigin> found;
  for (Value operand : op->getOperands())
    for (int64_t element : elementsOf(op, operand, index)) {
      if (!isOdd(kind, element) || (found && element != bits))
        continue;
      OddOrigin origin = getOrigin(operand, kind);
      found = origin.op ? origin : OddOrigin{op, /*isInput=*/true, ""};
    }
  if (found)
    return *found;
  // NaN and infinities are intended if they are constants, are loaded, come
  // from states, or result from log(0), the lse of no keys. They then count as
  // inputs.
  bool isMeant =
      op->getNumOperands() == 0 || isa<LoadOp>(op) ||
      llvm::any_of(op->getOperandTypes(), llvm::IsaPred<StateType>) ||
      (isa<math::LogOp, math::Log2Op>(op) && bits == bitsOf(-INFINITY));
  return {op, isMeant, isMeant ? "" : describeOperands(op, index)};
}

void RowValues::noteOrigins(Operation *op, Value result,
                            llvm::ArrayRef<int64_t> elements) {
  origins.erase(result);
  if (!getElementTypeOrSelf(result.getType()).isF32())
    return;
  for (OddFloat kind : {OddFloat::NaN, OddFloat::Infinity}) {
    OddOrigin first;
    for (auto [index, bits] : llvm::enumerate(elements)) {
      if (!isOdd(kind, bits))
        continue;
      OddOrigin origin = findOrigin(op, kind, bits, index);
      bool isMade = !origin.isInput;
      if (isMade || !first.op)
        first = std::move(origin);
      if (isMade)
        break;
    }
    if (first.op)
      origins[result][unsigned(kind)] = std::move(first);
  }
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

int64_t mlafix::lseOfLoaded(int64_t bits) {
  return std::isinf(floatOf(bits)) ? kEmptyLse : bits;
}

static bool isBaseE(StateType type, Operation *op) {
  if (std::optional<LogBase> base = type.getBase().getBase())
    return *base == LogBase::E;
  return resolveBase(op->getParentOfType<KernelOp>(), type.getBase().getName(),
                     [](StringRef) { return StringRef(); }) != "2";
}

/// The weights of the states of a merge, computed in f64.
struct RowValues::MergeWeights {
  /// The largest lse. It is infinite if all states are empty.
  double largest = -std::numeric_limits<double>::infinity();
  /// The weight of each state, base^(lse - largest). It is 0 if all states are
  /// empty, and NaN if the lse is NaN.
  SmallVector<double> weights;
  bool isBaseE;
};

std::optional<RowValues::MergeWeights>
RowValues::weighStates(MergeOp merge) const {
  MergeWeights result;
  result.isBaseE = isBaseE(merge.getType(), merge);
  SmallVector<double> lses;
  for (Value state : merge.getStates()) {
    std::optional<int64_t> bits = getNumber(state);
    if (!bits)
      return std::nullopt;
    lses.push_back(floatOf(*bits));
    // If the lse is NaN, std::max keeps `largest`.
    result.largest = std::max(result.largest, lses.back());
  }
  for (double lse : lses) {
    double distance = lse - result.largest;
    result.weights.push_back(std::isinf(result.largest) && !std::isnan(lse) ? 0
                             : result.isBaseE ? std::exp(distance)
                                              : std::exp2(distance));
  }
  return result;
}

std::optional<int64_t> RowValues::computeLse(Operation *op) const {
  if (isa<IdentityOp>(op))
    return kEmptyLse;
  if (auto merge = dyn_cast<MergeOp>(op)) {
    std::optional<MergeWeights> states = weighStates(merge);
    if (!states)
      return std::nullopt;
    double sum =
        std::accumulate(states->weights.begin(), states->weights.end(), 0.0);
    double log = states->isBaseE ? std::log(sum) : std::log2(sum);
    return sum == 0 ? kEmptyLse : bitsOf(states->largest + log);
  }
  if (auto made = dyn_cast<MakeStateOp>(op)) {
    std::optional<int64_t> lse = getNumber(made.getLse());
    return lse ? std::optional(lseOfLoaded(*lse)) : std::nullopt;
  }
  if (auto mask = dyn_cast<MaskOp>(op)) {
    std::optional<int64_t> predicate = getNumber(mask.getPredicate());
    if (!predicate)
      return std::nullopt;
    return *predicate ? getNumber(mask.getState()) : kEmptyLse;
  }
  auto rebase = dyn_cast<RebaseOp>(op);
  std::optional<int64_t> lse =
      rebase ? getNumber(rebase.getState()) : std::nullopt;
  if (!lse)
    return std::nullopt;
  bool from = isBaseE(rebase.getState().getType(), op),
       to = isBaseE(rebase.getType(), op);
  double factor = from == to ? 1 : to ? M_LN2 : M_LOG2E;
  double whole = floatOf(*lse), largest = std::numeric_limits<float>::max();
  return bitsOf(std::isinf(whole)
                    ? whole
                    : std::clamp(whole * factor, -largest, largest));
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

const RowValues::Row *RowValues::get(Value value) const {
  auto it = rows.find(value);
  return it != rows.end() && it->second ? &*it->second : nullptr;
}

void RowValues::set(Value value, std::optional<RowValues::Row> row) {
  rows[value] = std::move(row);
}

void RowValues::copyAll(ValueRange targets, ValueRange sources) {
  SmallVector<std::optional<RowValues::Row>> passed;
  SmallVector<std::array<OddOrigin, 2>> passedOrigins;
  for (Value source : sources) {
    const RowValues::Row *row = get(source);
    passed.push_back(row ? std::optional(*row) : std::nullopt);
    passedOrigins.push_back(origins.lookup(source));
  }
  for (auto [target, row, origin] : llvm::zip(targets, passed, passedOrigins)) {
    if (isRowTile(target.getType()) || isa<StateType>(target.getType()))
      rows[target] = row;
    origins[target] = origin;
  }
}

std::optional<int64_t> RowValues::getElement(Value value, size_t index) const {
  if (!isRowTile(value.getType()))
    return getNumber(value);
  const RowValues::Row *row = get(value);
  return row && index < row->size() ? std::optional((*row)[index])
                                    : std::nullopt;
}

std::optional<int64_t> RowValues::foldElement(Operation *op, size_t index) {
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    Type type = getElementTypeOrSelf(operand.getType());
    std::optional<int64_t> number = getElement(operand, index);
    if (!number || !isNumberType(type))
      return std::nullopt;
    operands.push_back(attributeOf(type, *number));
  }
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return numberOf(operands[0]) == 1 ? numberOf(operands[1])
                                      : numberOf(operands[2]);
  if (std::optional<int64_t> number = foldFloats(op, operands))
    return number;
  // Fold a copy of the op that has a scalar result, because casts are folded to
  // the type of their result.
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(op->getOperands());
  state.addTypes(getElementTypeOrSelf(op->getResult(0).getType()));
  state.addAttributes(op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  Operation *scalar = Operation::create(state);
  SmallVector<OpFoldResult> results;
  std::optional<int64_t> number;
  if (succeeded(scalar->fold(operands, results)) && results.size() == 1) {
    if (auto attribute = dyn_cast<Attribute>(results[0]))
      number = numberOf(attribute);
    else if (auto value = dyn_cast<Value>(results[0]))
      for (auto [i, operand] : llvm::enumerate(op->getOperands()))
        if (operand == value)
          number = numberOf(operands[i]);
  }
  scalar->destroy();
  return number;
}

std::optional<RowValues::Row> RowValues::computeElements(Operation *op) {
  Value result = op->getResult(0);
  auto type = cast<RankedTensorType>(result.getType());
  DenseElementsAttr constant;
  if (matchPattern(result, m_Constant(&constant)) && type.hasStaticShape()) {
    RowValues::Row row;
    for (Attribute element : constant.getValues<Attribute>())
      if (std::optional<int64_t> number = numberOf(element))
        row.push_back(*number);
    if (int64_t(row.size()) == type.getNumElements())
      return row;
    return std::nullopt;
  }
  std::optional<size_t> size;
  for (Value operand : op->getOperands())
    if (const RowValues::Row *row = get(operand))
      size = row->size();
  if (!size || (elementsLeft -= *size) < 0)
    return std::nullopt;
  RowValues::Row row;
  for (size_t i = 0; i < *size; ++i) {
    std::optional<int64_t> element = foldElement(op, i);
    if (!element)
      return std::nullopt;
    row.push_back(*element);
  }
  return row;
}

std::optional<RowValues::Row> RowValues::payloadOf(std::optional<Row> row,
                                                   std::optional<int64_t> lse) {
  if (!row || !lse)
    return std::nullopt;
  int64_t bits = lseOfLoaded(*lse);
  if (bits == kEmptyLse)
    row->assign(row->size(), 0);
  else if (std::isnan(floatOf(bits)))
    row->assign(row->size(), bitsOf(std::numeric_limits<double>::quiet_NaN()));
  return row;
}

/// Returns the payload of merged states: the mean of the states' payloads,
/// weighted by the states' weights.
std::optional<RowValues::Row> RowValues::mergePayloads(MergeOp merge) {
  std::optional<MergeWeights> states = weighStates(merge);
  if (!states ||
      !llvm::all_of(merge.getStates(), [&](Value state) { return get(state); }))
    return std::nullopt;
  double total = 0;
  SmallVector<double> sums(get(merge.getStates().front())->size(), 0.0);
  for (auto [state, weight] : llvm::zip(merge.getStates(), states->weights)) {
    if (weight == 0)
      continue;
    total += weight;
    const RowValues::Row &row = *get(state);
    if (row.size() != sums.size())
      return std::nullopt;
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] += weight * floatOf(row[i]);
  }
  RowValues::Row result;
  for (double sum : sums)
    result.push_back(bitsOf(total == 0 ? 0 : sum / total));
  return result;
}

std::optional<RowValues::Row> RowValues::computePayload(Operation *op) {
  auto copyOf = [&](Value value) {
    const RowValues::Row *row = get(value);
    return row ? std::optional(*row) : std::nullopt;
  };
  if (auto made = dyn_cast<MakeStateOp>(op))
    return payloadOf(copyOf(made.getRow()), getNumber(made.getLse()));
  if (auto merge = dyn_cast<MergeOp>(op))
    return mergePayloads(merge);
  if (auto rebase = dyn_cast<RebaseOp>(op))
    return copyOf(rebase.getState());
  if (isa<IdentityOp>(op)) {
    int64_t size =
        cast<StateType>(op->getResult(0).getType()).getDim().getSize();
    return size < 0 ? std::nullopt : std::optional(RowValues::Row(size, 0));
  }
  auto mask = dyn_cast<MaskOp>(op);
  std::optional<int64_t> holds =
      mask ? getNumber(mask.getPredicate()) : std::nullopt;
  std::optional<RowValues::Row> row =
      holds ? copyOf(mask.getState()) : std::nullopt;
  if (row && !*holds)
    row->assign(row->size(), 0);
  return row;
}

std::optional<RowValues::Row> RowValues::computeRow(Operation *op) {
  auto size =
      cast<RankedTensorType>(op->getResult(0).getType()).getShape().front();
  std::optional<RowValues::Row> row;
  if (auto splat = dyn_cast<SplatOp>(op)) {
    std::optional<int64_t> number = getNumber(splat.getScalar());
    if (number && size >= 0)
      row = RowValues::Row(size, *number);
  } else if (isa<IotaOp>(op)) {
    row = size >= 0 ? std::optional(RowValues::Row(size)) : std::nullopt;
    for (int64_t i = 0; i < size; ++i)
      (*row)[i] = i;
  } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
    row = reduceGroups(reduce, std::max<int64_t>(size, 0));
  } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    const RowValues::Row *source = get(broadcast.getSource());
    if (source && !source->empty() && size >= 0) {
      row = RowValues::Row(size);
      for (int64_t i = 0; i < size; ++i)
        (*row)[i] = (*source)[i / (size / source->size())];
    }
  } else if (auto payload = dyn_cast<PayloadOp>(op)) {
    const RowValues::Row *source = get(payload.getState());
    row = source ? std::optional(*source) : std::nullopt;
  } else if (op->getDialect()->getNamespace() != "mlafix") {
    row = computeElements(op);
  }
  return row;
}

std::optional<RowValues::Numbers> RowValues::compute(Operation *op) {
  bool hasRows = llvm::any_of(op->getOperandTypes(), isRowTile) ||
                 llvm::any_of(op->getResultTypes(), isRowTile);
  if (op->getNumResults() != 1 && hasRows) {
    for (Value result : op->getResults())
      rows[result] = std::nullopt;
    return Numbers(op->getNumResults());
  }
  if (op->getNumResults() != 1)
    return std::nullopt;
  Value result = op->getResult(0);
  origins.erase(result);
  if (isa<StateType>(result.getType())) {
    rows[result] = computePayload(op);
    return Numbers{computeLse(op)};
  }
  if (auto lse = dyn_cast<LseOfOp>(op))
    return Numbers{getNumber(lse.getState())};
  if (!hasRows && !isa<PayloadOp>(op))
    return std::nullopt;
  if (auto reduce = dyn_cast<ReduceOp>(op);
      reduce && !isRowTile(result.getType())) {
    auto source = cast<RankedTensorType>(reduce.getSource().getType());
    auto dim = cast<DimAttr>(source.getEncoding());
    int64_t groups = dim.isProduct() ? dim.getGroups().getSize() : 1;
    std::optional<RowValues::Row> partial =
        reduceGroups(reduce, std::max<int64_t>(groups, 0));
    std::optional<int64_t> number;
    if (partial)
      number =
          reduceElements(reduce.getKind(), source.getElementType(), *partial);
    if (number)
      noteOrigins(op, result, *number);
    return Numbers{number};
  }
  if (!isRowTile(result.getType()))
    return Numbers{std::nullopt};
  std::optional<RowValues::Row> row = computeRow(op);
  if (row)
    noteOrigins(op, result, *row);
  rows[result] = std::move(row);
  return Numbers{std::nullopt};
}
