//===- LLVMIR.cpp - from the LLVM dialect to optimised LLVM IR ------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/LLVMIR.h"
#include "lib/Machine/MachineModel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include <condition_variable>
#include <mutex>

using namespace llvm;
using namespace mlafix::target;

static constexpr StringLiteral signatureName = "mlafix.signature";
static constexpr StringLiteral codeVersionName = "mlafix.variant";

bool mlafix::target::isLowered(mlir::ModuleOp module) {
  return module->hasAttr(signatureName);
}

FailureOr<KernelInfo> mlafix::target::takeKernelInfo(mlir::ModuleOp module) {
  KernelInfo info;
  mlir::Attribute given = module->getAttr(signatureName);
  info.signature = dyn_cast_if_present<mlir::DictionaryAttr>(given);
  if (!info.signature)
    return module.emitError() << "expected a dictionary '" << signatureName
                              << "' on a lowered module, got " << given;
  mlir::Attribute name = info.signature.get("name");
  if (!isa_and_present<mlir::StringAttr>(name)) {
    mlir::InFlightDiagnostic error = module.emitError()
                                     << "expected a string 'name' in '"
                                     << signatureName << "', got ";
    return name ? error << name : error << "none";
  }
  module->removeAttr(signatureName);
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>()) {
    mlir::Attribute attribute = function->getAttr(codeVersionName);
    if (!attribute)
      continue;
    auto variant = dyn_cast<VariantAttr>(attribute);
    if (!variant || variant.getEntry() != function.getSymName())
      return function.emitError() << "expected '" << codeVersionName
                                  << "' to be a #mlafix.variant of "
                                  << "the function's name, got " << attribute;
    info.variants.push_back(variant);
    function->removeAttr(codeVersionName);
  }
  if (info.variants.empty())
    return module.emitError()
           << "expected at least one function with '" << codeVersionName
           << "' in a lowered module, got none";
  return info;
}

void mlafix::target::registerTranslations(mlir::DialectRegistry &registry) {
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
}

Expected<std::unique_ptr<Module>> mlafix::target::translateToLLVMIR(
    mlir::ModuleOp module, const KernelInfo &info, const TargetSpec &target,
    TargetMachine &machine, LLVMContext &context) {
  // Use the layout and triple of `machine` instead of those in the module.
  module->removeAttr(mlir::LLVM::LLVMDialect::getDataLayoutAttrName());
  module->removeAttr(mlir::LLVM::LLVMDialect::getTargetTripleAttrName());
  std::unique_ptr<Module> result = mlir::translateModuleToLLVMIR(
      module, context,
      info.signature.getAs<mlir::StringAttr>("name").getValue());
  if (!result)
    return createStringError("expected a module that can be translated to LLVM "
                             "IR, got one that cannot");
  result->setTargetTriple(machine.getTargetTriple());
  result->setDataLayout(machine.createDataLayout());
  StringSet<> entries;
  for (VariantAttr variant : info.variants)
    entries.insert(variant.getEntry().getValue());
  int64_t vectorBytes = cantFail(MachineModel::get(target.name)).registerBytes;
  for (Function &function : *result) {
    if (function.isIntrinsic())
      continue;
    if (!function.isDeclaration() && !entries.contains(function.getName()))
      function.setLinkage(GlobalValue::InternalLinkage);
    function.setDSOLocal(true);
    if (target.isGPU() || function.isDeclaration())
      continue;
    // Emit no unwind tables: nothing unwinds through a kernel, and .eh_frame
    // would need relocations.
    function.setDoesNotThrow();
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    // LLVM prefers 256-bit vectors, because early processors with AVX-512
    // lowered their clock for wider ones. Memory, not the clock, limits the
    // speed of these kernels, so use the full width.
    if (vectorBytes > 32)
      function.addFnAttr("prefer-vector-width",
                         std::to_string(8 * vectorBytes));
    function.addFnAttr("no-builtins");
  }
  return result;
}

