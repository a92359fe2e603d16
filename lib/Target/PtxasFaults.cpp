//===- PtxasFaults.cpp - code that ptxas compiles wrongly -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/LLVMIR.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

/// Computes -x as ~x + 1 in inline assembly, so that neither LLVM nor ptxas
/// turns it back into a negation.
static Value *negate(IRBuilder<> &b, Value *x) {
  auto *type = FunctionType::get(x->getType(), {x->getType()}, false);
  bool isWide = x->getType()->isIntegerTy(64);
  auto *negation =
      InlineAsm::get(type,
                     isWide ? "{\n\t.reg .b64 rest;\n\tnot.b64 rest, $1;\n\t"
                              "add.s64 $0, rest, 1;\n\t}"
                            : "{\n\t.reg .b32 rest;\n\tnot.b32 rest, $1;\n\t"
                              "add.s32 $0, rest, 1;\n\t}",
                     isWide ? "=l,l" : "=r,r", /*hasSideEffects=*/false);
  return b.CreateCall(type, negation, {x});
}

/// Returns true if ptxas may miscompile the negation of `x`. ptxas 13.0 merges
/// maxima of three 32-bit integers into one instruction and loses a negation of
/// one of them. ptxas 12.9 and 13.0 fold comparisons of -|x| with a constant
/// wrongly, even inside a 64-bit minimum.
static bool isNegationFaulty(Value *x) {
  Type *type = x->getType()->getScalarType();
  return type->isIntegerTy(32) ||
         (type->isIntegerTy(64) && match(x, m_Intrinsic<Intrinsic::abs>()));
}

// Each function below first collects instructions and then replaces them. It
// reads the operands of an instruction only when it replaces the instruction,
// since an earlier replacement may have changed the operands.

static void hideNegations(Module &module) {
  SmallVector<Instruction *> negations;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      Value *x;
      if (match(&instruction, m_Neg(m_Value(x))) && isNegationFaulty(x))
        negations.push_back(&instruction);
    }
  for (Instruction *instruction : negations) {
    Value *x = instruction->getOperand(1);
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

/// Selects between -0.0 and -1.0 as bit patterns. ptxas 13.0 would select an
/// integer 0 or -1 and convert it, which turns -0.0 into +0.0.
static void chooseZerosAsBits(Module &module) {
  SmallVector<SelectInst *> selects;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      auto *select = dyn_cast<SelectInst>(&instruction);
      if (!select || !select->getType()->getScalarType()->isFloatTy())
        continue;
      Value *yes = select->getTrueValue(), *no = select->getFalseValue();
      if ((match(yes, m_NegZeroFP()) && match(no, m_SpecificFP(-1.0))) ||
          (match(no, m_NegZeroFP()) && match(yes, m_SpecificFP(-1.0))))
        selects.push_back(select);
    }
  for (SelectInst *select : selects) {
    IRBuilder<> b(select);
    Type *type = select->getType();
    Type *bits = type->getWithNewType(b.getInt32Ty());
    Value *chosen = b.CreateSelect(
        select->getCondition(), b.CreateBitCast(select->getTrueValue(), bits),
        b.CreateBitCast(select->getFalseValue(), bits));
    select->replaceAllUsesWith(b.CreateBitCast(chosen, type));
    select->eraseFromParent();
  }
}

/// Takes the sign of a negated f32 with integer operations. PTX leaves the sign
/// of `neg.f32` undefined for NaN. For the sign of a packed 16-bit element,
/// LLVM applies `neg.f32` to the 32-bit word that contains the element. The
/// word may be a NaN although the element is not, for example if the element is
/// an infinity.
static void takeSignsAsBits(Module &module) {
  SmallVector<Instruction *> copies;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (instruction.getType()->getScalarType()->isFloatTy() &&
          match(&instruction, m_CopySign(m_Value(), m_FNeg(m_Value()))))
        copies.push_back(&instruction);
  for (Instruction *copy : copies) {
    Value *negated = nullptr;
    match(copy->getOperand(1), m_FNeg(m_Value(negated)));
    IRBuilder<> b(copy);
    Type *bits = copy->getType()->getWithNewType(b.getInt32Ty());
    Value *sign = b.CreateAnd(b.CreateNot(b.CreateBitCast(negated, bits)),
                              ConstantInt::get(bits, 1u << 31));
    Value *rest = b.CreateAnd(b.CreateBitCast(copy->getOperand(0), bits),
                              ConstantInt::get(bits, ~(1u << 31)));
    copy->replaceAllUsesWith(
        b.CreateBitCast(b.CreateOr(rest, sign), copy->getType()));
    copy->eraseFromParent();
  }
}

/// Returns true if `value` is a pair of narrow floats that was converted from
/// f32.
static bool isConvertedPair(const Value *value) {
  value = value->stripPointerCasts();
  while (const auto *cast = dyn_cast<BitCastInst>(value))
    value = cast->getOperand(0);
  const auto *call = dyn_cast<CallInst>(value);
  const Function *callee = call ? call->getCalledFunction() : nullptr;
  return callee && callee->getName().starts_with("llvm.nvvm.ff.to.e");
}

