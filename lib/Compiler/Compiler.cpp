//===- Compiler.cpp - compiles a source for targets to a unit -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Mlafix.h"
#include "lib/Analysis/Signature.h"
#include "lib/Compiler/Compilation.h"
#include "lib/Compiler/Diagnostics.h"
#include "lib/Compiler/HostNumbers.h"
#include "lib/Compiler/Parallel.h"
#include "lib/Compiler/Pipeline.h"
#include "lib/Compiler/ProofReport.h"
#include "lib/Compiler/TextCheck.h"
#include "lib/Target/EmbedUnit.h"
#include "lib/Target/Json.h"
#include "lib/Target/LLVMIR.h"
#include "lib/Transforms/Language/OpaqueElements.h"
#include "lib/Transforms/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <cstdlib>
#include <string>

using namespace llvm;
using namespace mlafix;
using mlafix::target::TargetSpec;
using OwningModule = mlir::OwningOpRef<mlir::ModuleOp>;

//===----------------------------------------------------------------------===//
// Remarks as messages
//===----------------------------------------------------------------------===//

namespace {
class Streamer : public mlir::remark::detail::MLIRRemarkStreamerBase {
public:
  explicit Streamer(std::string where) : where(std::move(where)) {}

  void streamOptimizationRemark(
      const mlir::remark::detail::Remark &remark) override {
    mlir::InFlightDiagnostic message = mlir::emitRemark(remark.getLocation());
    message << remark.getFunction() << " on " << where << ": ";
    StringRef bytes;
    for (const auto &text : remark.getArgs())
      if (text.key == kRowBytes)
        bytes = text.val;
      else
        message << text.val;
    message << " [" << remark.getRemarkTypeString().lower() << ": "
            << remark.getRemarkName();
    if (!bytes.empty())
      message << ", " << bytes << " bytes a row";
    message << "]";
  }

private:
  std::string where;
};

/// Turns the remarks of passes (mlir/IR/Remarks.h) into diagnostics while in
/// scope. A diagnostic reads "KERNEL on WHERE: TEXT [KIND: NAME]", where KIND
/// is passed, missed or analysis. If a remark has a cost, its diagnostic ends
/// in "[KIND: NAME, N bytes a row]".
class RemarkMessages {
public:
  /// `where` names the target, and whatever else distinguishes the compilations
  /// of a kernel.
  RemarkMessages(mlir::MLIRContext &context, std::string where)
      : context(context) {
    mlir::remark::RemarkCategories all;
    all.passed = all.missed = all.analysis = all.failed = ".*";
    // This fails if the context already has a remark engine.
    [[maybe_unused]] auto enabled = mlir::remark::enableOptimizationRemarks(
        context, std::make_unique<Streamer>(std::move(where)),
        std::make_unique<mlir::remark::RemarkEmittingPolicyAll>(), all);
    assert(succeeded(enabled) && "expected a context without a remark engine");
  }
  ~RemarkMessages() { context.setRemarkEngine(nullptr); }
  RemarkMessages(const RemarkMessages &) = delete;
  RemarkMessages &operator=(const RemarkMessages &) = delete;

private:
  mlir::MLIRContext &context;
};
} // namespace

//===----------------------------------------------------------------------===//
// Checks of the source
//===----------------------------------------------------------------------===//

/// Dialects all of whose operations may occur in a kernel.
static constexpr StringLiteral dialects[] = {"mlafix", "arith", "math", "scf"};

static LogicalResult checkOperation(mlir::Operation *op) {
  if (isa<mlir::arith::RemFOp>(op))
    return op->emitError("expected an operation that every target has, got "
                         "'arith.remf', which CPUs lack");
  StringRef dialect = op->getName().getDialectNamespace();
  if (is_contained(dialects, dialect) || isa<mlir::memref::DimOp>(op))
    return success();
  return op->emitError() << "expected operations of "
                         << join(ArrayRef(dialects), ", ")
                         << " or memref.dim in a kernel, got '" << op->getName()
                         << "'";
}

