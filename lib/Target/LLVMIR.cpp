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
  info.signature = module->getAttrOfType<mlir::DictionaryAttr>(signatureName);
  if (!info.signature)
    return module.emitError() << "expected the dictionary attribute '"
                              << signatureName << "' on a lowered module";
  if (!info.signature.getAs<mlir::StringAttr>("name"))
    return module.emitError()
           << "expected a string 'name' in '" << signatureName << "'";
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
    return module.emitError() << "expected at least one function with '"
                              << codeVersionName << "' in a lowered module";
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
  // The layout and triple are the target's, whatever the lowering noted.
  module->removeAttr(mlir::LLVM::LLVMDialect::getDataLayoutAttrName());
  module->removeAttr(mlir::LLVM::LLVMDialect::getTargetTripleAttrName());
  std::unique_ptr<Module> result = mlir::translateModuleToLLVMIR(
      module, context,
      info.signature.getAs<mlir::StringAttr>("name").getValue());
  if (!result)
    return createStringError("the lowered module cannot be written as LLVM IR");
  result->setTargetTriple(machine.getTargetTriple());
  result->setDataLayout(machine.createDataLayout());
  StringSet<> entries;
  for (VariantAttr variant : info.variants)
    entries.insert(variant.getEntry().getValue());
  int64_t vectorBytes = cantFail(MachineModel::get(target.name)).registerBytes;
  for (Function &function : *result) {
    if (function.isDeclaration())
      continue;
    if (!entries.contains(function.getName())) {
      function.setLinkage(GlobalValue::InternalLinkage);
      continue;
    }
    function.setDSOLocal(true);
  }
  for (Function &function : *result) {
    if (function.isIntrinsic())
      continue;
    function.setDSOLocal(true);
    if (target.isGPU() || function.isDeclaration())
      continue;
    // No unwind tables: nothing unwinds through a kernel, and .eh_frame would
    // have to be relocated. The widest registers of the baseline are used.
    function.setDoesNotThrow();
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    // LLVM prefers 256 bits, since early processors slowed down for more; these
    // kernels wait for memory.
    if (vectorBytes > 32)
      function.addFnAttr("prefer-vector-width",
                         std::to_string(8 * vectorBytes));
    function.addFnAttr("no-builtins");
  }
  return result;
}

namespace {
/// While it lives, InstCombine moves nothing into the one branch that uses it,
/// or, where `isWanted`, does so as ever. On a GPU the load of a row that is
/// stored under a condition would follow all that is computed from the other
/// loads, in whose time it can be under way; loads that a branch alone shall do
/// have predicates. LLVM has an option of the process for it and none of a
/// pipeline, so modules of the other kind wait.
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
  static int users; ///< that have the option as it is
  bool isHeld = false;
};
} // namespace

std::mutex CodeSinking::mutex;
std::condition_variable CodeSinking::isFree;
int CodeSinking::users = 0;

/// True for functions of so many instructions that passes are left out whose
/// time grows with the square of them: rows are vectors already, and what these
/// passes find in a long program of theirs is little. No kernel of the library
/// is as long.
static bool isLong(const Module &module) {
  constexpr unsigned kMostOptimized = 10000;
  return module.getInstructionCount() > kMostOptimized;
}

namespace {
/// For GPUs, leaves passes of O3 out that change no PTX of a kernel: a sixth of
/// O3's time (docs/Experiments.md, LLVM's passes). For all targets, of a long
/// module, what isLong() says.
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
    if (isLong && pass == "SLPVectorizerPass")
      return false;
    if (isLong && pass == "LICMPass" && hoisted++ > 0)
      return false;
    if (!isGPU)
      return true;
    if (pass != "InstCombinePass")
      return !unwanted.contains(pass);
    // LLVM 22 has eight rounds; what these find, a later one finds too.
    unsigned number = ++combined[*any_cast<const Function *>(&unit)];
    return number != 4 && number != 5 && number != 7;
  }

  /// For loops that copy or fill memory, that are better as two, or as vectors;
  /// and what is done again behind the loops' passes.
  const StringSet<> unwanted{"LoopDistributePass",   "LoopIdiomRecognizePass",
                             "LoopInstSimplifyPass", "LoopLoadEliminationPass",
                             "LoopSimplifyCFGPass",  "LoopVectorizePass",
                             "MemCpyOptPass"};
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
  // For loops over scalars. Rows are vectors already, and in a row's program
  // the vectorizer follows every path through an expression: minutes for some.
  // This bounds the time that compiling takes, whatever the machine.
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
/// Collects the code generator's errors; drops its remarks and warnings.
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

/// The passes of a code generator, and ours among them.
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
    // Behind loop strength reduction, the last that makes divisions.
    if (name == "codegenprepare")
      passes.add(createWideDivisionsPass());
    passes.add(pass);
  }
  void run(Module &module) { passes.run(module); }

private:
  /// In instructions. NVPTX's passes for addresses compare each with all before
  /// it: of 6,000 instructions they take four fifths of the code generator's
  /// time.
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