/// Returns true if some use of `value`, a pair of narrow floats, converts it to
/// f32.
static bool isConvertedBack(const Value *value) {
  return llvm::any_of(value->users(), [](const User *user) {
    if (isa<BitCastInst>(user))
      return isConvertedBack(user);
    const auto *call = dyn_cast<CallInst>(user);
    const Function *callee = call ? call->getCalledFunction() : nullptr;
    return callee && callee->getName().contains(".to.f16x2");
  });
}

// If two pairs of narrow floats are stored together, ptxas 12.9 and 13.0
// combine them into one word and read the pairs from that word at other uses,
// too. If a branch may have changed one of the pairs, the changed pair is lost.
// The next two functions prevent this.

/// Extends each pair that passes through a phi to a word of its own, so that it
/// cannot become part of another word.
static void passPairsAsWords(Module &module) {
  SmallVector<PHINode *> pairs;
  for (Function &function : module)
    for (BasicBlock &block : function)
      for (PHINode &phi : block.phis())
        if (phi.getType()->getPrimitiveSizeInBits() <= 16 &&
            llvm::any_of(phi.incoming_values(), [](const Use &value) {
              return isConvertedPair(value.get());
            }))
          pairs.push_back(&phi);
  for (PHINode *phi : pairs) {
    IRBuilder<> b(phi);
    Type *bits = b.getIntNTy(phi->getType()->getPrimitiveSizeInBits());
    PHINode *word = b.CreatePHI(b.getInt32Ty(), phi->getNumIncomingValues());
    DenseMap<BasicBlock *, Value *>
        words; // one per predecessor, which the phi may list twice
    for (auto [value, from] : zip(phi->incoming_values(), phi->blocks())) {
      b.SetInsertPoint(from->getTerminator());
      Value *&extended = words[from];
      if (!extended)
        extended =
            b.CreateZExt(b.CreateBitCast(value.get(), bits), b.getInt32Ty());
      word->addIncoming(extended, from);
    }
    b.SetInsertPoint(phi->getParent(), phi->getParent()->getFirstInsertionPt());
    phi->replaceAllUsesWith(
        b.CreateBitCast(b.CreateTrunc(word, bits), phi->getType()));
    phi->eraseFromParent();
  }
}

/// Puts empty assembly before loads of pairs that were stored. LLVM's code
/// generator would forward the stored pair to the load; the assembly counts as
/// a store and prevents that.
static void loadStoredPairs(Module &module) {
  for (Function &function : module) {
    SmallPtrSet<const Value *, 8> stored;
    SmallVector<LoadInst *> loads;
    for (Instruction &instruction : instructions(function)) {
      if (auto *store = dyn_cast<StoreInst>(&instruction))
        stored.insert(getUnderlyingObject(store->getPointerOperand()));
      auto *load = dyn_cast<LoadInst>(&instruction);
      if (load && load->getType()->getPrimitiveSizeInBits() <= 16 &&
          isConvertedBack(load))
        loads.push_back(load);
    }
    for (LoadInst *load : loads)
      if (stored.contains(getUnderlyingObject(load->getPointerOperand()))) {
        IRBuilder<> b(load);
        auto *type = FunctionType::get(b.getVoidTy(), false);
        b.CreateCall(type, InlineAsm::get(type, "", "~{memory}",
                                          /*hasSideEffects=*/true));
      }
  }
}

/// Returns the assembly of `op` if it packs integers into saturated bytes
/// (MathToNVVM.cpp writes it). Otherwise returns null.
static const InlineAsm *getBytePack(const Instruction &op) {
  const auto *call = dyn_cast<CallInst>(&op);
  const auto *assembly =
      call ? dyn_cast<InlineAsm>(call->getCalledOperand()) : nullptr;
  return assembly && assembly->getAsmString().starts_with("cvt.pack.sat.")
             ? assembly
             : nullptr;
}

/// Returns false if ptxas certainly does not take the f32 `x` for a maximum
/// with zero: `x` is a product, sum, conversion, minimum or value from memory.
static bool mayBeMaximum(const Value *x) {
  const auto *op = dyn_cast<Instruction>(x);
  if (!op)
    return false;
  switch (op->getOpcode()) {
  case Instruction::BitCast:
  case Instruction::ExtractElement:
    return mayBeMaximum(op->getOperand(0));
  case Instruction::FMul:
  case Instruction::FAdd:
  case Instruction::FSub:
  case Instruction::FDiv:
  case Instruction::FPExt:
  case Instruction::SIToFP:
  case Instruction::UIToFP:
  case Instruction::Load:
  case Instruction::Shl:
  case Instruction::And:
    return false;
  default:
    break;
  }
  const auto *call = dyn_cast<IntrinsicInst>(op);
  switch (call ? call->getIntrinsicID() : Intrinsic::not_intrinsic) {
  case Intrinsic::ceil:
  case Intrinsic::floor:
  case Intrinsic::rint:
  case Intrinsic::roundeven:
  case Intrinsic::trunc:
    return mayBeMaximum(call->getArgOperand(0));
  case Intrinsic::fma:
  case Intrinsic::minimum:
  case Intrinsic::minnum:
    return false;
  default:
    return true;
  }
}

