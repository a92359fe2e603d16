//===- PredicatedLoad.cpp - loads that take no branch ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/PredicatedLoad.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

/// Name of the attribute on the assembly with the type of what it loads.
static constexpr StringLiteral kLoadedAttr = "mlafix.loaded";

std::optional<PredicatedLoad> mlafix::asPredicatedLoad(Operation *op) {
  auto loaded = op->getAttrOfType<TypeAttr>(kLoadedAttr);
  if (!loaded)
    return std::nullopt;
  return PredicatedLoad{op->getOperand(0), op->getOperand(1),
                        loaded.getValue()};
}

static unsigned countBits(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() * vector.getElementTypeBitWidth()
                : type.getIntOrFloatBitWidth();
}

/// Words of 32 bits of the widest load that all GPUs have.
static constexpr unsigned kMostWords = 4;

/// PTX that loads `words` values of 32 bits into its first operands, from the
/// next one on if the last one holds.
static std::string buildText(unsigned words) {
  std::string text;
  for (unsigned first = 0; first < words; first += kMostWords) {
    unsigned count = std::min(words - first, kMostWords);
    std::string registers;
    for (unsigned i = 0; i < count; ++i)
      registers += llvm::formatv("{0}${1}", i ? ", " : "", first + i);
    text += llvm::formatv("{0}@${1} ld.global{2}.b32 {3}, [${4}{5}];",
                          first ? "\n\t" : "", words + 1,
                          count == 1 ? "" : llvm::formatv(".v{0}", count).str(),
                          count == 1 ? registers : "{" + registers + "}", words,
                          first ? llvm::formatv("+{0}", 4 * first).str() : "");
  }
  return text;
}

/// `words` values of 32 bits, an i32 or a struct of them.
static Value buildAssembly(OpBuilder &b, const PredicatedLoad &load,
                           Location loc, unsigned words) {
  std::string constraints;
  for (unsigned i = 0; i < words; ++i)
    constraints += "=r,";
  SmallVector<Type> types(words, b.getI32Type());
  Type type = words == 1
                  ? types.front()
                  : LLVM::LLVMStructType::getLiteral(b.getContext(), types);
  auto op = LLVM::InlineAsmOp::create(
      b, loc, type, ValueRange{load.pointer, load.condition}, buildText(words),
      constraints + "l,b", /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
      ArrayAttr());
  op->setAttr(kLoadedAttr, TypeAttr::get(load.type));
  return op.getResult(0);
}

Value mlafix::buildPredicatedLoad(OpBuilder &b, LLVM::LoadOp load,
                                  Value condition) {
  Type type = load.getType();
  Location loc = load.getLoc();
  unsigned bits = countBits(type), words = bits / 32;
  std::optional<uint64_t> alignment = load.getAlignment();
  if (bits % 32 || !llvm::isPowerOf2_32(words) || words > 2 * kMostWords ||
      (alignment && *alignment < 4 * std::min(words, kMostWords)))
    return {};
  Value loaded =
      buildAssembly(b, {load.getAddr(), condition, type}, loc, words);
  if (words == 1)
    return LLVM::BitcastOp::create(b, loc, type, loaded);
  Value packed = LLVM::PoisonOp::create(
      b, loc, VectorType::get({int64_t(words)}, b.getI32Type()));
  for (unsigned i = 0; i < words; ++i)
    packed = LLVM::InsertElementOp::create(
        b, loc, packed, LLVM::ExtractValueOp::create(b, loc, loaded, i),
        LLVM::ConstantOp::create(b, loc, b.getI32Type(), i));
  return LLVM::BitcastOp::create(b, loc, type, packed);
}
