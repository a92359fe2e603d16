//===- MlafixToNVVM.cpp - lowers distributed kernels to NVVM functions ----===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LowerBody.h"

#include "dialect/Guards.h"
#include "lib/Conversion/MlafixToNVVM/PeerFlags.h"
#include "lib/Conversion/Params.h"
#include "lib/Conversion/Passes.h"
#include "lib/Plan/ResidentBlocks.h"
#include "lib/Transforms/LoweredAccess.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-kernels-to-nvvm"

namespace mlafix {
#define GEN_PASS_DEF_KERNELSTONVVMPASS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Finds the loops whose lower bound was loaded from memory, and returns the
/// tensors from which these loops load f32 rows. The caches need not keep such
/// rows. If the plan asks for no streaming loads of them, returns no tensor.
static llvm::DenseSet<Value> findListedRows(KernelOp kernel) {
  llvm::DenseSet<Value> listed;
  if (!kernel.getPlanAttr().has(PlanField::StreamsListedRows))
    return listed;
  kernel.walk([&](Operation *op) {
    if (!isa<vector::LoadOp, vector::MaskedLoadOp>(op) ||
        !isPackOfF32(op->getResult(0).getType()))
      return;
    auto loop = op->getParentOfType<scf::ForOp>();
    if (loop && !listed.contains(op->getOperand(0)) &&
        comesFromMemory(loop.getLowerBound()))
      listed.insert(op->getOperand(0));
  });
  return listed;
}

/// Prevents stores to the memory of a cluster block that has not started. Each
/// thread arrives at a cluster barrier when it starts, and waits there before
/// its first store to another block or its first cluster barrier.
static void beginCluster(KernelOp kernel) {
  Block &body = kernel.getBody().front();
  for (Operation &op : body) {
    bool meets = anyOp(&op, [](Operation *nested) {
      return isa<PushOp>(nested) || isClusterBarrier(nested);
    });
    if (!meets)
      continue;
    OpBuilder b(&op);
    buildClusterWait(b, op.getLoc());
    b.setInsertionPointToStart(&body);
    buildClusterArrive(b, kernel.getLoc());
    return;
  }
}

/// Marks parameters that are tables (one value per rank) as passed by value
/// (`byval`), so that code can index a table in the memory of the kernel's
/// parameters.
static void passTablesByValue(LLVM::LLVMFuncOp function,
                              ArrayRef<ParamAttr> params) {
  OpBuilder b(function.getContext());
  for (auto [index, param] : llvm::enumerate(params))
    if (Type table = getTableType(param)) {
      function.setArgAttr(index, LLVM::LLVMDialect::getByValAttrName(),
                          TypeAttr::get(table));
      function.setArgAttr(index, LLVM::LLVMDialect::getAlignAttrName(),
                          b.getI64IntegerAttr(8));
    }
}

namespace {
class KernelsToNVVMPass
    : public mlafix::impl::KernelsToNVVMPassBase<KernelsToNVVMPass> {
public:
  void runOnOperation() override {
    for (KernelOp kernel :
         llvm::make_early_inc_range(getOperation().getOps<KernelOp>()))
      if (failed(convert(kernel)))
        return signalPassFailure();
  }

private:
  LogicalResult convert(KernelOp kernel) {
    StringRef target = getTarget(kernel);
    if (!kernel.getGeometry() ||
        isa<CpuGeometryAttr>(kernel.getGeometryAttr()) || !isGPU(target))
      return kernel.emitError()
             << "expected a kernel distributed for a GPU, got one that is not";
    SmallVector<ParamAttr> params = collectParams(kernel, /*last=*/0);
    SmallVector<Type> types = llvm::map_to_vector(params, [&](ParamAttr param) {
      return getParamType(kernel, param, kGlobalMemory);
    });
    OpBuilder b(kernel);
    Location loc = kernel.getLoc();
    auto type = LLVM::LLVMFunctionType::get(
        LLVM::LLVMVoidType::get(b.getContext()), types);
    VariantAttr variant = describeCodeVersion(kernel, params);
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
    if (layout.isClustered()) {
      function->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                        b.getDenseI32ArrayAttr(
                            {static_cast<int32_t>(layout.getBlocks()), 1, 1}));
      beginCluster(kernel);
    }
    int64_t blocks = getResidentBlocks(kernel);
    LDBG() << kernel.getSymName() << ": " << params.size()
           << " parameters, at least " << blocks
           << " blocks a multiprocessor (0: as many as fit)";
    if (blocks)
      function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                        b.getI32IntegerAttr(blocks));
    function->setAttr(kCodeVersionAttr, variant);
    function->setAttr(kPlanAttr, kernel.getPlanAttr());
    Block *entry = function.addEntryBlock(b);
    passTablesByValue(function, params);
    if (failed(lowerBody(kernel, function, params, entry->getArguments(),
                         kGlobalMemory, findListedRows(kernel))))
      return failure();
    kernel.erase();
    lowerPeerFlags(function, params);
    return success();
  }
};
} // namespace
