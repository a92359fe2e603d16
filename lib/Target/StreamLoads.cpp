//===- StreamLoads.cpp - loads that allocate nothing in L1 ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// LLVM 22 ignores the metadata !nontemporal of loads for NVPTX. So
// streamLoads() replaces 16-byte loads that have it by inline PTX
// (`ld.global.L1::no_allocate`), after all optimisations.
//
//===----------------------------------------------------------------------===//

#include "lib/Target/LLVMIR.h"

#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

static constexpr unsigned kWords = 4;
static constexpr unsigned kGlobal = 1;

/// Returns true if `loaded` is a vector of four 32-bit elements.
static bool hasFourWords(const Type *loaded) {
  auto *type = dyn_cast<FixedVectorType>(loaded);
  return type && type->getScalarSizeInBits() == 32 &&
         type->getNumElements() == kWords;
}

/// Returns true if `load` is a !nontemporal load of 16 bytes from global
/// memory.
static bool isStreamed(const LoadInst &load) {
  return load.hasMetadata(LLVMContext::MD_nontemporal) && load.isSimple() &&
         load.getPointerAddressSpace() == kGlobal && load.getAlign() >= 16 &&
         hasFourWords(load.getType());
}

/// Returns true if `load` is a masked !nontemporal load of 16 bytes from global
/// memory whose masked-off elements read as zero.
static bool isStreamed(const IntrinsicInst &load) {
  if (load.getIntrinsicID() != Intrinsic::masked_load ||
      !load.hasMetadata(LLVMContext::MD_nontemporal))
    return false;
  auto *zero = dyn_cast<Constant>(load.getArgOperand(2));
  return load.getArgOperand(0)->getType()->getPointerAddressSpace() ==
             kGlobal &&
         load.getParamAlign(0).valueOrOne() >= 16 &&
         hasFourWords(load.getType()) && getSplatValue(load.getArgOperand(1)) &&
         zero && zero->isNullValue();
}

/// Replaces `load` by the inline assembly `text`, whose results $0 to $3 are
/// the four words loaded. The inputs, from $4 on, are `operands`. `constraints`
/// describes results and inputs.
static void replaceByAssembly(Instruction *load, StringRef text,
                              StringRef constraints,
                              ArrayRef<Value *> operands) {
  IRBuilder<> b(load);
  Type *word = b.getInt32Ty(), *element = load->getType()->getScalarType();
  SmallVector<Type *> types;
  for (Value *operand : operands)
    types.push_back(operand->getType());
  auto *type = FunctionType::get(StructType::get(word, word, word, word), types,
                                 /*isVarArg=*/false);
  // The side effect keeps the assembly after the wait for the preceding grid.
  auto *assembly =
      InlineAsm::get(type, text, constraints, /*hasSideEffects=*/true);
  Value *words = b.CreateCall(type, assembly, operands);
  Value *row = PoisonValue::get(load->getType());
  for (unsigned i = 0; i < kWords; ++i)
    row = b.CreateInsertElement(
        row, b.CreateBitCast(b.CreateExtractValue(words, i), element), i);
  load->replaceAllUsesWith(row);
  load->eraseFromParent();
}

static void stream(LoadInst *load) {
  replaceByAssembly(load,
                    "ld.global.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4];",
                    "=r,=r,=r,=r,l,~{memory}", {load->getPointerOperand()});
}

static void stream(IntrinsicInst *load) {
  Value *mask = getSplatValue(load->getArgOperand(1));
  IRBuilder<> b(load);
  replaceByAssembly(
      load,
      "{\n\t.reg .pred loads;\n\tsetp.ne.b32 loads, $5, 0;\n\t"
      "mov.b32 $0, 0;\n\tmov.b32 $1, 0;\n\t"
      "mov.b32 $2, 0;\n\tmov.b32 $3, 0;\n\t"
      "@loads ld.global.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4];\n\t}",
      "=&r,=&r,=&r,=&r,l,r,~{memory}",
      {load->getArgOperand(0), b.CreateZExt(mask, b.getInt32Ty())});
}

void mlafix::target::streamLoads(Module &module) {
  SmallVector<LoadInst *> loads;
  SmallVector<IntrinsicInst *> masked;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      if (auto *load = dyn_cast<LoadInst>(&instruction);
          load && isStreamed(*load))
        loads.push_back(load);
      if (auto *load = dyn_cast<IntrinsicInst>(&instruction);
          load && isStreamed(*load))
        masked.push_back(load);
    }
  for (LoadInst *load : loads)
    stream(load);
  for (IntrinsicInst *load : masked)
    stream(load);
}
