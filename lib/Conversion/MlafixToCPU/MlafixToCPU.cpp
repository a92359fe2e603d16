//===- MlafixToCPU.cpp - lowers distributed kernels to host functions -----===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LowerBody.h"
#include "lib/Conversion/Params.h"
#include "lib/Conversion/Passes.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-kernels-to-cpu"

namespace mlafix {
#define GEN_PASS_DEF_KERNELSTOCPUPASS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Loads a parameter from slot `first`, an 8-byte slot. If the parameter is a
/// table, returns the address of the slot instead.
static Value loadParam(OpBuilder &b, Location loc, Value slots, unsigned first,
                       ParamAttr param, Type type) {
  Value slot =
      LLVM::GEPOp::create(b, loc, slots.getType(), b.getI64Type(), slots,
                          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(first)});
  return param.getSpec().hasRanks()
             ? slot
             : Value(LLVM::LoadOp::create(b, loc, type, slot, /*alignment=*/8));
}

/// Adds a fence if there are streaming stores, which are not ordered with other
/// stores. The fence completes the streaming stores before the function
/// returns, so before its caller reports the rows as done.
static void finishStreamedStores(LLVM::LLVMFuncOp function) {
  bool isStreamed = anyOp<LLVM::StoreOp>(
      function, [](LLVM::StoreOp store) { return store.getNontemporal(); });
  if (!isStreamed)
    return;
  function.walk([](LLVM::ReturnOp end) {
    OpBuilder b(end);
    LLVM::CallIntrinsicOp::create(
        b, end.getLoc(), b.getStringAttr("llvm.x86.sse.sfence"), ValueRange());
  });
}

namespace {
class KernelsToCPUPass
    : public mlafix::impl::KernelsToCPUPassBase<KernelsToCPUPass> {
public:
  void runOnOperation() override {
    for (KernelOp kernel :
         llvm::make_early_inc_range(getOperation().getOps<KernelOp>()))
      if (failed(convert(kernel)))
        return signalPassFailure();
  }

private:
  LogicalResult convert(KernelOp kernel) {
    constexpr unsigned kRange = 2; // the two arguments for begin and end
    StringRef target = getTarget(kernel);
    if (!isa_and_present<CpuGeometryAttr>(kernel.getGeometryAttr()) ||
        isGPU(target) || kernel.getNumArguments() < kRange ||
        !llvm::all_of(kernel.getArgumentTypes().take_back(kRange),
                      [](Type type) { return type.isIndex(); }))
      return kernel.emitError()
             << "expected a kernel distributed for a CPU, got one that is not";
    SmallVector<ParamAttr> params = collectParams(kernel, kRange);
    LDBG() << kernel.getSymName() << ": " << params.size() << " parameters";
    VariantAttr variant = describeCodeVersion(kernel, params);
    OpBuilder b(kernel);
    Location loc = kernel.getLoc();
    Type pointer = LLVM::LLVMPointerType::get(b.getContext()),
         i64 = b.getI64Type();
    auto type = LLVM::LLVMFunctionType::get(
        LLVM::LLVMVoidType::get(b.getContext()), {pointer, i64, i64});
    auto function = LLVM::LLVMFuncOp::create(b, loc, kernel.getSymName(), type);
    function->setAttr(kCodeVersionAttr, variant);
    Block *entry = function.addEntryBlock(b);
    b.setInsertionPointToStart(entry);
    SmallVector<Value> values;
    unsigned slot = 0;
    for (ParamAttr param : params) {
      values.push_back(
          loadParam(b, loc, entry->getArgument(0), slot, param,
                    getParamType(kernel, param, /*addressSpace=*/0)));
      slot += param.getSpec().slots(param.getRanks());
    }
    for (unsigned i = 0; i < kRange; ++i) {
      Value bound = arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                               entry->getArgument(1 + i));
      kernel.getArgument(kernel.getNumArguments() - kRange + i)
          .replaceAllUsesWith(bound);
    }
    if (failed(lowerBody(kernel, function, params, values, /*addressSpace=*/0)))
      return failure();
    kernel.erase();
    finishStreamedStores(function);
    return success();
  }
};
} // namespace
