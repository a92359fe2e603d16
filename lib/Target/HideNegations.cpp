//===- HideNegations.cpp - negated integers that ptxas takes as they were -===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/LLVMIR.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

/// -x as ~x + 1, which neither LLVM nor ptxas makes a negation of.
static Value *negate(IRBuilder<> &b, Value *x) {
  auto *type = FunctionType::get(b.getInt32Ty(), {b.getInt32Ty()}, false);
  auto *negation = InlineAsm::get(
      type,
      "{\n\t.reg .b32 rest;\n\tnot.b32 rest, $1;\n\tadd.s32 $0, rest, 1;\n\t}",
      "=r,r", /*hasSideEffects=*/false);
  return b.CreateCall(type, negation, {x});
}

void mlafix::target::hideNegations(Module &module) {
  SmallVector<std::pair<Instruction *, Value *>> negations;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      Value *x;
      if (instruction.getType()->getScalarType()->isIntegerTy(32) &&
          match(&instruction, m_Neg(m_Value(x))))
        negations.push_back({&instruction, x});
    }
  for (auto [instruction, x] : negations) {
    IRBuilder<> b(instruction);
    Value *result = nullptr;
    if (auto *vector = dyn_cast<FixedVectorType>(instruction->getType())) {
      result = PoisonValue::get(vector);
      for (unsigned i = 0; i < vector->getNumElements(); ++i)
        result = b.CreateInsertElement(
            result, negate(b, b.CreateExtractElement(x, i)), i);
    } else {
      result = negate(b, x);
    }
    instruction->replaceAllUsesWith(result);
    instruction->eraseFromParent();
  }
}