namespace {
/// Turns InstCombine's code sinking on or off while in scope. On a GPU, sinking
/// would move the load of a conditionally stored row behind the computations on
/// other loads. The loads would then no longer overlap. A load that only one
/// branch needs gains nothing from sinking, since it has a predicate. LLVM has
/// only one such option per process, so a thread that needs the other setting
/// waits.
class CodeSinking {
public:
  explicit CodeSinking(bool isWanted) {
    auto &options = cl::getRegisteredOptions();
    auto found = options.find("instcombine-code-sinking");
    if (found == options.end())
      return;
    auto *option = static_cast<cl::opt<bool> *>(found->second);
    std::unique_lock<std::mutex> lock(mutex);
    isFree.wait(lock, [&] { return users == 0 || *option == isWanted; });
    option->setValue(isWanted);
    ++users;
    isHeld = true;
  }
  ~CodeSinking() {
    if (!isHeld)
      return;
    std::unique_lock<std::mutex> lock(mutex);
    if (--users == 0)
      isFree.notify_all();
  }
  CodeSinking(const CodeSinking &) = delete;
  CodeSinking &operator=(const CodeSinking &) = delete;

private:
  static std::mutex mutex;
  static std::condition_variable isFree;
  static int users; ///< number of modules that compile with the current setting
  bool isHeld = false;
};
} // namespace

std::mutex CodeSinking::mutex;
std::condition_variable CodeSinking::isFree;
int CodeSinking::users = 0;

/// Returns true if the module is too long for passes that unroll loops or take
/// quadratic time. Without these passes the code is hardly slower, because rows
/// are vectors already. No kernel of the library is this long.
static bool isLong(const Module &module) {
  constexpr unsigned kMostOptimized = 10000;
  return module.getInstructionCount() > kMostOptimized;
}

namespace {
/// Selects the O3 passes to run. On GPUs it skips passes that do not change the
/// PTX of any kernel, which saves a sixth of O3's time (docs/Experiments.md,
/// "LLVM's passes"). For long modules (isLong) it skips passes that take
/// quadratic time or unroll loops.
class PassSelection {
public:
  PassSelection(PassInstrumentationCallbacks &callbacks, bool isGPU,
                bool isLong)
      : isGPU(isGPU), isLong(isLong) {
    callbacks.registerShouldRunOptionalPassCallback(
        [this](StringRef pass, Any unit) { return isWanted(pass, unit); });
  }
  PassSelection(const PassSelection &) = delete;
  PassSelection &operator=(const PassSelection &) = delete;

private:
  bool isWanted(StringRef pass, const Any &unit) {
    if (isLong && unwantedOfLong.contains(pass))
      return false;
    if (isLong && pass == "LICMPass" && hoisted++ > 0)
      return false;
    if (!isGPU)
      return true;
    if (pass != "InstCombinePass")
      return !unwanted.contains(pass);
    // LLVM 22 runs InstCombine eight times. Skip rounds 4, 5 and 7, since later
    // rounds find what these would find.
    unsigned number = ++combined[*any_cast<const Function *>(&unit)];
    return number != 4 && number != 5 && number != 7;
  }

  /// Passes that do not change the PTX of any GPU kernel.
  const StringSet<> unwanted{"LoopDistributePass",   "LoopIdiomRecognizePass",
                             "LoopInstSimplifyPass", "LoopLoadEliminationPass",
                             "LoopSimplifyCFGPass",  "LoopVectorizePass",
                             "MemCpyOptPass"};
  const StringSet<> unwantedOfLong{"LoopFullUnrollPass", "LoopUnrollPass",
                                   "SLPVectorizerPass"};
  DenseMap<const Function *, unsigned> combined;
  bool isGPU, isLong;
  unsigned hoisted = 0;
};
} // namespace

