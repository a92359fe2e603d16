//===- WideDivisions.cpp - divisions of more than 64 bits -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// If a loop adds up its counter, LLVM's scalar evolution expresses the sum as a
// 65-bit product. Loop strength reduction, a pass of the code generator, then
// divides 65-bit numbers. For such divisions, CPU code generators call the
// compiler's runtime library, and NVPTX aborts the process. So this pass
// replaces them.
//
//===----------------------------------------------------------------------===//

#include "lib/Target/LLVMIR.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Pass.h"
#include "llvm/Transforms/Utils/IntegerDivision.h"

using namespace llvm;

// The width in bits of the widest division that every target has code for.
static constexpr unsigned kDivided = 64;

static bool isWide(const Instruction &instruction) {
  switch (instruction.getOpcode()) {
  case Instruction::UDiv:
  case Instruction::SDiv:
  case Instruction::URem:
  case Instruction::SRem:
    return instruction.getType()->getScalarSizeInBits() > kDivided;
  default:
    return false;
  }
}

/// Splits a vector division into scalar divisions, and appends those to
/// `parts`.
static void split(Instruction *division,
                  SmallVectorImpl<Instruction *> &parts) {
  IRBuilder<> b(division);
  auto *type = cast<FixedVectorType>(division->getType());
  Value *result = PoisonValue::get(type);
  for (unsigned i = 0; i < type->getNumElements(); ++i) {
    Value *part = b.CreateBinOp(
        static_cast<Instruction::BinaryOps>(division->getOpcode()),
        b.CreateExtractElement(division->getOperand(0), i),
        b.CreateExtractElement(division->getOperand(1), i));
    if (auto *instruction = dyn_cast<Instruction>(part))
      parts.push_back(instruction);
    result = b.CreateInsertElement(result, part, i);
  }
  division->replaceAllUsesWith(result);
  division->eraseFromParent();
}

/// Expands a wide division. If the operands provably fit kDivided bits, as
/// those of scalar evolution's divisions do, divides in that width. Otherwise
/// creates a loop over the bits.
static void expand(BinaryOperator *division) {
  const DataLayout &layout = division->getDataLayout();
  auto isNarrow = [&](const Value *value) {
    return computeKnownBits(value, layout).countMaxActiveBits() <= kDivided;
  };
  Instruction::BinaryOps opcode = division->getOpcode();
  bool isRemainder = opcode == Instruction::URem || opcode == Instruction::SRem;
  if (!all_of(division->operands(), isNarrow)) {
    if (isRemainder)
      expandRemainder(division);
    else
      expandDivision(division);
    return;
  }
  IRBuilder<> b(division);
  auto narrow = [&](unsigned i) {
    return b.CreateTrunc(division->getOperand(i), b.getIntNTy(kDivided));
  };
  Value *result =
      b.CreateBinOp(isRemainder ? Instruction::URem : Instruction::UDiv,
                    narrow(0), narrow(1));
  division->replaceAllUsesWith(b.CreateZExt(result, division->getType()));
  division->eraseFromParent();
}

namespace {
struct WideDivisions final : FunctionPass {
  WideDivisions() : FunctionPass(id) {}

  StringRef getPassName() const override { return "Expand wide divisions"; }

  bool runOnFunction(Function &function) override {
    SmallVector<Instruction *> divisions, vectors;
    for (Instruction &instruction : instructions(function))
      if (isWide(instruction))
        (instruction.getType()->isVectorTy() ? vectors : divisions)
            .push_back(&instruction);
    for (Instruction *division : vectors)
      split(division, divisions);
    for (Instruction *division : divisions)
      expand(cast<BinaryOperator>(division));
    return !divisions.empty();
  }

  static char id;
};
} // namespace

char WideDivisions::id = 0;

FunctionPass *mlafix::target::createWideDivisionsPass() {
  return new WideDivisions();
}