/// Emits an error at every operation that a kernel may not contain, and fails
/// if there is one. Such operations belong to other dialects, or they are valid
/// but crash MLIR's folders.
static LogicalResult checkSource(mlir::ModuleOp module) {
  bool failed = false;
  module.walk([&](mlir::Operation *op) {
    if (op != module)
      failed |= llvm::failed(checkOperation(op));
  });
  return failure(failed);
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

/// Returns the declaration of a kernel for hosts: its signature without
/// bindings, and the names to bind, with their defaults. Emit::Signature writes
/// it, and units contain it.
static Expected<json::Object> declare(KernelOp kernel) {
  Expected<json::Value> value = target::toJson(getSignature(kernel));
  if (!value)
    return value.takeError();
  json::Object &signature = *value->getAsObject();
  signature.erase("bindings");
  signature.erase("defaults");
  json::Object names;
  json::Array &args = *signature.getArray("args");
  for (auto [index, entry] : enumerate(args))
    if (auto name =
            kernel.getArgAttrOfType<mlir::StringAttr>(index, kDTypeAttr)) {
      json::Object &arg = *entry.getAsObject();
      arg["dtype_name"] = name.getValue();
      auto memref = cast<mlir::MemRefType>(kernel.getArgumentTypes()[index]);
      if (!memref.getElementType().isInteger(1) &&
          !findUseAsNumber(kernel, name.getValue()))
        arg["dtype_moved"] = true;
    }
  // Leave out dynamic dims and optional arguments: they need no binding, and
  // `args` lists them.
  for (const BindableName &name : getBindableNames(kernel))
    if (name.kind != BindableName::DynamicDim &&
        name.kind != BindableName::Presence)
      names[name.name] = name.defaultValue.empty()
                             ? json::Value(nullptr)
                             : json::Value(name.defaultValue);
  signature["names"] = std::move(names);
  return std::move(signature);
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

static Stage lastStage(Emit emit) {
  switch (emit) {
  case Emit::Specialized:
    return Stage::Specialized;
  case Emit::Canonical:
  case Emit::Report:
  case Emit::Faults:
    return Stage::Canonical;
  case Emit::Header:
  case Emit::TvmFfi:
  case Emit::Lowered:
    return Stage::Lowered;
  case Emit::Layout:
    return Stage::Layout;
  case Emit::Distributed:
    return Stage::Distributed;
  default:
    return Stage::LLVM;
  }
}

/// True if the IR is verified after each pass: in builds with assertions, or if
/// MLAFIX_VERIFY_PASSES is set, as in the tests. Otherwise it is verified once
/// at the end, because verifying takes as long as the passes themselves.
static bool verifiesPasses() {
#ifdef NDEBUG
  return std::getenv("MLAFIX_VERIFY_PASSES");
#else
  return true;
#endif
}

/// Returns "sm_90", or "sm_90 with D=128,T=bf16" if several sets of bindings
/// are compiled.
std::string Compilation::nameTarget(const Bindings &bindings,
                                    StringRef target) const {
  std::string text = target.empty() ? "any target" : target.str();
  if (options.specializations.size() < 2)
    return text;
  ListSeparator separator(",");
  raw_string_ostream stream(text);
  stream << " with ";
  for (const auto &[name, value] : bindings)
    stream << separator << name << "=" << value;
  return text;
}

/// Applies the command-line options for passes, if requested. Does nothing if
/// the program has not registered these options.
void Compilation::applyPassOptions(mlir::PassManager &passes) const {
  if (options.passOptions)
    (void)mlir::applyPassManagerCLOptions(passes);
}

LogicalResult Compilation::lower(mlir::ModuleOp module,
                                 const Bindings &bindings, StringRef target) {
  PipelineOptions pipeline;
  append_range(pipeline.bindings, bindings);
  pipeline.target = target.str();
  pipeline.variant = options.variant;
  pipeline.plan = options.plan;
  return stopwatch.time("passes", [&]() -> LogicalResult {
    // This pass manager verifies after each pass even in release builds,
    // because the source may be invalid for these bindings.
    mlir::PassManager binding(context.get());
    Stage last = lastStage(options.emit);
    pipeline.last = std::min(last, Stage::Specialized);
    buildMlafixPipeline(binding, pipeline);
    applyPassOptions(binding);
    pipeline.first = Stage::Canonical;
    pipeline.last = last;
    // The name contains everything that the passes after binding depend on.
    std::string name =
        (target + "/" + options.variant + "/" + join(options.plan, ",") + "/" +
         Twine(int(last)) + "/" + Twine(options.passOptions))
            .str();
    mlir::PassManager &rest =
        context.passes(name, [&](mlir::PassManager &passes) {
          buildMlafixPipeline(passes, pipeline);
          passes.enableVerifier(verifiesPasses());
          applyPassOptions(passes);
        });
    std::optional<RemarkMessages> remarks;
    if (options.remarks)
      remarks.emplace(*context, nameTarget(bindings, target));
    if (failed(binding.run(module)))
      return failure();
    // Use one thread if there are remarks or printed IR, so that these are in
    // the order of code versions.
    std::optional<SharedContext> shared;
    if (!remarks && !options.passOptions)
      shared.emplace(*context);
    if (failed(rest.run(module)))
      return failure();
    return mlir::verify(module);
  });
}

void Compilation::print(mlir::ModuleOp module) {
  raw_string_ostream stream(result.output);
  mlir::OpPrintingFlags flags;
  if (options.lineInfo)
    flags.enableDebugInfo();
  module.print(stream, flags);
  stream << "\n";
}

LogicalResult Compilation::generate(mlir::ModuleOp module,
                                    const Bindings &bindings,
                                    const TargetSpec &target,
                                    std::vector<target::UnitKernel> &kernels) {
  if (options.emit <= Emit::MLIR) {
    print(module);
    return success();
  }
  std::optional<RemarkMessages> remarks;
  if (options.remarks)
    remarks.emplace(*context, nameTarget(bindings, target.name));
  FailureOr<KernelCode> code =
      generateKernel(module, target, options, assemblers, stopwatch);
  if (failed(code))
    return failure();
  append_range(result.resources, std::move(code->resources));
  if (options.emit != Emit::Unit) {
    result.output = std::move(code->output);
    return success();
  }
  // The signature is the same for all targets, so keep the first one.
  if (kernels.empty())
    kernels.push_back({std::move(code->signature), {}});
  kernels.front().code.push_back(std::move(code->code));
  return success();
}

/// Returns a module with `kernel` and everything in `module` that is not a
/// kernel. Errors about the new module as a whole are located at the kernel.
static OwningModule isolate(mlir::ModuleOp module, mlir::Operation *kernel) {
  OwningModule isolated = mlir::ModuleOp::create(kernel->getLoc());
  for (mlir::Operation &op : *module.getBody())
    if (&op == kernel || op.getName() != kernel->getName())
      isolated->push_back(op.clone());
  return isolated;
}

/// True if the name is valid in PTX. With an invalid name, LLVM aborts the
/// process.
static bool isPtxName(StringRef name) {
  return !name.empty() && !isDigit(name.front()) && all_of(name, [](char c) {
    return isAlnum(c) || c == '_' || c == '$';
  });
}

/// Adds a kernel and its code to the unit. Fails if the kernel exceeds the
/// runtime's limits, or if the unit already has it for the same bindings.
LogicalResult Compilation::addToUnit(mlir::Operation *kernel,
                                     std::vector<target::UnitKernel> entry) {
  Expected<json::Object> declaration = declare(cast<KernelOp>(kernel));
  if (!declaration)
    return kernel->emitError(toString(declaration.takeError()));
  declaration->erase("name");
  declaration->erase("aliases");
  if (!options.digest.empty())
    (*declaration)["digest"] = options.digest;
  for (target::UnitKernel &made : entry) {
    made.signature["declaration"] = json::Object(*declaration);
    if (Error error = target::checkLimits(made))
      return kernel->emitError(toString(std::move(error)));
    std::string bindings;
    if (const json::Value *value = made.signature.get("bindings"))
      raw_string_ostream(bindings) << *value;
    if (!unitNames.insert((kernelName(kernel) + "\n" + bindings).str()).second)
      return kernel->emitError()
             << "expected each kernel once in a unit for the same bindings, "
                "got '"
             << kernelName(kernel) << "' twice for " << bindings;
    unitKernels.push_back(std::move(made));
  }
  return success();
}

/// Writes the output of an emission without a target: IR as text, or an
/// analysis.
LogicalResult Compilation::writeAnalysis(mlir::ModuleOp isolated) {
  if (options.emit != Emit::Report && options.emit != Emit::Faults) {
    print(isolated);
    return success();
  }
  raw_string_ostream stream(result.output);
  KernelOp bound = *isolated.getOps<KernelOp>().begin();
  if (options.emit == Emit::Report) {
    stopwatch.time("proofs", [&] { stream << reportProofs(bound) << "\n"; });
    return success();
  }
  Expected<json::Value> faults = stopwatch.time(
      "rows", [&] { return findLaunchFaults(bound, options.launch); });
  if (!faults)
    return fail(toString(faults.takeError()));
  stream << *faults << "\n";
  return success();
}

LogicalResult Compilation::compileKernel(mlir::Operation *kernel,
                                         const Bindings &bindings) {
  if (options.emit == Emit::Header || options.emit == Emit::TvmFfi)
    return describeForHost(kernel, bindings);
  if (needsNoTarget(options.emit)) {
    OwningModule isolated = isolate(*module, kernel);
    if (options.emit != Emit::Source && failed(lower(*isolated, bindings, "")))
      return failure();
    return writeAnalysis(*isolated);
  }
  std::vector<target::UnitKernel> entry;
  for (const TargetSpec *target : targets) {
    if (target->isGPU() && !isPtxName(kernelName(kernel)))
      return kernel->emitError()
             << "expected a name of letters, digits, '_' and '$' for "
             << target->name << ", got '" << kernelName(kernel) << "'";
    assemblers.begin(*target, options);
    OwningModule isolated = isolate(*module, kernel);
    if (failed(lower(*isolated, bindings, target->name)) ||
        failed(generate(*isolated, bindings, *target, entry)))
      return failure();
  }
  if (options.emit == Emit::Unit && failed(addToUnit(kernel, std::move(entry))))
    return failure();
  return success();
}

/// Adds the kernel's signature to `unitKernels`, for writeHostText(). The
/// signature is the same for all targets, so any target serves.
LogicalResult Compilation::describeForHost(mlir::Operation *kernel,
                                           const Bindings &bindings) {
  OwningModule isolated = isolate(*module, kernel);
  if (failed(lower(*isolated, bindings, "x86-64")))
    return failure();
  KernelOp bound = *isolated->getOps<KernelOp>().begin();
  Expected<json::Value> signature = target::toJson(getSignature(bound));
  if (!signature)
    return fail(toString(signature.takeError()));
  std::vector<target::UnitKernel> entry(1);
  entry.front().signature = std::move(*signature->getAsObject());
  return addToUnit(kernel, std::move(entry));
}

LogicalResult Compilation::writeHostText() {
  std::vector<json::Object> signatures;
  for (target::UnitKernel &kernel : unitKernels)
    signatures.push_back(std::move(kernel.signature));
  Expected<std::string> text =
      options.emit == Emit::Header
          ? target::writeHeader(options.unitName, signatures)
          : target::writeTvmFfi(options.unitName, signatures);
  if (!text)
    return fail(toString(text.takeError()));
  result.output = std::move(*text);
  return success();
}

/// Writes the signature of the kernel as JSON.
LogicalResult Compilation::describe() {
  Expected<json::Object> signature = declare(cast<KernelOp>(kernels.front()));
  if (!signature)
    return fail(toString(signature.takeError()));
  raw_string_ostream(result.output)
      << json::Value(std::move(*signature)) << "\n";
  return success();
}

/// Fails if the source text exceeds a limit of TextCheck.h. The message omits
/// the source line, which may be most of the text.
LogicalResult Compilation::checkSourceText() {
  const MemoryBuffer *text = sources.getMemoryBuffer(sources.getMainFileID());
  std::optional<TextError> error = checkText(text->getBuffer());
  if (!error)
    return success();
  auto [line, column] = sources.getLineAndColumn(
      SMLoc::getFromPointer(text->getBufferStart() + error->offset));
  StringRef name = text->getBufferIdentifier();
  diagnosticStream << name << ":" << line << ":" << column
                   << ": error: " << error->message << "\n";
  SourceLocation place{name.str(), line, column, line, column};
  result.messages.push_back(
      {Diagnostic::Severity::Error, error->message, place, {}});
  return failure();
}

LogicalResult Compilation::compileSource() {
  if (failed(checkBindings()) ||
      (!needsNoTarget(options.emit) &&
       (failed(selectTargets()) || failed(selectAssemblers()))))
    return failure();
  if (failed(checkSourceText()))
    return failure();
  module = stopwatch.time("parse", [&] {
    return mlir::parseSourceFile<mlir::ModuleOp>(
        sources, mlir::ParserConfig(context.get()));
  });
  if (!module)
    return failure();

  if (target::isLowered(*module) && !needsNoTarget(options.emit)) {
    if (targets.size() != 1 || !options.specializations.empty())
      return fail("expected one target and no bindings for a source that is "
                  "lowered already, got " +
                  Twine(targets.size()) + " targets and " +
                  Twine(options.specializations.size()) + " bindings");
    if (failed(generate(*module, {}, *targets.front(), unitKernels)))
      return failure();
  } else {
    if (failed(selectKernels()) || failed(checkSource(*module)) ||
        failed(checkSingle()))
      return failure();
    if (options.emit == Emit::Signature)
      return describe();
    if (options.provesBounds)
      for (mlir::Operation *kernel : kernels)
        cast<KernelOp>(kernel).setBounds("prove");
    std::vector<Bindings> specializations = options.specializations;
    if (specializations.empty())
      specializations.emplace_back();
    for (mlir::Operation *kernel : kernels)
      for (const Bindings &bindings : specializations)
        if (failed(compileKernel(kernel, bindings)))
          return failure();
  }

  if (options.emit == Emit::Unit)
    return writeUnit();
  return isOfUnit(options.emit) ? writeHostText() : success();
}

LogicalResult Compilation::writeUnit() {
  Expected<std::string> unit = stopwatch.time(
      "write unit", [&] { return target::writeUnit(unitKernels); });
  if (!unit)
    return fail(toString(unit.takeError()));
  result.output = std::move(*unit);
  return success();
}

CompileResult Compilation::run() {
  mlir::SourceMgrDiagnosticHandler handler(sources, context.get(),
                                           diagnosticStream);
  DiagnosticCollector collector(context.get(), result.messages,
                                /*forward=*/true);
  RepeatedWarnings repeated(context.get());
  result.ok = succeeded(compileSource());
  diagnosticStream.flush();
  result.timings = stopwatch.timings();
  if (!result.ok)
    result.output.clear();
  return std::move(result);
}

CompileResult mlafix::compile(std::string_view source, std::string_view name,
                              const CompileOptions &options) {
  DefaultNumbers numbers;
  return Compilation(source, name, options).run();
}

#ifdef __SANITIZE_ADDRESS__
/// Turns off user poisoning in AddressSanitizer. LLVM's bump allocator poisons
/// its slabs where it is inlined into this code. The linked LLVM, built without
/// sanitizers, never unpoisons them, so contexts that live long would cause
/// false alarms.
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0";
}
#endif
