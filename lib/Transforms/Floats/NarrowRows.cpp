//===- NarrowRows.cpp - keep rows of narrow floats as words ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Plan.h"
#include "lib/Transforms/ElementaryMath.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-narrow-rows"

namespace mlafix {
#define GEN_PASS_DEF_NARROWROWSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

//===----------------------------------------------------------------------===//
// Widening where something needs f32
//===----------------------------------------------------------------------===//

/// Returns true if `type` is a vector of elements of `bits` bits that fills
/// 32-bit words.
static bool fillsWords(Type type, unsigned bits = 16) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getRank() == 1 &&
         vector.getElementTypeBitWidth() == bits &&
         vector.getNumElements() * bits % 32 == 0;
}

/// Returns the first op of `block` that uses `row` or contains a use of it.
/// Returns null if there is none.
static Operation *findFirstUse(Block *block, Operation *row) {
  Operation *first = nullptr;
  for (Operation *user : row->getUsers())
    if (Operation *found = block->findAncestorOpInBlock(*user);
        found && (!first || found->isBeforeInBlock(first)))
      first = found;
  return first;
}

/// Clones `row` in front of `place`, and replaces the uses of `row` in the
/// block of `place` by the clone. Returns the clone.
static Operation *cloneBefore(Operation *place, Operation *row) {
  Operation *clone = OpBuilder(place).clone(*row);
  Block *block = place->getBlock();
  row->getResult(0).replaceUsesWithIf(clone->getResult(0), [&](OpOperand &use) {
    return block->findAncestorOpInBlock(*use.getOwner());
  });
  return clone;
}

/// Converts `number` to `type`. Returns nullopt for NaN, or if the number would
/// change.
static std::optional<APFloat> convertExactly(APFloat number, FloatType type) {
  bool isInexact = false;
  number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                 &isInexact);
  if (isInexact || number.isNaN())
    return std::nullopt;
  return number;
}

/// If `yield` yields a value widened from words as operand `index`, returns the
/// op that widens. Returns null otherwise.
static arith::ExtFOp getWidening(scf::YieldOp yield, unsigned index) {
  auto widening = yield.getOperand(index).getDefiningOp<arith::ExtFOp>();
  return widening && fillsWords(widening.getIn().getType()) ? widening
                                                            : arith::ExtFOp();
}

/// Makes `yield` yield the operand of `widening` instead of its result.
static void yieldNarrow(scf::YieldOp yield, unsigned index,
                        arith::ExtFOp widening) {
  yield->setOperand(index, widening.getIn());
  if (widening->use_empty())
    widening.erase();
}

/// If both branches yield a widened value, makes them yield the narrow value
/// and widens the result of `branch` instead. Half as many registers are then
/// live at the end of `branch`, and a mask behind `branch` can apply to words.
static void widenBehind(scf::IfOp branch) {
  SmallVector<Type> types(branch.getResultTypes());
  SmallVector<unsigned> moved;
  for (unsigned i = 0; i < types.size(); ++i) {
    scf::YieldOp yields[] = {branch.thenYield(), branch.elseYield()};
    arith::ExtFOp first = getWidening(yields[0], i),
                  second = getWidening(yields[1], i);
    if (!first || !second ||
        first.getIn().getType() != second.getIn().getType())
      continue;
    moved.push_back(i);
    types[i] = first.getIn().getType();
    yieldNarrow(yields[0], i, first);
    yieldNarrow(yields[1], i, second);
  }
  if (moved.empty())
    return;
  LDBG() << moved.size() << " rows are widened behind " << branch.getLoc();
  OpBuilder b(branch);
  auto narrow =
      scf::IfOp::create(b, branch.getLoc(), types, branch.getCondition(),
                        /*withElseRegion=*/true);
  narrow.getThenRegion().takeBody(branch.getThenRegion());
  narrow.getElseRegion().takeBody(branch.getElseRegion());
  SmallVector<Value> results(narrow.getResults());
  for (unsigned i : moved)
    results[i] = arith::ExtFOp::create(
        b, branch.getLoc(), branch.getResult(i).getType(), results[i]);
  branch.replaceAllUsesWith(results);
  branch.erase();
}