/// Returns the f32 operand if `integer` is a rounded or truncated f32, else
/// null.
static Use *getConverted(Value *integer) {
  auto *op = dyn_cast<Instruction>(integer);
  if (!op)
    return nullptr;
  bool isConversion = op->getOpcode() == Instruction::FPToSI ||
                      match(op, m_Intrinsic<Intrinsic::nvvm_f2i_rn>()) ||
                      match(op, m_Intrinsic<Intrinsic::fptosi_sat>());
  return isConversion && op->getOperand(0)->getType()->isFloatTy()
             ? &op->getOperandUse(0)
             : nullptr;
}

/// Puts a minimum between a maximum with zero and the byte pack that it feeds.
/// ptxas (12.9 to 13.4, sm_86 and later) fuses the maximum, the conversion to
/// i32 and the pack into F2IP.RELU. That instruction is illegal on Hopper and
/// traps. The minimum changes neither NaN nor the resulting byte.
static void keepMaximaFromPacks(Module &module) {
  MapVector<Use *, double> converted;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (const InlineAsm *pack = getBytePack(instruction))
        for (Value *integer : cast<CallInst>(instruction).args())
          if (Use *x = getConverted(integer); x && mayBeMaximum(x->get()))
            converted[x] = pack->getAsmString().contains(".u8") ? 255 : 127;
  for (auto [x, most] : converted) {
    IRBuilder<> b(cast<Instruction>(x->getUser()));
    x->set(
        b.CreateMinimum(x->get(), ConstantFP::get(x->get()->getType(), most)));
  }
}

// Rewrites the PTX text and not the module, because the code generator creates
// further 32-bit negations after all module passes. It creates them from
// products and quotients by negative powers of two.
std::string mlafix::target::rewriteNegations(StringRef ptx) {
  constexpr StringLiteral negation = "\tneg.s32 \t";
  std::string result;
  result.reserve(ptx.size());
  for (size_t at = ptx.find(negation); at != StringRef::npos;
       at = ptx.find(negation)) {
    result += ptx.take_front(at);
    auto [operands, rest] = ptx.drop_front(at + negation.size()).split(';');
    StringRef to = operands.split(',').first;
    result += ("\tnot.b32 \t" + operands + ";\n\tadd.s32 \t" + to + ", " + to +
               ", 1;")
                  .str();
    ptx = rest;
  }
  result += ptx;
  return result;
}

// When ptxas 13.0 spilled registers, it computed an address from an overwritten
// register. The register held a value with two uses, and ptxas doubled the
// value in place for one use before it copied the value for the other use. With
// -O1, or with more registers, the code was correct. The compiler uses the
// functions below to find code that spills and to give it more registers.

/// Returns two positions in `ptx`: the start of the directives of `entry`, and
/// the start of its body.
static std::pair<size_t, size_t> findDirectives(StringRef ptx,
                                                StringRef entry) {
  size_t params = ptx.find((".entry " + entry + "(").str());
  size_t directives = ptx.find("\n)\n", params);
  size_t body = ptx.find("\n{\n", directives);
  assert(body != StringRef::npos && "expected PTX by LLVM with this entry");
  return {directives + 2, body};
}

uint64_t mlafix::target::countLocalBytes(StringRef ptx, StringRef entry) {
  StringRef body = ptx.drop_front(findDirectives(ptx, entry).second);
  uint64_t bytes = 0;
  if (body.consume_front("\n{\n\t.local "))
    body.split('[').second.consumeInteger(10, bytes);
  return bytes;
}

bool mlafix::target::giveRegisters(std::string &ptx, StringRef entry) {
  constexpr StringLiteral resident = "\n.minnctapersm ";
  auto [begin, end] = findDirectives(ptx, entry);
  StringRef directives = StringRef(ptx).slice(begin, end);
  size_t at = directives.find(resident);
  if (at == StringRef::npos) {
    ptx.insert(end, (resident + "1").str());
    return true;
  }
  StringRef line = directives.drop_front(at + 1).split('\n').first;
  if (line.ends_with(" 1"))
    return false;
  ptx.erase(begin + at, line.size() + 1);
  return true;
}

void mlafix::target::avoidPtxasFaults(Module &module) {
  hideNegations(module);
  passPairsAsWords(module);
  loadStoredPairs(module);
  chooseZerosAsBits(module);
  takeSignsAsBits(module);
  keepMaximaFromPacks(module);
}
