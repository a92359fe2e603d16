//===- ResidentBlocks.cpp - blocks that a multiprocessor holds ------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Plan/ResidentBlocks.h"
#include "dialect/Guards.h"
#include "dialect/MlafixThread.h"
#include "lib/Transforms/Language/Iterations.h"
#include "lib/Transforms/LoweredAccess.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

/// Returns half of the threads that a block may have. Two blocks of this size
/// share a multiprocessor.
static int64_t getHalf(const MachineModel &machine) {
  return machine.threadsPerBlock / 2;
}

/// True if a loop of unknown length reduces rows. Such a loop has the rows of
/// many iterations in flight, so it needs fewer warps to hide latency.
static bool reducesInLoop(KernelOp version) {
  return anyOp<scf::ForOp>(version, reducesRowsInFlight);
}

int64_t mlafix::planResident(KernelOp version, LayoutAttr layout,
                             const MachineModel &machine) {
  // Rows in parts give enough blocks anyway. Without a required number of
  // blocks, the assembler is free to use more registers, which gains more.
  if (isa<RaggedForallOp>(version.getGrid()) || layout.getPack() == 1 ||
      layout.isInParts() || reducesInLoop(version))
    return kAnyResident;
  if (layout.isClustered())
    return layout.getThreads() > getHalf(machine) ? kAnyResident
                                                  : kFittingResident;
  // If lanes have more than two packs, require that two blocks share a
  // multiprocessor, but only if a row takes half of a block's maximal threads.
  if (layout.getPacks() > 2)
    return layout.getLanes() == getHalf(machine) ? 2 : kAnyResident;
  return kFittingResident;
}

/// Returns the number of 32-bit registers for rows that a thread has in flight
/// at once: the rows that one basic block loads, and those that a loop carries.
/// Elements of fp8 count as 16 bits, because assemblers convert them to f16 on
/// arrival.
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

/// True if a loop loads rows, and its lower bound is not computed from loaded
/// values. The rows of its first iteration can then be prefetched.
static bool loadsInLoop(KernelOp kernel) {
  return anyOp(kernel, [](Operation *op) {
    auto loop = op->getParentOfType<scf::ForOp>();
    return isa<vector::LoadOp, vector::MaskedLoadOp>(op) && loop &&
           !comesFromMemory(loop.getLowerBound());
  });
}

/// True if the distance between rows is known only at launch.
static bool hasStridedRows(KernelOp kernel) {
  return anyOp(kernel, [&](Operation *op) {
    return isa<vector::LoadOp, vector::MaskedLoadOp>(op) &&
           cast<VectorType>(op->getResult(0).getType()).getNumElements() > 1 &&
           hasUnknownStride(kernel, op->getOperand(0));
  });
}

/// True if lanes exchange their parts of a row, in a kernel that sends no rows.
/// (A kernel that sends rows reduces them before it loads the received ones, so
/// it does not need registers for both at once.)
static bool reducesRows(KernelOp kernel) {
  bool isSent = !kernel.getBody().getOps<BeginExchangeOp>().empty();
  return !isSent && anyOp(kernel, isShuffle);
}

/// Returns the number of blocks for which a multiprocessor has registers. A
/// kernel that holds one pack of each row is bound by latency, so it needs as
/// many warps as possible. Without a required number of blocks, some assemblers
/// use more registers than needed, and fewer warps fit. If a thread reduces
/// rows and needs more than residentRegisters, counts at least crowdedRegisters
/// for it, because with more warps each thread would have too few registers.
static int64_t countFittingBlocks(KernelOp kernel,
                                  const MachineModel &machine) {
  LayoutAttr layout = kernel.getLayoutAttr();
  int64_t loaded = countRowRegisters(kernel);
  bool isTight = loaded <= machine.tightRowRegisters && hasStridedRows(kernel);
  int64_t others = layout.getPacks() == 1 && !isTight ? machine.otherRegisters
                                                      : machine.tightRegisters;
  // The addresses of a loop occupy registers beside those of its first
  // iteration, which is prefetched (OverlapGrids.cpp).
  if (kernel.getPlanAttr().has(PlanField::DependentLaunch) &&
      loadsInLoop(kernel))
    others += machine.loopRegisters;
  // Registers for an f32 row. A kernel that reduces the row holds all of its
  // packs.
  bool reduces = reducesRows(kernel);
  int64_t row = layout.getPack() * (reduces ? layout.getPacks() : 1);
  int64_t perThread =
      llvm::alignTo(others + row + loaded, machine.registerUnit);
  if (reduces && perThread > machine.residentRegisters)
    perThread = std::max(perThread, machine.crowdedRegisters);
  int64_t threads = std::min(machine.threadsPerMultiprocessor,
                             machine.registersPerMultiprocessor / perThread);
  return threads / layout.getThreads();
}

int64_t mlafix::getResidentBlocks(KernelOp kernel) {
  LayoutAttr layout = kernel.getLayoutAttr();
  // Rows read from other ranks come over a link. Few warps saturate the link,
  // so there is no requirement.
  if (!kernel.getBody().getOps<WaitPeersOp>().empty())
    return 0;
  int64_t planned = getPlanned(kernel, PlanField::Resident);
  if (planned != kFittingResident)
    return planned;
  MachineModel machine = getMachine(kernel);
  if (!layout.isClustered())
    return countFittingBlocks(kernel, machine);
  return countRowRegisters(kernel) <= machine.clusterRegisters
             ? machine.threadsPerBlock / layout.getThreads()
             : 2;
}

VariantAttr mlafix::fitBlocks(VariantAttr variant, const MachineModel &machine,
                              int64_t registers) {
  auto ragged = dyn_cast<RaggedGeometryAttr>(variant.getGeometry());
  if (!ragged || !ragged.getFits())
    return variant;
  int64_t threads = ragged.getThreads();
  int64_t taken = threads * llvm::alignTo(std::max<int64_t>(1, registers),
                                          machine.registerUnit);
  int64_t blocks = std::min(machine.registersPerMultiprocessor / taken,
                            machine.threadsPerMultiprocessor / threads);
  auto fitting = RaggedGeometryAttr::get(
      variant.getContext(), ragged.getRows(), ragged.getInner(),
      ragged.getRowsPerBlock(), threads, std::max<int64_t>(1, blocks),
      /*fits=*/true);
  return VariantAttr::get(variant.getContext(), variant.getEntry(),
                          variant.getGuards(), variant.getParams(), fitting,
                          variant.getLayout(), variant.getDependentLaunch());
}
