//===- LaunchChecks.cpp - conditions that a launch checks -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/LaunchChecks.h"

#include "mlafix/UnitLimits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlafix;

bool mlafix::isLaunchCheck(AssumeOp op) {
  return isa<KernelOp>(op->getParentOp());
}

namespace {
/// Translates one condition to a list of steps, which units store. Each step
/// computes a number of 64 bits: numbers of 32 bits are sign-extended, and
/// booleans are 0 or 1. A Step is a position in the list, or nullopt if a
/// launch cannot compute the value.
class StepBuilder {
public:
  using Step = std::optional<int64_t>;

  explicit StepBuilder(MLIRContext *context) : b(context) {}

  Step get(Value value);
  /// Adds steps for the condition that a size is at most `most`.
  void checkAtMost(unsigned argument, unsigned dim, int64_t most);
  /// Returns the condition as a unit stores it.
  DictionaryAttr getCheck(StringRef text) const {
    return b.getDictionaryAttr({b.getNamedAttr("steps", b.getArrayAttr(steps)),
                                b.getNamedAttr("text", b.getStringAttr(text))});
  }

private:
  Step add(StringRef op, ArrayRef<NamedAttribute> fields);
  Step add(StringRef op, ArrayRef<Step> operands);
  Step addConstant(int64_t value);
  Step getSize(unsigned argument, unsigned dim);
  Step build(Value value);
  Step buildOp(Operation *op);
  Step buildNamed(Operation *op);
  Step compare(arith::CmpIOp op);
  Step round(Operation *op, bool isUp);
  Step zeroExtend(Step x, Type type);
  Step wrap(Step x, Type type);
  Step operand(Operation *op, unsigned index) {
    return get(op->getOperand(index));
  }

  mutable Builder b;
  SmallVector<Attribute> steps;
  DenseMap<Value, Step> known;
  unsigned depth = 0;
};
} // namespace

StepBuilder::Step StepBuilder::add(StringRef op,
                                   ArrayRef<NamedAttribute> fields) {
  if (steps.size() >= limits::checkSteps)
    return std::nullopt;
  SmallVector<NamedAttribute> all(fields);
  all.push_back(b.getNamedAttr("op", b.getStringAttr(op)));
  steps.push_back(b.getDictionaryAttr(all));
  return steps.size() - 1;
}

StepBuilder::Step StepBuilder::add(StringRef op, ArrayRef<Step> operands) {
  SmallVector<Attribute> of;
  for (Step operand : operands) {
    if (!operand)
      return std::nullopt;
    of.push_back(b.getI64IntegerAttr(*operand));
  }
  return add(op, b.getNamedAttr("of", b.getArrayAttr(of)));
}

StepBuilder::Step StepBuilder::addConstant(int64_t value) {
  return add("constant", b.getNamedAttr("value", b.getI64IntegerAttr(value)));
}

StepBuilder::Step StepBuilder::zeroExtend(Step x, Type type) {
  return type.isInteger(32) ? add("and", {x, addConstant(0xffffffff)}) : x;
}

StepBuilder::Step StepBuilder::wrap(Step x, Type type) {
  return type.isInteger(32) ? add("wrap32", ArrayRef<Step>(x)) : x;
}

StepBuilder::Step StepBuilder::get(Value value) {
  auto it = known.find(value);
  if (it != known.end())
    return it->second;
  if (depth == limits::checkSteps)
    return std::nullopt;
  ++depth;
  Step step = build(value);
  --depth;
  return known[value] = step;
}

/// Builds a comparison. Unsigned comparisons need no zero-extension, since
/// 32-bit numbers that are sign-extended to 64 bits keep their unsigned order.
/// In a signed comparison of booleans, true is -1 and so below false.
StepBuilder::Step StepBuilder::compare(arith::CmpIOp op) {
  using P = arith::CmpIPredicate;
  Step x = operand(op, 0), y = operand(op, 1);
  bool isSigned =
      llvm::is_contained({P::slt, P::sle, P::sgt, P::sge}, op.getPredicate());
  if (isSigned && op.getLhs().getType().isInteger(1))
    std::swap(x, y);
  auto negate = [&](Step step) { return add("xor", {step, addConstant(1)}); };
  switch (op.getPredicate()) {
  case P::eq:
    return add("eq", {x, y});
  case P::ne:
    return negate(add("eq", {x, y}));
  case P::slt:
    return add("lt", {x, y});
  case P::sgt:
    return add("lt", {y, x});
  case P::sle:
    return negate(add("lt", {y, x}));
  case P::sge:
    return negate(add("lt", {x, y}));
  case P::ult:
    return add("ult", {x, y});
  case P::ugt:
    return add("ult", {y, x});
  case P::ule:
    return negate(add("ult", {y, x}));
  case P::uge:
    return negate(add("ult", {x, y}));
  }
  llvm_unreachable("all predicates are handled");
}

/// Builds a quotient that is rounded up or down, from the truncated quotient:
///
///   - Up: adds 1 if the remainder is not 0 and has the divisor's sign.
///   - Down: subtracts 1 if the remainder is not 0 and has the opposite sign.
StepBuilder::Step StepBuilder::round(Operation *op, bool isUp) {
  Step x = operand(op, 0), y = operand(op, 1), zero = addConstant(0);
  Step quotient = add("div", {x, y}), rest = add("rem", {x, y});
  Step differ = add("lt", {add("xor", {rest, y}), zero});
  Step isCut = isUp ? add("xor", {differ, addConstant(1)}) : differ;
  Step isOff = add("select", {add("eq", {rest, zero}), zero, isCut}); // 0 or 1
  return wrap(add(isUp ? "add" : "sub", {quotient, isOff}),
              op->getResult(0).getType());
}

