//===- PeerWaitLoads.cpp - loads that ranks do not wait for ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Late/PeerWaitLoads.h"

#include "lib/Transforms/Late/Speculation.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

/// Attribute of the assembly of a load: the loaded type.
static constexpr StringLiteral kLoadedAttr = "mlafix.loaded";

std::optional<LoadAhead> mlafix::asLoadAhead(Operation *op) {
  auto loaded = op->getAttrOfType<TypeAttr>(kLoadedAttr);
  if (!loaded)
    return std::nullopt;
  return LoadAhead{op->getOperand(0), op->getOperand(1), loaded.getValue()};
}

static unsigned countBits(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() * vector.getElementTypeBitWidth()
                : type.getIntOrFloatBitWidth();
}

/// Limit per load instruction; all GPUs support it.
static constexpr unsigned kMostWords = 4;

/// PTX that loads `words` 32-bit values into its first operands from the
/// address in the next one, if the last operand holds.
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

/// Builds assembly that loads `words` 32-bit values: an i32, or a struct of
/// them.
static Value buildAssembly(OpBuilder &b, const LoadAhead &load, Location loc,
                           unsigned words) {
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

/// Builds `load` as predicated assembly: the value is arbitrary if the
/// condition is false. Unlike ordinary loads, LLVM and ptxas do not move it to
/// its uses, and it needs no branch. A pack wider than one load takes two (16
/// elements of bf16 beside fp8, for example). Null if the type has no such
/// load, or if the address may be unaligned for it.
static Value buildLoad(OpBuilder &b, LLVM::LoadOp load, Value condition) {
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

static bool mayStore(Operation *op) {
  return op
      ->walk([](LLVM::StoreOp store) {
        return isGlobal(store.getAddr()) ? WalkResult::interrupt()
                                         : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The unconditional loads in `guard` that precede all stores; stores to peers
/// (`toPeers`) do not count, since they go to other memory.
static SmallVector<LLVM::LoadOp> collectLoads(scf::IfOp guard, bool toPeers) {
  SmallVector<LLVM::LoadOp> loads;
  for (Operation &op : *guard.thenBlock()) {
    if (!toPeers && mayStore(&op))
      break;
    if (auto load = dyn_cast<LLVM::LoadOp>(op);
        load && isGlobal(load.getAddr()))
      loads.push_back(load);
  }
  return loads;
}

/// Hoists `loads` of this rank's own tensors out of `guard` to `place`, as many
/// as the thread has registers to spare.
static void loadAhead(scf::IfOp guard, ArrayRef<LLVM::LoadOp> loads,
                      Operation *place) {
  constexpr size_t kLoads = 16;
  OpBuilder b(place);
  size_t count = 0;
  for (LLVM::LoadOp load : loads) {
    if (count == kLoads)
      return;
    if (!moveBeforeWait(load.getAddr(), place) ||
        !moveBeforeWait(guard.getCondition(), place))
      continue;
    Value early = buildLoad(b, load, guard.getCondition());
    if (!early)
      continue;
    load.replaceAllUsesWith(early);
    load.erase();
    ++count;
  }
}

/// True if `op`, between the two ends of an exchange, stores to this rank's own
/// tensors; addresses of other ranks' tensors come from a table.
static bool storesOwn(Operation *op, Operation *begin) {
  return op
      ->walk([&](LLVM::StoreOp store) {
        return isGlobal(store.getAddr()) &&
                       moveBeforeWait(store.getAddr(), begin)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

void mlafix::loadAheadOfWaits(BeginExchangeOp begin) {
  Operation *end = begin;
  SmallVector<scf::IfOp> guards;
  for (; !isa<EndExchangeOp>(end); end = end->getNextNode()) {
    if (auto guard = dyn_cast<scf::IfOp>(end))
      guards.push_back(guard);
    if (storesOwn(end, begin))
      return;
  }
  for (scf::IfOp guard : guards)
    loadAhead(guard, collectLoads(guard, /*toPeers=*/true), begin);
  for (Operation *user : end->getResult(0).getUsers())
    if (auto arrived = dyn_cast<scf::IfOp>(user))
      for (auto guard : arrived.thenBlock()->getOps<scf::IfOp>())
        loadAhead(guard, collectLoads(guard, /*toPeers=*/false), end);
}