void mlafix::target::optimize(Module &module, TargetMachine &machine) {
  bool isGPU = machine.getTargetTriple().isNVPTX();
  CodeSinking sinking(/*isWanted=*/!isGPU);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager sccs;
  ModuleAnalysisManager modules;
  PipelineTuningOptions tuning;
  PassInstrumentationCallbacks callbacks;
  PassSelection selection(callbacks, isGPU, isLong(module));
  // On CPUs, skip loop vectorisation in modules above a limit. Rows are vectors
  // already, and the vectorizer can spend minutes on the paths through a row's
  // expressions.
  // The limit is an instruction count, not a time, so that all machines
  // generate the same code.
  constexpr unsigned kMostVectorized = 500;
  if (!isGPU)
    tuning.LoopVectorization = module.getInstructionCount() <= kMostVectorized;
  PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
  TargetLibraryInfoImpl library(module.getTargetTriple());
  library.disableAllFunctions();
  functions.registerPass([&] { return TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3)
      .run(module, modules);
  if (isGPU) {
    avoidPtxasFaults(module);
    streamLoads(module);
  }
}

namespace {
/// Collects the error messages of the code generator. Drops remarks and
/// warnings.
struct ErrorCollector final : DiagnosticHandler {
  explicit ErrorCollector(std::string &errors) : errors(errors) {}
  bool handleDiagnostics(const DiagnosticInfo &info) override {
    if (info.getSeverity() != DS_Error)
      return true;
    raw_string_ostream stream(errors);
    if (!errors.empty())
      stream << "; ";
    DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    return true;
  }
  std::string &errors;
};

/// The code generator's pass manager. It adds the pass for wide divisions and
/// skips passes that take too long in long modules.
class CodeGenPasses final : public legacy::PassManagerBase {
public:
  explicit CodeGenPasses(const Module &module)
      : isLong(::isLong(module)),
        hasManyAddresses(module.getInstructionCount() > kMostCompared) {}

  void add(Pass *pass) override {
    const PassInfo *info =
        PassRegistry::getPassRegistry()->getPassInfo(pass->getPassID());
    StringRef name = info ? info->getPassArgument() : StringRef();
    bool comparesAddresses =
        name == "slsr" || name == "gvn" || name == "nary-reassociate";
    if ((hasManyAddresses && comparesAddresses) ||
        (isLong && name == "machine-sink")) {
      delete pass;
      return;
    }
    // Expand wide divisions before "codegenprepare". Loop strength reduction,
    // the last pass that creates divisions, is then done.
    if (name == "codegenprepare")
      passes.add(createWideDivisionsPass());
    passes.add(pass);
  }
  void run(Module &module) { passes.run(module); }

private:
  /// The number of instructions above which NVPTX's passes that compare each
  /// address with all earlier ones are skipped (`comparesAddresses`). At 6,000
  /// instructions they take four fifths of the code generation time.
  static constexpr unsigned kMostCompared = 3500;
  bool isLong, hasManyAddresses;
  legacy::PassManager passes;
};
} // namespace

Expected<std::string> mlafix::target::generateCode(Module &module,
                                                   TargetMachine &machine,
                                                   bool assembly) {
  std::string errors;
  LLVMContext &context = module.getContext();
  std::unique_ptr<DiagnosticHandler> previous = context.getDiagnosticHandler();
  context.setDiagnosticHandler(std::make_unique<ErrorCollector>(errors));
  SmallString<0> buffer;
  raw_svector_ostream stream(buffer);
  CodeGenPasses passes(module);
  TargetLibraryInfoImpl library(module.getTargetTriple());
  library.disableAllFunctions();
  passes.add(new TargetLibraryInfoWrapperPass(library));
  bool impossible = machine.addPassesToEmitFile(
      passes, stream, nullptr,
      assembly ? CodeGenFileType::AssemblyFile : CodeGenFileType::ObjectFile);
  if (!impossible)
    passes.run(module);
  context.setDiagnosticHandler(std::move(previous));
  if (impossible)
    return createStringError("LLVM cannot write " +
                             Twine(assembly ? "assembly" : "an object") +
                             " for " + machine.getTargetCPU());
  if (!errors.empty())
    return createStringError("LLVM's code generator for " +
                             machine.getTargetCPU() + " says: " + errors);
  return assembly && machine.getTargetTriple().isNVPTX()
             ? rewriteNegations(buffer)
             : std::string(buffer);
}