static bool isExtreme(Operation *op) {
  return isa<arith::MaximumFOp, arith::MinimumFOp>(op);
}

/// Returns those of `ops` that only contribute to extremes (maxima or minima)
/// of a whole row: of packs, then of the halves of a pack, and finally of two
/// elements. If these ops compute with narrow elements, a NaN may have other
/// bits. This does not matter, since extremes map every NaN to the same one.
static DenseSet<Operation *> findPartsOfExtremes(ArrayRef<Operation *> ops) {
  DenseSet<Operation *> parts;
  for (Operation *op : llvm::reverse(ops)) {
    bool isLast = isa<vector::ExtractOp>(op);
    bool isPart =
        isLast || isExtreme(op) ||
        isa<arith::SelectOp, math::AbsFOp, vector::ExtractStridedSliceOp>(op);
    if (!isPart || op->use_empty() || op->getNumResults() != 1)
      continue;
    if (!isLast && !isa<VectorType>(op->getResultTypes()[0]))
      continue;
    if (llvm::all_of(op->getUsers(), [&](Operation *user) {
          return isLast ? isExtreme(user) : parts.contains(user);
        }))
      parts.insert(op);
  }
  return parts;
}

/// Returns the narrow row, with elements of type `element`, from which `row`
/// was widened. For a constant row, returns the same constant in the narrow
/// type. Returns null if there is no such row.
static Value getNarrow(OpBuilder &b, Value row, FloatType element) {
  if (auto widening = row.getDefiningOp<arith::ExtFOp>())
    return getElementTypeOrSelf(widening.getIn()) == element ? widening.getIn()
                                                             : Value();
  APFloat number(0.0f);
  if (!matchPattern(row, m_ConstantFloat(&number)))
    return {};
  std::optional<APFloat> narrow = convertExactly(number, element);
  if (!narrow)
    return {};
  auto type = cast<ShapedType>(row.getType()).clone(element);
  return arith::ConstantOp::create(b, row.getLoc(),
                                   DenseElementsAttr::get(type, *narrow));
}

/// Returns the 16-bit float type from which an operand of `op` was widened, if
/// the narrow operand fills words. Returns null if there is no such operand.
static FloatType getNarrowElement(Operation *op) {
  for (Value operand : op->getOperands())
    if (auto widening = operand.getDefiningOp<arith::ExtFOp>();
        widening && fillsWords(widening.getIn().getType()))
      return cast<FloatType>(getElementTypeOrSelf(widening.getIn()));
  return {};
}

/// Computes `op`, which is part of an extreme, on narrow rows, and widens the
/// result. This is exact, since the result is one of the elements or its
/// magnitude. Returns true on success.
static bool computeNarrow(Operation *op) {
  FloatType element = getNarrowElement(op);
  if (!element)
    return false;
  OpBuilder b(op);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    bool isCondition = getElementTypeOrSelf(operand.getType()).isInteger(1);
    operands.push_back(isCondition ? operand : getNarrow(b, operand, element));
    if (!operands.back())
      return false;
  }
  Type wide = op->getResultTypes()[0];
  Operation *narrow = b.clone(*op);
  narrow->setOperands(operands);
  narrow->getResult(0).setType(cast<VectorType>(wide).clone(element));
  LDBG() << "of " << element << ": " << *op;
  op->getResult(0).replaceAllUsesWith(
      arith::ExtFOp::create(b, op->getLoc(), wide, narrow->getResult(0)));
  op->erase();
  return true;
}

/// Returns true if `op` is nested in branches of `block` but in no loop.
static bool isInBranch(Operation *op, Block *block) {
  while (op && op->getBlock() != block) {
    op = op->getParentOp();
    if (!isa_and_nonnull<scf::IfOp>(op))
      return false;
  }
  return op;
}

/// Returns true if an extreme of the row `narrow` is computed without widening.
static bool hasNarrowExtreme(Value narrow) {
  return llvm::any_of(narrow.getUsers(), [](Operation *user) {
    return isExtreme(user) || isa<arith::SelectOp, math::AbsFOp>(user);
  });
}

