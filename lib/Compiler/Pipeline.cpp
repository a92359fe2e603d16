//===- Pipeline.cpp - the list of all passes ------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/Pipeline.h"

#include "lib/Analysis/Passes.h"
#include "lib/Conversion/Passes.h"
#include "lib/Plan/Passes.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Target.h"

#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlafix;

/// Creates a canonicalizer without block simplification, since every region has
/// a single block.
static std::unique_ptr<Pass> createCanonicalizer() {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return createCanonicalizerPass(config);
}

/// Returns the options of a pass that depends on the target. The target and the
/// overrides of the target's model are set; other options have their defaults.
template <typename PassOptions>
static PassOptions forTarget(const PipelineOptions &options) {
  PassOptions result;
  result.target = options.target;
  result.machine.assign(options.machine.begin(), options.machine.end());
  return result;
}

/// Adds the passes that turn canonicalized kernels into programs of row tiles
/// and scalars. These passes lower merges and states. They also make a merge in
/// place skip the rows that it would leave unchanged.
static void addStatePasses(OpPassManager &pm, const PipelineOptions &options) {
  ProvePassOptions prove;
  prove.refuses = true;
  prove.records = !options.target.empty();
  pm.addNestedPass<KernelOp>(createProvePass(prove));
  pm.addNestedPass<KernelOp>(createWarnNaNPass());
  pm.addNestedPass<KernelOp>(createGuardBoundsPass());
  pm.addNestedPass<KernelOp>(createLoadOneHotPass());
  pm.addNestedPass<KernelOp>(
      createRepairMergesPass(forTarget<RepairMergesPassOptions>(options)));
  if (isGPU(options.target))
    pm.addNestedPass<KernelOp>(
        createChunkMergesPass(forTarget<ChunkMergesPassOptions>(options)));
  pm.addNestedPass<KernelOp>(
      createUnrollLoopsPass(forTarget<UnrollLoopsPassOptions>(options)));
  pm.addPass(createCanonicalizer());
  pm.addNestedPass<KernelOp>(createSkipCopiesPass());
  if (isGPU(options.target))
    pm.addNestedPass<KernelOp>(
        createDelayReadsPass(forTarget<DelayReadsPassOptions>(options)));
  pm.addNestedPass<KernelOp>(
      createLowerStatesPass(forTarget<LowerStatesPassOptions>(options)));
  pm.addPass(createCanonicalizer());
  pm.addPass(createCSEPass());
  pm.addNestedPass<KernelOp>(createGroupRowsPass());
  if (isGPU(options.target))
    pm.addNestedPass<KernelOp>(createHoistLoadsPass());
}

/// Adds the passes that turn the program of one row into that of one thread.
/// Each pass skips kernels that it does not apply to.
static void addDistributionPasses(OpPassManager &pm) {
  // Lower the grid, for GPUs and CPUs.
  pm.addPass(createLowerGridPass());
  pm.addPass(createPlaceCollectivesPass());
  pm.addPass(createSeparateLanesPass());
  pm.addPass(createPrefetchRowsPass());
  // Lower rows.
  pm.addPass(createJoinMembersPass());
  pm.addPass(createSpillRowsPass());
  pm.addPass(createLoopOverPacksPass());
  pm.addPass(createRowsToPacksPass());
  pm.addPass(createUnswitchLoopsPass());
  pm.addPass(createLowerMergeLoopsPass());
  pm.addPass(createInlineRowsPass());
}

/// Adds the passes that turn distributed kernels into NVVM functions.
static void addNVVMPasses(OpPassManager &pm) {
  pm.addNestedPass<KernelOp>(createSplitConversionsPass());
  pm.addNestedPass<KernelOp>(createSkipZeroWeightAddsPass());
  pm.addNestedPass<KernelOp>(createNarrowRowsPass());
  pm.addNestedPass<KernelOp>(createLowerDivisionsPass());
  pm.addNestedPass<KernelOp>(createConvertFp8Pass());
  pm.addPass(createKernelsToNVVMPass());
  pm.addNestedPass<LLVM::LLVMFuncOp>(createOverlapGridsPass());
  FloatsToBitsPassOptions bits;
  bits.width = 8;
  pm.addNestedPass<LLVM::LLVMFuncOp>(createFloatsToBitsPass(bits));
  pm.addNestedPass<LLVM::LLVMFuncOp>(createMathToNVVMPass());
}

