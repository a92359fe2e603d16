//===- MlafixToNVVM.cpp - distributed kernels become NVVM functions -------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LowerBody.h"

#include "dialect/Guards.h"
#include "lib/Conversion/LoweredAccess.h"
#include "lib/Conversion/MlafixToNVVM/PeerFlags.h"
#include "lib/Conversion/Params.h"
#include "lib/Conversion/Passes.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "mlafix-kernels-to-nvvm"

namespace mlafix {
#define GEN_PASS_DEF_KERNELSTONVVMPASS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// The number of 32-bit registers for rows that a thread has in flight: the
/// loads of one block, and the values that a loop carries. fp8 counts as f16,
/// since assemblers convert it on arrival.
static int64_t countRowRegisters(KernelOp kernel) {
  constexpr int64_t kNarrowestFloat = 16;
  auto registers = [](Type type) -> int64_t {
    auto vector = dyn_cast<VectorType>(type);
    if (!vector || vector.getNumElements() == 1)
      return 0;
    int64_t bits = vector.getElementTypeBitWidth();
    if (isa<FloatType>(vector.getElementType()) && bits < kNarrowestFloat)
      bits = kNarrowestFloat;
    return llvm::divideCeil(vector.getNumElements() * bits, 32);
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

/// True if `value` depends on a load.
static bool comesFromMemory(Value value) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  return failed(getBackwardSlice(value, &slice, options)) ||
         llvm::any_of(slice, [](Operation *op) {
           return op
               ->walk([](Operation *nested) {
                 return getAccess(nested) ? WalkResult::interrupt()
                                          : WalkResult::advance();
               })
               .wasInterrupted();
         });
}

/// True if a loop loads rows and its lower bound does not depend on a load.
static bool loadsInLoop(KernelOp kernel) {
  return kernel
      .walk([](Operation *op) {
        if (!isa<vector::LoadOp, vector::MaskedLoadOp>(op))
          return WalkResult::advance();
        auto loop = op->getParentOfType<scf::ForOp>();
        return loop && !comesFromMemory(loop.getLowerBound())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Marks loads of f32 rows that caches need not keep: short rows that a loop
/// merges whose bounds come from memory.
static void streamListedRows(KernelOp kernel) {
  MachineModel machine = getMachine(kernel);
  LayoutAttr layout = kernel.getLayoutAttr();
  int64_t elements = layout.getLanes() * layout.getPacks() * layout.getPack();
  if (elements * int64_t(sizeof(float)) > machine.streamedRowBytes)
    return;
  auto isRow = [](Operation *op) {
    if (!isa<vector::LoadOp, vector::MaskedLoadOp>(op))
      return false;
    auto type = cast<VectorType>(op->getResult(0).getType());
    return type.getElementType().isF32() && type.getNumElements() > 1;
  };
  llvm::SmallPtrSet<Value, 4> listed;
  kernel.walk([&](Operation *op) {
    if (!isRow(op) || listed.contains(op->getOperand(0)))
      return;
    auto loop = op->getParentOfType<scf::ForOp>();
    if (loop && comesFromMemory(loop.getLowerBound()))
      listed.insert(op->getOperand(0));
  });
  // Includes the remainder of an unrolled loop, which follows it.
  kernel.walk([&](Operation *op) {
    if (!isRow(op) || !listed.contains(op->getOperand(0)))
      return;
    if (auto load = dyn_cast<vector::LoadOp>(op))
      load.setNontemporal(true);
    else
      op->setAttr(kStreamedAttr, UnitAttr::get(op->getContext()));
  });
}

/// True if the distance of rows is known only at launch.
static bool hasStridedRows(KernelOp kernel) {
  return kernel
      .walk([&](Operation *op) {
        if (!isa<vector::LoadOp, vector::MaskedLoadOp>(op) ||
            cast<VectorType>(op->getResult(0).getType()).getNumElements() == 1)
          return WalkResult::advance();
        return hasUnknownStride(kernel, op->getOperand(0))
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The number of blocks that should be resident per multiprocessor; 0: no
/// requirement. A kernel with one pack per row is limited by latency, which is
/// hidden by as many warps as registers allow; assemblers differ in how few
/// registers they use unless told. If lanes that reduce rows need more than
/// residentRegisters, the bound is relaxed to crowdedRegisters. Rows of other
/// ranks arrive over a link, which fewer warps saturate.
static int64_t getResidentBlocks(KernelOp kernel) {
  MachineModel machine = getMachine(kernel);
  LayoutAttr layout = kernel.getLayoutAttr();
  bool isRagged = isa<RaggedGeometryAttr>(kernel.getGeometryAttr());
  if (isRagged || layout.getPack() == 1 ||
      !kernel.getBody().getOps<WaitPeersOp>().empty())
    return 0;
  // Two blocks of half the maximal threads share a multiprocessor's registers,
  // as do clustered blocks with few rows.
  int64_t half = machine.threadsPerBlock / 2;
  if (layout.isClustered()) {
    if (layout.getThreads() > half)
      return 0;
    return countRowRegisters(kernel) <= machine.clusterRegisters
               ? machine.threadsPerBlock / layout.getThreads()
               : 2;
  }
  // chooseLayout() uses more than two packs only for lanes that share a
  // multiprocessor between two rows.
  if (layout.getPacks() > 2)
    return layout.getLanes() == half ? 2 : 0;
  int64_t loaded = countRowRegisters(kernel);
  bool isTight = loaded <= machine.tightRowRegisters && hasStridedRows(kernel);
  int64_t others = layout.getPacks() == 1 && !isTight ? machine.otherRegisters
                                                      : machine.tightRegisters;
  // A loop's addresses are live together with those of its first iteration,
  // which is prefetched (ScheduleGridWait.cpp).
  if (machine.dependentLaunch && loadsInLoop(kernel))
    others += machine.loopRegisters;
  // A row in f32; kernels that reduce rows hold all packs. In an exchange, the
  // row sent is reduced before the received one is loaded.
  bool isSent = !kernel.getBody().getOps<BeginExchangeOp>().empty();
  bool reduces = !isSent && kernel
                                .walk([](Operation *op) {
                                  return isShuffle(op) ? WalkResult::interrupt()
                                                       : WalkResult::advance();
                                })
                                .wasInterrupted();
  int64_t row = layout.getPack() * (reduces ? layout.getPacks() : 1);
  int64_t perThread = llvm::alignTo(others + row + loaded, 8);
  if (reduces && perThread > machine.residentRegisters)
    perThread = std::max(perThread, machine.crowdedRegisters);
  int64_t threads = std::min(machine.threadsPerMultiprocessor,
                             machine.registersPerMultiprocessor / perThread);
  return threads / layout.getThreads();
}

/// Ensures that threads only store to the memory of cluster blocks that have
/// started: each thread arrives at a cluster barrier at its start, and waits
/// before the first such store or barrier.
static void beginCluster(KernelOp kernel) {
  Block &body = kernel.getBody().front();
  for (Operation &op : body) {
    bool meets = op.walk([](Operation *nested) {
                     return isa<PushOp>(nested) || isClusterBarrier(nested)
                                ? WalkResult::interrupt()
                                : WalkResult::advance();
                   }).wasInterrupted();
    if (!meets)
      continue;
    OpBuilder b(&op);
    buildClusterWait(b, op.getLoc());
    b.setInsertionPointToStart(&body);
    buildClusterArrive(b, kernel.getLoc());
    return;
  }
}

/// Passes tables (per-rank values) by value in the parameters, which may be
/// indexed.
static void passTablesByValue(LLVM::LLVMFuncOp function,
                              ArrayRef<ParamAttr> params,
                              unsigned addressSpace) {
  OpBuilder b(function.getContext());
  for (auto [index, param] : llvm::enumerate(params))
    if (Type table = getTableType(param, addressSpace)) {
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
    constexpr unsigned kGlobal = 1;
    StringRef target = getTarget(kernel);
    if (!kernel.getGeometry() ||
        isa<CpuGeometryAttr>(kernel.getGeometryAttr()) || !isGPU(target))
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
    if (Attribute isPlain = kernel->getAttr(kPlainRowsAttr))
      function->setAttr(kPlainRowsAttr, isPlain);
    Block *entry = function.addEntryBlock(b);
    passTablesByValue(function, params, kGlobal);
    streamListedRows(kernel);
    if (failed(lowerBody(kernel, function, params, entry->getArguments(),
                         kGlobal)))
      return failure();
    kernel.erase();
    lowerPeerFlags(function, params, kGlobal);
    return success();
  }
};
} // namespace