/// Returns true if `op` is pure arithmetic on rows whose result is a row.
static bool computesRow(Operation &op) {
  return isa<arith::ArithDialect, math::MathDialect, vector::VectorDialect>(
             op.getDialect()) &&
         op.getNumResults() == 1 && isa<VectorType>(op.getResultTypes()[0]) &&
         op.getNumRegions() == 0 && isMemoryEffectFree(&op);
}

/// Moves each op on rows to its first use. The block then computes all ops for
/// one pack after the other, instead of one op after the other for all packs.
static void computeInTurn(Block *block) {
  SmallVector<Operation *> ops;
  for (Operation &op : *block)
    if (computesRow(op))
      ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (Operation *first = findFirstUse(block, op))
      op->moveBefore(first);
}

/// Returns true if `kernel` stores rows.
static bool storesRows(KernelOp kernel) {
  return anyOp(kernel, llvm::IsaPred<vector::StoreOp, vector::MaskedStoreOp>);
}

//===----------------------------------------------------------------------===//
// Words of 32 bits
//===----------------------------------------------------------------------===//

/// Bitcasts `x`, a vector that fills 32-bit words, to a vector of i32.
static Value getWords(OpBuilder &b, Location loc, Value x) {
  auto type = cast<VectorType>(x.getType());
  int64_t count = type.getNumElements() * type.getElementTypeBitWidth() / 32;
  return vector::BitCastOp::create(b, loc,
                                   VectorType::get({count}, b.getI32Type()), x);
}

/// Widens the elements in `words`, which have the type `type`, to f32. bf16
/// takes two instructions per word: a shift for the first element, a mask for
/// the second. Both operate on the whole word; otherwise LLVM would mask each
/// element.
static Value widenWords(OpBuilder &b, Location loc, Type type, Value words) {
  ShapedBuilder s(b, loc, words.getType());
  if (type.isBF16()) {
    Value first = s.floatOf(s.op<arith::ShLIOp>(words, s.i(16)));
    Value second = s.floatOf(s.op<arith::AndIOp>(words, s.i(0xffff0000)));
    return vector::InterleaveOp::create(b, loc, first, second);
  }
  auto widen = [&](Value word) -> Value {
    Value bits = arith::TruncIOp::create(b, loc, s.i16(), word);
    Value narrow = arith::BitcastOp::create(b, loc, s.typeOf(type), bits);
    return arith::ExtFOp::create(b, loc, s.f32(), narrow);
  };
  Value second = widen(s.op<arith::ShRUIOp>(words, s.i(16)));
  return vector::InterleaveOp::create(b, loc, widen(words), second);
}

/// Returns true if all users compute with `value`, a widened row. A row that is
/// only copied should be widened by arith.extf: LLVM may fold this op with a
/// later narrowing, which keeps the bits of the row.
static bool isComputedWith(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<arith::ArithDialect, math::MathDialect>(user->getDialect()) &&
           !isa<arith::TruncFOp, arith::SelectOp, arith::BitcastOp>(user);
  });
}

/// If `row` has one use, a select between `row` and a constant by a scalar
/// condition, and all users compute with the result, returns this select. Sets
/// `other` to the constant. Returns null otherwise.
static arith::SelectOp getMask(Operation *row, APFloat &other) {
  if (!row->hasOneUse())
    return {};
  auto mask = dyn_cast<arith::SelectOp>(*row->user_begin());
  return mask && isComputedWith(mask) &&
                 !isa<VectorType>(mask.getCondition().getType()) &&
                 (matchPattern(mask.getTrueValue(), m_ConstantFloat(&other)) ||
                  matchPattern(mask.getFalseValue(), m_ConstantFloat(&other)))
             ? mask
             : arith::SelectOp();
}