/// Adds the passes that turn distributed kernels into host functions.
static void addCPUPasses(OpPassManager &pm) {
  pm.addNestedPass<KernelOp>(createSplitConversionsPass());
  pm.addNestedPass<KernelOp>(createConvertFp8Pass());
  pm.addNestedPass<KernelOp>(createPairRowsPass());
  pm.addPass(createKernelsToCPUPass());
  pm.addNestedPass<LLVM::LLVMFuncOp>(createExpandMathPass());
  pm.addNestedPass<LLVM::LLVMFuncOp>(createFloatsToBitsPass());
}

void mlafix::buildMlafixPipeline(OpPassManager &pm,
                                 const PipelineOptions &options) {
  assert(options.first <= Stage::Canonical && "only binding can be left out");
  auto isLast = [&](Stage stage) { return options.last <= stage; };

  // Language: bind names and fold by algebraic rules.
  SpecializePassOptions specialize;
  for (const auto &[name, value] : options.bindings)
    specialize.bindings.push_back(name + "=" + value);
  bool binds = !options.bindings.empty() || !options.target.empty();
  if (options.first == Stage::Specialized && binds)
    pm.addPass(createSpecializePass(specialize));
  if (isLast(Stage::Specialized))
    return;
  // This pass must precede the first fold, because upstream folds some operands
  // to poison.
  pm.addNestedPass<KernelOp>(createDefineEdgeCasesPass());
  pm.addNestedPass<KernelOp>(createFillOutputsPass());
  pm.addPass(createCanonicalizer());
  if (isLast(Stage::Canonical))
    return;
  addStatePasses(pm, options);
  if (isLast(Stage::Lowered))
    return;

  // Target: plan code versions and lower each to the program of one thread.
  auto plan = forTarget<PlanKernelPassOptions>(options);
  plan.variant = options.variant;
  plan.fields.assign(options.plan.begin(), options.plan.end());
  pm.addPass(createPlanKernelPass(plan));
  if (isLast(Stage::Layout))
    return;
  addDistributionPasses(pm.nest<KernelOp>());
  pm.addNestedPass<KernelOp>(createCanonicalizer());
  pm.addNestedPass<KernelOp>(createCSEPass());
  pm.addNestedPass<KernelOp>(createHoistLoadsPass());
  if (isLast(Stage::Distributed))
    return;

  // Lower to the LLVM dialect.
  if (isGPU(options.target))
    addNVVMPasses(pm);
  else
    addCPUPasses(pm);
  OpPassManager &function = pm.nest<LLVM::LLVMFuncOp>();
  function.addPass(createRegionsToBranchesPass());
  function.addPass(createSlicesToShufflesPass());
  ConvertToLLVMPassOptions toLLVM;
  toLLVM.allowPatternRollback = false;
  function.addPass(createConvertToLLVMPass(toLLVM));
  function.addPass(createReconcileUnrealizedCastsPass());
}

namespace {
struct CommandLineOptions : PassPipelineOptions<CommandLineOptions> {
  ListOption<std::string> bindings{
      *this, "bindings",
      llvm::cl::desc("NAME=VALUE, for each compile-time name")};
  Option<std::string> target{
      *this, "target",
      llvm::cl::desc("a name that mlafix-opt --list-targets prints")};
  ListOption<std::string> machine{
      *this, "machine",
      llvm::cl::desc("NAME=VALUE: numbers to replace of what "
                     "lib/Machine/MachineModel.def says of the target")};
};
} // namespace

void mlafix::registerMlafixPasses() {
  registerMlafixAnalysisPasses();
  registerMlafixPlanPasses();
  registerMlafixTransformsPasses();
  registerMlafixConversionPasses();
  registerCanonicalizerPass();
  registerCSEPass();
  PassPipelineRegistration<>("mlafix-distribute",
                             "One row's program becomes a thread's program",
                             addDistributionPasses);
  PassPipelineRegistration<>("mlafix-to-nvvm",
                             "Distributed kernels become NVVM functions",
                             addNVVMPasses);
  PassPipelineRegistration<>("mlafix-to-cpu",
                             "Distributed kernels become host functions",
                             addCPUPasses);
  PassPipelineRegistration<CommandLineOptions>(
      "mlafix-pipeline", "Compile kernels down to the LLVM dialect",
      [](OpPassManager &pm, const CommandLineOptions &options) {
        PipelineOptions pipeline;
        pipeline.target = options.target;
        for (const std::string &number : options.machine)
          pipeline.machine.push_back(number);
        for (const std::string &binding : options.bindings) {
          auto [name, value] = StringRef(binding).split('=');
          pipeline.bindings.push_back({name.str(), value.str()});
        }
        buildMlafixPipeline(pm, pipeline);
      });
}
