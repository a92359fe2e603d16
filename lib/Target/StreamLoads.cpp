//===- StreamLoads.cpp - loads that the caches drop first -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// LLVM 22 ignores !nontemporal for NVPTX. The PTX for it is assembly, which
// takes the place of such a load once LLVM has nothing more to optimize.
//
//===----------------------------------------------------------------------===//

#include "lib/Target/LLVMIR.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"

using namespace llvm;

static constexpr unsigned kWords = 4;

/// Of four words from global memory, each an element.
static bool isStreamed(const LoadInst &load) {
  constexpr unsigned kGlobal = 1;
  auto *type = dyn_cast<FixedVectorType>(load.getType());
  return type && load.hasMetadata(LLVMContext::MD_nontemporal) &&
         load.isSimple() && load.getPointerAddressSpace() == kGlobal &&
         load.getAlign() >= 16 && type->getScalarSizeInBits() == 32 &&
         type->getNumElements() == kWords;
}

static void stream(LoadInst *load) {
  IRBuilder<> b(load);
  Type *word = b.getInt32Ty(), *element = load->getType()->getScalarType();
  auto *type = FunctionType::get(StructType::get(word, word, word, word),
                                 {load->getPointerOperandType()}, false);
  // With effects, so that nothing is moved across it: a wait for the preceding
  // grid stands ahead of it.
  auto *assembly = InlineAsm::get(
      type, "ld.global.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4];",
      "=r,=r,=r,=r,l,~{memory}", /*hasSideEffects=*/true);
  Value *words = b.CreateCall(type, assembly, {load->getPointerOperand()});
  Value *row = PoisonValue::get(load->getType());
  for (unsigned i = 0; i < kWords; ++i)
    row = b.CreateInsertElement(
        row, b.CreateBitCast(b.CreateExtractValue(words, i), element), i);
  load->replaceAllUsesWith(row);
  load->eraseFromParent();
}

void mlafix::target::streamLoads(Module &module) {
  SmallVector<LoadInst *> loads;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (auto *load = dyn_cast<LoadInst>(&instruction);
          load && isStreamed(*load))
        loads.push_back(load);
  for (LoadInst *load : loads)
    stream(load);
}