/// Returns true if the element type of the operand of `widening` can represent
/// `other`. Sets `bits` to a word filled with this value.
static bool canHold(arith::ExtFOp widening, APFloat other, int64_t &bits) {
  std::optional<APFloat> narrow = convertExactly(
      other, cast<FloatType>(getElementTypeOrSelf(widening.getIn())));
  if (narrow)
    bits = APInt::getSplat(32, narrow->bitcastToAPInt()).getZExtValue();
  return narrow.has_value();
}

/// Builds the operand of `widening` as words. Where `mask` selects its
/// constant, each word is `bits` instead.
static Value selectMasked(OpBuilder &b, arith::SelectOp mask, Value row,
                          arith::ExtFOp widening, int64_t bits) {
  Value words = getWords(b, mask.getLoc(), widening.getIn());
  ShapedBuilder s(b, mask.getLoc(), words.getType());
  bool isOtherFirst = mask.getFalseValue() == row;
  return s.select(mask.getCondition(), isOtherFirst ? s.i(bits) : words,
                  isOtherFirst ? words : s.i(bits));
}

/// If the result of `widening` is masked, masks the operand of `widening` as
/// words instead, which takes half as many selects. Returns true on success.
static bool maskWords(arith::ExtFOp widening) {
  APFloat other(0.0f);
  int64_t bits = 0;
  arith::SelectOp mask = getMask(widening, other);
  if (!mask || !canHold(widening, other, bits))
    return false;
  OpBuilder b(mask);
  Value masked = selectMasked(b, mask, widening, widening, bits);
  LDBG() << "masked as words: " << widening;
  Type type = getElementTypeOrSelf(widening.getIn());
  mask.replaceAllUsesWith(widenWords(b, mask.getLoc(), type, masked));
  mask.erase();
  widening.erase();
  return true;
}

/// A widened row of fp8 and the number that scales it.
struct ScaledRow {
  arith::ExtFOp widening;
  vector::BroadcastOp scale;
};
static std::optional<ScaledRow> getScaledRow(arith::MulFOp product) {
  auto of = [](Value row, Value factor) -> std::optional<ScaledRow> {
    auto widening = row.getDefiningOp<arith::ExtFOp>();
    auto scale = factor.getDefiningOp<vector::BroadcastOp>();
    if (!widening || !scale || isa<VectorType>(scale.getSourceType()) ||
        !isa<Float8E4M3FNType, Float8E5M2Type>(
            getElementTypeOrSelf(widening.getIn())) ||
        !fillsWords(widening.getIn().getType(), /*bits=*/8))
      return std::nullopt;
    return ScaledRow{widening, scale};
  };
  std::optional<ScaledRow> row = of(product.getLhs(), product.getRhs());
  return row ? row : of(product.getRhs(), product.getLhs());
}

/// If `product` scales a row of fp8 and is masked, masks the row as words
/// before it is widened and scaled. This takes a quarter as many selects. Where
/// the mask selects its constant, the scale becomes 1.
static void maskScaled(arith::MulFOp product) {
  APFloat other(0.0f);
  int64_t bits = 0;
  std::optional<ScaledRow> row = getScaledRow(product);
  if (!row || !row->widening->hasOneUse())
    return;
  auto [widening, scale] = *row;
  arith::SelectOp mask = getMask(product, other);
  if (!mask || !canHold(widening, other, bits))
    return;
  OpBuilder b(mask);
  Location loc = mask.getLoc();
  Value words = selectMasked(b, mask, product, widening, bits);
  Value narrow =
      vector::BitCastOp::create(b, loc, widening.getIn().getType(), words);
  Value wide = arith::ExtFOp::create(b, loc, widening.getType(), narrow);
  Value number = scale.getSource();
  ShapedBuilder s(b, loc, number.getType());
  bool isOtherFirst = mask.getFalseValue() == product.getResult();
  Value factor = s.select(mask.getCondition(), isOtherFirst ? s.f(1) : number,
                          isOtherFirst ? number : s.f(1));
  Value factors = vector::BroadcastOp::create(b, loc, scale.getType(), factor);
  LDBG() << "masked as words of fp8: " << widening;
  mask.replaceAllUsesWith(
      arith::MulFOp::create(b, loc, wide, factors).getResult());
  for (Operation *dead :
       {mask.getOperation(), product.getOperation(), widening.getOperation()})
    dead->erase();
}

