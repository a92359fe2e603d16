//===- MlafixToNVVM.cpp - distributed kernels become NVVM functions -*- C++
//-*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/ElementaryMath.h"
#include "lib/Conversion/LowerBody.h"
#include "lib/Conversion/MlafixToNVVM/DelayWait.h"
#include "lib/Conversion/NarrowFp8.h"
#include "lib/Conversion/Params.h"
#include "lib/Conversion/Passes.h"
#include "lib/Conversion/StoredFloats.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

namespace mlafix {
#define GEN_PASS_DEF_MLAFIXTONVVMPASS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

//===----------------------------------------------------------------------===//
// Math
//===----------------------------------------------------------------------===//

/// A function of one f32, built of the hardware's approximate instructions.
using ScalarFn = function_ref<Value(OpBuilder &, Location, Value)>;

static Value callIntrinsic(OpBuilder &b, Location loc, StringRef name,
                           Value x) {
  return LLVM::CallIntrinsicOp::create(b, loc, b.getF32Type(),
                                       b.getStringAttr(name), ValueRange{x})
      .getResults();
}

/// Applies a scalar function to a scalar or to each element of a vector.
static Value applyToElements(OpBuilder &b, Location loc, Value x, ScalarFn fn) {
  auto vector = dyn_cast<VectorType>(x.getType());
  if (!vector)
    return fn(b, loc, x);
  Value result = arith::ConstantOp::create(b, loc, b.getZeroAttr(vector));
  for (int64_t i = 0; i < vector.getNumElements(); ++i)
    result = vector::InsertOp::create(
        b, loc, fn(b, loc, vector::ExtractOp::create(b, loc, x, i)), result, i);
  return result;
}

/// An instruction of one f32, for a scalar or each element of a vector.
static Value callOnElements(OpBuilder &b, Location loc, StringRef name,
                            Value x) {
  return applyToElements(b, loc, x, [&](OpBuilder &b, Location loc, Value v) {
    return callIntrinsic(b, loc, name, v);
  });
}

/// Subnormals, which it flushes, are no divisors here.
static Value reciprocal(OpBuilder &b, Location loc, Value x) {
  return callOnElements(b, loc, "llvm.nvvm.rcp.approx.ftz.f", x);
}

static bool hasFlags(Operation *op, arith::FastMathFlags flags) {
  auto math = dyn_cast<arith::ArithFastMathInterface>(op);
  return math && arith::bitEnumContainsAll(
                     math.getFastMathFlagsAttr().getValue(), flags);
}

/// log2, or where an approximation will do (`afn`) the instruction: its error
/// is an absolute one, so that near 1 no digit may be left, and it takes
/// subnormals for 0.
static Value lowerLog2(OpBuilder &b, Operation *op) {
  Location loc = op->getLoc();
  Value x = op->getOperand(0);
  if (hasFlags(op, arith::FastMathFlags::afn))
    return callOnElements(b, loc, "llvm.nvvm.lg2.approx.ftz.f", x);
  ShapedBuilder s(b, loc, x.getType());
  return buildLog2(s, x, [&](Value a, Value c) {
    return s.op<arith::MulFOp>(a, reciprocal(b, loc, c));
  });
}

static Value lowerMath(OpBuilder &b, Operation *op) {
  Location loc = op->getLoc();
  Value x = op->getOperand(0);
  auto exp2 = [&](Value v) {
    return callOnElements(b, loc, "llvm.nvvm.ex2.approx.f32", v);
  };
  ShapedBuilder s(b, loc, x.getType());
  if (isa<math::Exp2Op>(op))
    return exp2(x);
  if (isa<math::ExpOp>(op))
    return buildExp(s, x, exp2);
  if (isa<math::Log2Op>(op))
    return lowerLog2(b, op);
  if (isa<math::LogOp>(op))
    return s.op<arith::MulFOp>(lowerLog2(b, op), s.f(llvm::numbers::ln2f));
  if (isa<math::RsqrtOp>(op))
    return callOnElements(b, loc, "llvm.nvvm.rsqrt.approx.f", x);
  return {};
}

/// x / y where a reciprocal is allowed: x * rcp(y).
static Value lowerDivision(OpBuilder &b, arith::DivFOp op) {
  Value inverse = reciprocal(b, op.getLoc(), op.getRhs());
  return matchPattern(op.getLhs(), m_OneFloat())
             ? inverse
             : arith::MulFOp::create(b, op.getLoc(), op.getLhs(), inverse);
}

static LogicalResult lowerMathOps(LLVM::LLVMFuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    OpBuilder b(op);
    Value result;
    if (auto division = dyn_cast<arith::DivFOp>(op);
        division && hasFlags(op, arith::FastMathFlags::arcp))
      result = lowerDivision(b, division);
    else if (isa_and_nonnull<math::MathDialect>(op->getDialect()))
      result = lowerMath(b, op);
    if (result) {
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
    } else if (failed(checkRemainingMath(op))) {
      return failure();
    }
  }
  return success();
}