namespace {
/// A binary operation and the name of the step that computes it.
struct NamedStep {
  StringLiteral op, step;
  bool wraps;      // to 32 bits, if the op is on numbers of 32 bits
  bool isUnsigned; // operands of 32 bits are zero-extended
};
} // namespace

static constexpr NamedStep namedSteps[] = {
    {"arith.addi", "add", true, false},   {"arith.subi", "sub", true, false},
    {"arith.muli", "mul", true, false},   {"arith.divsi", "div", true, false},
    {"arith.remsi", "rem", true, false},  {"arith.shli", "shl", true, false},
    {"arith.shrsi", "shr", false, false}, {"arith.divui", "udiv", true, true},
    {"arith.remui", "urem", true, true},  {"arith.shrui", "ushr", true, true},
    {"arith.andi", "and", false, false},  {"arith.ori", "or", false, false},
    {"arith.xori", "xor", false, false},  {"arith.minsi", "min", false, false},
    {"arith.maxsi", "max", false, false}, {"arith.minui", "umin", false, false},
    {"arith.maxui", "umax", false, false}};

StepBuilder::Step StepBuilder::buildNamed(Operation *op) {
  const NamedStep *named =
      llvm::find_if(namedSteps, [&](const NamedStep &known) {
        return op->getName().getStringRef() == known.op;
      });
  if (named == std::end(namedSteps))
    return std::nullopt;
  Type type = op->getResult(0).getType();
  Step x = operand(op, 0), y = operand(op, 1);
  if (named->isUnsigned)
    x = zeroExtend(x, type), y = zeroExtend(y, type);
  Step step = add(named->step, {x, y});
  return named->wraps ? wrap(step, type) : step;
}

StepBuilder::Step StepBuilder::buildOp(Operation *op) {
  Type type = op->getResult(0).getType();
  // Others, such as a sum or a signed minimum, take true for -1.
  bool isLogic = isa<arith::CmpIOp, arith::SelectOp, arith::AndIOp,
                     arith::OrIOp, arith::XOrIOp>(op);
  if (type.isInteger(1) && !isLogic)
    return std::nullopt;
  return llvm::TypeSwitch<Operation *, Step>(op)
      .Case<memref::DimOp>([&](auto dim) -> Step {
        BlockArgument argument = getKernelArgument(dim.getSource());
        if (!argument || !dim.getConstantIndex())
          return std::nullopt;
        return getSize(argument.getArgNumber(), *dim.getConstantIndex());
      })
      .Case<arith::FloorDivSIOp>([&](auto) { return round(op, false); })
      .Case<arith::CeilDivSIOp>([&](auto) { return round(op, true); })
      .Case<arith::CmpIOp>([&](auto compared) { return compare(compared); })
      .Case<arith::SelectOp>([&](auto) {
        return add("select", {operand(op, 0), operand(op, 1), operand(op, 2)});
      })
      .Case<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(
          [&](auto) -> Step {
            if (op->getOperand(0).getType().isInteger(1))
              return std::nullopt;
            return wrap(operand(op, 0), type);
          })
      .Case<arith::IndexCastUIOp, arith::ExtUIOp>([&](auto) {
        return zeroExtend(operand(op, 0), op->getOperand(0).getType());
      })
      .Default([&](Operation *) { return buildNamed(op); });
}

StepBuilder::Step StepBuilder::build(Value value) {
  Type type = value.getType();
  bool isBool = type.isInteger(1);
  if (!type.isIndex() && !type.isInteger(64) && !type.isInteger(32) && !isBool)
    return std::nullopt;
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return addConstant(isBool ? number.getZExtValue() : number.getSExtValue());
  if (BlockArgument argument = getKernelArgument(value))
    return add("scalar", b.getNamedAttr("arg", b.getI64IntegerAttr(
                                                   argument.getArgNumber())));
  Operation *op = value.getDefiningOp();
  return op ? buildOp(op) : std::nullopt;
}

StepBuilder::Step StepBuilder::getSize(unsigned argument, unsigned dim) {
  return add("size", {b.getNamedAttr("arg", b.getI64IntegerAttr(argument)),
                      b.getNamedAttr("dim", b.getI64IntegerAttr(dim))});
}

void StepBuilder::checkAtMost(unsigned argument, unsigned dim, int64_t most) {
  Step size = getSize(argument, dim);
  add("xor", {add("lt", {addConstant(most), size}), addConstant(1)});
}

DictionaryAttr mlafix::buildLaunchCheck(KernelOp kernel, StringRef dim) {
  int64_t most = *kernel.getMostOf(dim);
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    auto type = dyn_cast<MemRefType>(kernel.getArgumentTypes()[i]);
    if (!type || kernel.isArgOptional(i))
      continue;
    for (auto [position, name] :
         llvm::enumerate(kernel.getArgDims(i).getAsValueRange<StringAttr>())) {
      if (name != dim || !type.isDynamicDim(position))
        continue;
      StepBuilder steps(kernel.getContext());
      steps.checkAtMost(i, position, most);
      return steps.getCheck((dim + " <= " + Twine(most)).str());
    }
  }
  return {};
}

DictionaryAttr mlafix::buildLaunchCheck(AssumeOp op) {
  StepBuilder steps(op.getContext());
  return steps.get(op.getCondition()) ? steps.getCheck(op.getText())
                                      : DictionaryAttr();
}