/// Selects between two rows as words instead of widened elements. This takes
/// half as many selects, and fewer registers until the rows are widened.
static void selectWords(arith::SelectOp select) {
  auto first = select.getTrueValue().getDefiningOp<arith::ExtFOp>(),
       second = select.getFalseValue().getDefiningOp<arith::ExtFOp>();
  if (!first || !second || isa<VectorType>(select.getCondition().getType()) ||
      first.getIn().getType() != second.getIn().getType() ||
      !fillsWords(first.getIn().getType()) || !isComputedWith(select))
    return;
  OpBuilder b(select);
  Location loc = select.getLoc();
  Value words = arith::SelectOp::create(b, loc, select.getCondition(),
                                        getWords(b, loc, first.getIn()),
                                        getWords(b, loc, second.getIn()));
  LDBG() << "selected as words: " << select;
  Type type = getElementTypeOrSelf(first.getIn());
  select.replaceAllUsesWith(widenWords(b, loc, type, words));
  select.erase();
}

/// Returns true if `op` widens a row to f32, or scales a widened row.
static bool makesRow(Operation *op) {
  if (auto product = dyn_cast<arith::MulFOp>(op))
    return getScaledRow(product).has_value();
  auto widening = dyn_cast<arith::ExtFOp>(op);
  return widening && (fillsWords(widening.getIn().getType()) ||
                      fillsWords(widening.getIn().getType(), /*bits=*/8));
}

namespace {
class NarrowRowsPass : public mlafix::impl::NarrowRowsPassBase<NarrowRowsPass> {
public:
  void runOnOperation() override;

private:
  void delayWidening(const MachineModel &machine);
  void widenInBranches(arith::ExtFOp widening);
  void widenLate(ArrayRef<arith::ExtFOp> widenings, bool isSeparate);
  void widenInside(scf::IfOp branch);
  void widenAsWords(ArrayRef<arith::ExtFOp> widenings, bool hasWords);

  /// Widenings of bf16 in branches that must convert element by element. In
  /// front of such a branch, the same row is widened as words. If the branch
  /// also widened it as words, ptxas would recognise the values and keep the
  /// wide row in registers until the branch.
  llvm::SmallPtrSet<Operation *, 8> separate;
};
} // namespace

/// Clones `widening` into the branches that use it, and adds the clones to
/// `separate`.
void NarrowRowsPass::widenInBranches(arith::ExtFOp widening) {
  llvm::SmallSetVector<Block *, 4> blocks;
  for (Operation *user : widening->getUsers())
    if (user->getBlock() != widening->getBlock() &&
        isInBranch(user, widening->getBlock()))
      blocks.insert(user->getBlock());
  for (Block *block : blocks)
    if (Operation *first = findFirstUse(block, widening))
      separate.insert(cloneBefore(first, widening));
}

/// Moves the widening of each row whose extreme is computed on narrow elements
/// to the first use of the wide row. If `isSeparate` is true, a branch that
/// uses the wide row widens bf16 again, since keeping the wide row until the
/// branch would take twice the registers. An example is the branch in which a
/// lane searches for an index.
void NarrowRowsPass::widenLate(ArrayRef<arith::ExtFOp> widenings,
                               bool isSeparate) {
  for (arith::ExtFOp widening : widenings) {
    if (!hasNarrowExtreme(widening.getIn()))
      continue;
    if (isSeparate && getElementTypeOrSelf(widening.getIn()).isBF16())
      widenInBranches(widening);
    if (Operation *first = findFirstUse(widening->getBlock(), widening))
      widening->moveBefore(first);
  }
}