/// LLVM narrows arithmetic between a widening and a narrowing to the narrow
/// type if that has as many digits: f16 for bf16, which ends at 65504 where
/// bf16 ends at 3.4e38. Where a kernel has both, the widening is one that LLVM
/// does not know.
static void hideWidening(LLVM::LLVMFuncOp function) {
  SmallVector<arith::ExtFOp> widenings;
  bool narrowsToF16 = false;
  function.walk([&](Operation *op) {
    if (auto widening = dyn_cast<arith::ExtFOp>(op);
        widening && getElementTypeOrSelf(widening.getIn()).isBF16())
      widenings.push_back(widening);
    if (isa<arith::TruncFOp>(op))
      narrowsToF16 |= getElementTypeOrSelf(op->getResult(0)).isF16();
  });
  if (!narrowsToF16)
    return;
  for (arith::ExtFOp widening : widenings) {
    OpBuilder b(widening);
    ShapedBuilder s(b, widening.getLoc(), widening.getType());
    widening.replaceAllUsesWith(extendBF16(s, widening.getIn()));
    widening.erase();
  }
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// 32-bit registers that the rows take which a thread has in flight at once:
/// those that one block loads, and those that a loop carries.
static int64_t countRowRegisters(KernelOp kernel) {
  auto registers = [](Type type) -> int64_t {
    auto vector = dyn_cast<VectorType>(type);
    return vector && vector.getNumElements() > 1
               ? llvm::divideCeil(vector.getNumElements() *
                                      vector.getElementTypeBitWidth(),
                                  32)
               : 0;
  };
  int64_t most = 0;
  kernel.getBody().walk([&](Block *block) {
    int64_t count = 0;
    for (Type type : block->getArgumentTypes())
      count += registers(type);
    for (Operation &op : *block)
      if (isa<vector::LoadOp, vector::MaskedLoadOp>(op))
        count += registers(op.getResult(0).getType());
    most = std::max(most, count);
  });
  return most;
}

static bool loadsInLoop(KernelOp kernel) {
  return kernel
      .walk([](Operation *op) {
        return isa<vector::LoadOp, vector::MaskedLoadOp>(op) &&
                       op->getParentOfType<scf::ForOp>()
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether a launch says how far rows lie apart.
static bool hasStridedRows(KernelOp kernel) {
  return kernel
      .walk([](Operation *op) {
        if (!isa<vector::LoadOp, vector::MaskedLoadOp>(op) ||
            cast<VectorType>(op->getResult(0).getType()).getNumElements() == 1)
          return WalkResult::advance();
        SmallVector<int64_t> strides =
            cast<MemRefType>(op->getOperand(0).getType())
                .getStridesAndOffset()
                .first;
        return llvm::any_of(strides, ShapedType::isDynamic)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// How many blocks a multiprocessor is to hold at once; 0: as many as there
/// happen to fit. A kernel that holds one pack of each row is all latency: as
/// many warps as there are registers for hide it, and assemblers differ in how
/// few registers they find by themselves.
static int64_t getResidentBlocks(KernelOp kernel) {
  MachineModel machine = getMachine(kernel);
  LayoutAttr layout = kernel.getLayoutAttr();
  bool isRagged = isa<RaggedGeometryAttr>(kernel.getGeometryAttr());
  if (isRagged || layout.getPacks() > 2 || layout.getPack() == 1)
    return 0;
  int64_t loaded = countRowRegisters(kernel);
  bool isTight = loaded <= machine.tightRowRegisters && hasStridedRows(kernel);
  int64_t others = layout.getPacks() == 1 && !isTight ? machine.otherRegisters
                                                      : machine.tightRegisters;
  // A loop's addresses are kept beside those of its first turn, which is asked
  // for early (DelayWait.cpp).
  if (machine.dependentLaunch && loadsInLoop(kernel))
    others += machine.loopRegisters;
  // A row in f32, of which a kernel that reduces it holds all packs.
  bool reduces =
      kernel.walk([](NVVM::ShflOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
  int64_t row = layout.getPack() * (reduces ? layout.getPacks() : 1);
  int64_t perThread = llvm::alignTo(others + row + loaded, 8);
  int64_t threads = std::min(machine.threadsPerMultiprocessor,
                             machine.registersPerMultiprocessor / perThread);
  return threads / layout.getThreads();
}

namespace {
class MlafixToNVVMPass
    : public mlafix::impl::MlafixToNVVMPassBase<MlafixToNVVMPass> {
public:
  void runOnOperation() override {
    for (KernelOp kernel :
         llvm::make_early_inc_range(getOperation().getOps<KernelOp>()))
      if (failed(convert(kernel)))
        return signalPassFailure();
  }

private:
  LogicalResult convert(KernelOp kernel) {
    constexpr unsigned kGlobal = 1;
    StringRef target = getTarget(kernel);
    if (!kernel.getGeometry() || !isGPU(target))
      return kernel.emitError()
             << "expected a kernel distributed for a GPU, got one that is not";
    SmallVector<ParamAttr> params = collectParams(kernel, /*last=*/0);
    SmallVector<Type> types = llvm::map_to_vector(params, [&](ParamAttr param) {
      return getParamType(kernel, param, kGlobal);
    });
    OpBuilder b(kernel);
    Location loc = kernel.getLoc();
    auto type = LLVM::LLVMFunctionType::get(
        LLVM::LLVMVoidType::get(b.getContext()), types);
    VariantAttr variant = describeVariant(kernel, params);
    auto function = LLVM::LLVMFuncOp::create(b, loc, kernel.getSymName(), type);
    function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                      b.getUnitAttr());
    LayoutAttr layout = kernel.getLayoutAttr();
    int64_t threads = layout.getThreads();
    auto grid = dyn_cast<GridGeometryAttr>(kernel.getGeometryAttr());
    bool isAdaptable =
        layout.isGrouped() || (grid && grid.getLeastThreads() < threads);
    function->setAttr(
        isAdaptable ? NVVM::NVVMDialect::getMaxntidAttrName()
                    : NVVM::NVVMDialect::getReqntidAttrName(),
        b.getDenseI32ArrayAttr({static_cast<int32_t>(threads), 1, 1}));
    if (int64_t blocks = getResidentBlocks(kernel))
      function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                        b.getI32IntegerAttr(blocks));
    function->setAttr(kVariantAttr, variant);
    Block *entry = function.addEntryBlock(b);
    if (failed(lowerBody(kernel, function, params, entry->getArguments(),
                         kGlobal)))
      return failure();
    kernel.erase();
    delayWaits(function);
    splitConversions(function);
    hideWidening(function);
    narrowFp8(function, getMachine(function).fp8Conversion);
    if (failed(replaceFloatsByBits(
            function, [](FloatType type) { return type.getWidth() == 8; })))
      return failure();
    return lowerMathOps(function);
  }
};
} // namespace