/// If a widened row is used in both branches of `branch` and nowhere else,
/// repeats the widening in each of them. Before `branch` the row then takes
/// half or a quarter of the registers, and each branch may mask it as words.
void NarrowRowsPass::widenInside(scf::IfOp branch) {
  if (branch.getElseRegion().empty())
    return;
  Operation *next = nullptr;
  for (Operation *op = branch->getPrevNode(); op; op = next) {
    next = op->getPrevNode();
    if (!makesRow(op) || !llvm::all_of(op->getUsers(), [&](Operation *user) {
          return branch->isProperAncestor(user);
        }))
      continue;
    Operation *places[] = {findFirstUse(branch.thenBlock(), op),
                           findFirstUse(branch.elseBlock(), op)};
    if (!places[0] || !places[1])
      continue;
    LDBG() << "widened in both branches: " << *op;
    bool isSeparate = separate.erase(op);
    for (Operation *place : places)
      if (Operation *copy = cloneBefore(place, op); isSeparate)
        separate.insert(copy);
    op->erase();
  }
}

/// Computes extremes on narrow rows, and widens rows where other ops need f32.
void NarrowRowsPass::delayWidening(const MachineModel &machine) {
  KernelOp kernel = getOperation();
  kernel.walk(widenBehind);
  if (!machine.narrowExtremes)
    return;
  bool hasExtremes = false;
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) { ops.push_back(op); });
  DenseSet<Operation *> parts = findPartsOfExtremes(ops);
  for (Operation *op : ops)
    if (parts.contains(op) && !isa<vector::ExtractOp>(op))
      hasExtremes |= computeNarrow(op);
  if (!hasExtremes)
    return;
  SmallVector<arith::ExtFOp> widenings;
  kernel.walk([&](arith::ExtFOp op) { widenings.push_back(op); });
  widenLate(widenings, machine.bf16Conversion);
  if (kernel.getPlanAttr().has(PlanField::PacksInTurn) && storesRows(kernel))
    kernel.walk([&](Block *block) { computeInTurn(block); });
}

/// Widens rows by integer arithmetic on words, where this is faster. In a
/// kernel that narrows to f16, widens all bf16 by integer arithmetic, which
/// LLVM does not recognise as a widening. Otherwise LLVM would narrow
/// arithmetic on bf16 to f16, which has a smaller range.
void NarrowRowsPass::widenAsWords(ArrayRef<arith::ExtFOp> widenings,
                                  bool hasWords) {
  bool narrowsToF16 = false;
  getOperation().walk([&](arith::TruncFOp op) {
    narrowsToF16 |= getElementTypeOrSelf(op.getType()).isF16();
  });
  for (arith::ExtFOp widening : widenings) {
    if (widening->use_empty()) { // selectWords() has replaced its uses.
      widening.erase();
      continue;
    }
    Type type = widening.getIn().getType();
    bool isWords = hasWords && fillsWords(type);
    if (isWords && maskWords(widening))
      continue;
    if (!getElementTypeOrSelf(type).isBF16())
      continue;
    OpBuilder b(widening);
    Location loc = widening.getLoc();
    Value wide;
    if (isWords && isComputedWith(widening))
      wide = widenWords(b, loc, getElementTypeOrSelf(type),
                        getWords(b, loc, widening.getIn()));
    else if (narrowsToF16)
      wide = extendBF16(ShapedBuilder(b, loc, widening.getType()),
                        widening.getIn());
    else
      continue;
    LDBG() << "in integers: " << widening;
    widening.replaceAllUsesWith(wide);
    widening.erase();
  }
}

void NarrowRowsPass::runOnOperation() {
  KernelOp kernel = getOperation();
  MachineModel machine = getMachine(kernel);
  if (!isGPU(getTarget(kernel)))
    return;
  separate.clear(); // Ops of another kernel may have the same addresses.
  bool hasWords = machine.narrowWords;
  if (hasWords) {
    delayWidening(machine);
    kernel.walk(selectWords);
  }
  kernel.walk([&](scf::IfOp branch) { widenInside(branch); });
  if (hasWords) {
    SmallVector<arith::MulFOp> products;
    kernel.walk([&](arith::MulFOp op) { products.push_back(op); });
    llvm::for_each(products, maskScaled);
  }
  SmallVector<arith::ExtFOp> widenings;
  kernel.walk([&](arith::ExtFOp op) {
    if (!separate.contains(op))
      widenings.push_back(op);
  });
  widenAsWords(widenings, hasWords);
}
