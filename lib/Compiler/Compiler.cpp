//===- Compiler.cpp - source and targets to a unit ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "mlafix/Compiler.h"

#include "dialect/Mlafix.h"
#include "lib/Analysis/Signature.h"
#include "lib/Compiler/CodeGen.h"
#include "lib/Compiler/ContextPool.h"
#include "lib/Compiler/Diagnostics.h"
#include "lib/Compiler/Pipeline.h"
#include "lib/Compiler/SourceCheck.h"
#include "lib/Compiler/TextCheck.h"
#include "lib/Target/Json.h"
#include "lib/Target/LLVMIR.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <cstdlib>

using namespace llvm;
using namespace mlafix;
using mlafix::target::TargetSpec;

using OwningModule = mlir::OwningOpRef<mlir::ModuleOp>;

namespace {
struct EmitName {
  Emit emit;
  StringLiteral name;
};
} // namespace

static constexpr EmitName emitNames[] = {
    {Emit::Signature, "signature"},
    {Emit::Source, "source"},
    {Emit::Specialized, "specialized"},
    {Emit::Canonical, "canonical"},
    {Emit::Lowered, "lowered"},
    {Emit::Layout, "layout"},
    {Emit::Distributed, "distributed"},
    {Emit::MLIR, "mlir"},
    {Emit::LLVM, "llvm"},
    {Emit::PTX, "ptx"},
    {Emit::Cubin, "cubin"},
    {Emit::Object, "object"},
    {Emit::Unit, "unit"},
};

std::string_view mlafix::spelling(Emit emit) {
  return find_if(emitNames,
                 [&](const EmitName &entry) { return entry.emit == emit; })
      ->name;
}

bool mlafix::parseEmit(std::string_view text, Emit &emit) {
  const auto *entry = find_if(emitNames, [&](const EmitName &candidate) {
    return candidate.name == StringRef(text);
  });
  if (entry == std::end(emitNames))
    return false;
  emit = entry->emit;
  return true;
}

std::string_view mlafix::compilerVersion() {
  return "mlafix " MLAFIX_VERSION ", LLVM " LLVM_VERSION_STRING;
}

/// Whether `emit` is made before a target matters.
static bool needsNoTarget(Emit emit) { return emit < Emit::Layout; }

static Stage lastStage(Emit emit) {
  switch (emit) {
  case Emit::Specialized:
    return Stage::Specialized;
  case Emit::Canonical:
    return Stage::Canonical;
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

static StringRef kernelName(mlir::Operation *kernel) {
  return mlir::SymbolTable::getSymbolName(kernel).getValue();
}

namespace {

/// One call of compile(): a context, a source, and what is made of it.
class Compilation {
public:
  Compilation(StringRef source, StringRef name, const CompileOptions &options)
      : options(options), diagnosticStream(result.diagnostics) {
    sources.AddNewSourceBuffer(MemoryBuffer::getMemBufferCopy(source, name),
                               SMLoc());
  }

  CompileResult run();

private:
  LogicalResult compileSource();
  LogicalResult writeUnit();
  LogicalResult checkSourceText();
  LogicalResult checkBindings();
  LogicalResult selectTargets();
  LogicalResult selectAssemblers();
  LogicalResult selectKernels();
  LogicalResult checkSingle();
  LogicalResult compileKernel(mlir::Operation *kernel,
                              const Bindings &bindings);
  LogicalResult lower(mlir::ModuleOp module, const Bindings &bindings,
                      StringRef target);
  LogicalResult addToUnit(mlir::Operation *kernel,
                          std::vector<target::UnitKernel> entry);
  LogicalResult describe();
  LogicalResult generate(mlir::ModuleOp module, const TargetSpec &target,
                         std::vector<target::UnitKernel> &kernels);

  /// Reports an error that has no place in the source.
  LogicalResult fail(const Twine &message) {
    diagnosticStream << "error: " << message << "\n";
    result.messages.push_back(
        {Diagnostic::Severity::Error, message.str(), {}, {}});
    return failure();
  }

  const CompileOptions &options;
  ContextLease context;
  SourceMgr sources;
  CompileResult result;
  raw_string_ostream diagnosticStream;
  Stopwatch stopwatch;

  OwningModule module;
  std::vector<const TargetSpec *> targets;
  Assemblers assemblers;
  std::vector<mlir::Operation *> kernels;
  std::vector<target::UnitKernel> unitKernels;
  StringSet<> unitNames; ///< of those, with their bindings
};

} // namespace

/// Code grows with the sizes it is made for; beyond this, compiling would not
/// end. Names and dtypes are the specialize pass's business.
LogicalResult Compilation::checkBindings() {
  constexpr uint64_t largest = 65536;
  for (const Bindings &bindings : options.specializations)
    for (const auto &[name, value] : bindings) {
      StringRef digits = value;
      uint64_t size;
      if (digits.empty() || digits.find_if_not(isDigit) != StringRef::npos)
        continue;
      if (digits.getAsInteger(10, size) || size > largest)
        return fail("expected a size of at most " + Twine(largest) + " for '" +
                    name + "', got " + digits);
    }
  return success();
}

LogicalResult Compilation::selectTargets() {
  if (options.targets.empty())
    return fail("expected at least one target, got none");
  Expected<std::vector<const TargetSpec *>> expanded =
      target::expandTargets(options.targets);
  if (!expanded)
    return fail(toString(expanded.takeError()));
  targets = std::move(*expanded);
  for (const TargetSpec *target : targets) {
    bool gpuOnly = options.emit == Emit::PTX || options.emit == Emit::Cubin;
    if (gpuOnly && !target->isGPU())
      return fail("expected a GPU target for " +
                  StringRef(spelling(options.emit)) + ", got '" + target->name +
                  "'");
    if (options.emit == Emit::Object && target->isGPU())
      return fail("expected a CPU target for object, got '" + target->name +
                  "'");
  }
  return success();
}

LogicalResult Compilation::selectAssemblers() {
  bool assembles = options.emit == Emit::Unit || options.emit == Emit::Cubin;
  if (!assembles || none_of(targets, [](const TargetSpec *target) {
        return target->isGPU();
      }))
    return success();
  Expected<std::vector<target::Assembler *>> found =
      target::findAssemblers(options.assembler, options.ptxas);
  if (!found)
    return fail(toString(found.takeError()));
  assemblers.all = std::move(*found);
  return success();
}

LogicalResult Compilation::selectKernels() {
  SmallVector<StringRef> names;
  for (mlir::Operation &op : *module->getBody()) {
    if (op.getName().getStringRef() != "mlafix.kernel")
      continue;
    names.push_back(kernelName(&op));
    if (options.kernel.empty() || names.back() == options.kernel)
      kernels.push_back(&op);
  }
  if (!kernels.empty())
    return success();
  if (names.empty())
    return fail("expected a mlafix.kernel in the source, found none");
  return fail("expected one of the source's kernels (" + join(names, ", ") +
              "), got '" + options.kernel + "'");
}

/// Everything but a unit holds the code of one kernel.
LogicalResult Compilation::checkSingle() {
  if (options.emit == Emit::Unit) {
    if (options.variant.empty())
      return success();
    return fail("expected all variants in a unit, which must run every legal "
                "call, got '" +
                options.variant + "' alone");
  }
  auto check = [&](size_t count, StringRef what, StringRef how) {
    if (count <= 1)
      return success();
    return fail("expected one " + what + " for " +
                StringRef(spelling(options.emit)) + ", got " + Twine(count) +
                " (" + how + ")");
  };
  if (failed(check(kernels.size(), "kernel", "choose one with --kernel")) ||
      failed(check(options.specializations.size(), "choice of bindings",
                   "give --specialize once")) ||
      failed(check(targets.size(), "target",
                   "name one; cpu stands for every x86-64 baseline")))
    return failure();
  return success();
}

/// Whether what each pass makes is verified: in builds with assertions, and
/// where MLAFIX_VERIFY_PASSES is set, as the tests do. Elsewhere one look at the
/// end is enough, since one after each pass takes as long as the passes do.
static bool verifiesPasses() {
#ifdef NDEBUG
  return std::getenv("MLAFIX_VERIFY_PASSES");
#else
  return true;
#endif
}

LogicalResult Compilation::lower(mlir::ModuleOp module,
                                 const Bindings &bindings, StringRef target) {
  PipelineOptions pipeline;
  for (const auto &binding : bindings)
    pipeline.bindings.push_back(binding);
  pipeline.target = target.str();
  pipeline.variant = options.variant;
  return stopwatch.time("passes", [&]() -> LogicalResult {
    // Binding names can make a source wrong: the verifiers say how.
    mlir::PassManager binding(context.get());
    Stage last = lastStage(options.emit);
    pipeline.last = std::min(last, Stage::Specialized);
    buildMlafixPipeline(binding, pipeline);
    pipeline.first = Stage::Canonical;
    pipeline.last = last;
    // All that the passes after binding depend on.
    std::string name =
        (target + "/" + options.variant + "/" + Twine(int(last))).str();
    mlir::PassManager &rest =
        context.passes(name, [&](mlir::PassManager &passes) {
          buildMlafixPipeline(passes, pipeline);
          passes.enableVerifier(verifiesPasses());
        });
    if (failed(binding.run(module)) || failed(rest.run(module)))
      return failure();
    return mlir::verify(module);
  });
}

LogicalResult Compilation::generate(mlir::ModuleOp module,
                                    const TargetSpec &target,
                                    std::vector<target::UnitKernel> &kernels) {
  if (options.emit <= Emit::MLIR) {
    raw_string_ostream(result.output) << module << "\n";
    return success();
  }
  FailureOr<KernelCode> code =
      generateKernel(module, target, options, assemblers, stopwatch);
  if (failed(code))
    return failure();
  append_range(result.resources, std::move(code->resources));
  if (options.emit != Emit::Unit) {
    result.output = std::move(code->output);
    return success();
  }
  // The signature is the same for each target: the first one stands for all.
  if (kernels.empty())
    kernels.push_back({std::move(code->signature), {}});
  kernels.front().code.push_back(std::move(code->code));
  return success();
}

/// A module of `kernel` and whatever else the source defines, but no other
/// kernel; what goes wrong with it as a whole is said where the kernel is.
static OwningModule isolate(mlir::ModuleOp module, mlir::Operation *kernel) {
  OwningModule isolated = mlir::ModuleOp::create(kernel->getLoc());
  for (mlir::Operation &op : *module.getBody())
    if (&op == kernel || op.getName() != kernel->getName())
      isolated->push_back(op.clone());
  return isolated;
}

/// Whether PTX takes the name as it is; LLVM ends the process over others.
static bool isPtxName(StringRef name) {
  return !name.empty() && !isDigit(name.front()) && all_of(name, [](char c) {
    return isAlnum(c) || c == '_' || c == '$';
  });
}

/// Puts a kernel with its code into the unit, if the runtime could load that.
LogicalResult Compilation::addToUnit(mlir::Operation *kernel,
                                     std::vector<target::UnitKernel> entry) {
  for (target::UnitKernel &made : entry) {
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

LogicalResult Compilation::compileKernel(mlir::Operation *kernel,
                                         const Bindings &bindings) {
  if (needsNoTarget(options.emit)) {
    OwningModule isolated = isolate(*module, kernel);
    if (options.emit != Emit::Source && failed(lower(*isolated, bindings, "")))
      return failure();
    raw_string_ostream(result.output) << *isolated << "\n";
    return success();
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
        failed(generate(*isolated, *target, entry)))
      return failure();
  }
  if (options.emit == Emit::Unit && failed(addToUnit(kernel, std::move(entry))))
    return failure();
  return success();
}

/// Writes the kernel's signature as JSON.
LogicalResult Compilation::describe() {
  auto kernel = cast<KernelOp>(kernels.front());
  Expected<json::Value> value = target::toJson(getSignature(kernel));
  if (!value)
    return fail(toString(value.takeError()));
  json::Object &signature = *value->getAsObject();
  signature.erase("bindings");
  signature.erase("defaults");
  json::Object names;
  json::Array &args = *signature.getArray("args");
  for (auto [index, entry] : enumerate(args))
    if (auto name =
            kernel.getArgAttrOfType<mlir::StringAttr>(index, kDTypeAttr))
      (*entry.getAsObject())["dtype_name"] = name.getValue();
  // Dynamic dims and optional arguments need no binding, and are among the
  // arguments.
  for (const BindableName &name : getBindableNames(kernel))
    if (name.kind != BindableName::DynamicDim &&
        name.kind != BindableName::Presence)
      names[name.name] = name.defaultValue.empty()
                             ? json::Value(nullptr)
                             : json::Value(name.defaultValue);
  signature["names"] = std::move(names);
  raw_string_ostream(result.output) << *value << "\n";
  return success();
}

/// Without the line in the message, which may be most of the text.
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
      return fail("expected one target and no bindings for a source that the "
                  "passes have lowered, got " +
                  Twine(targets.size()) + " targets and " +
                  Twine(options.specializations.size()) + " bindings");
    if (failed(generate(*module, *targets.front(), unitKernels)))
      return failure();
  } else {
    if (failed(selectKernels()) || failed(checkSource(*module)) ||
        failed(checkSingle()))
      return failure();
    if (options.emit == Emit::Signature)
      return describe();
    std::vector<Bindings> specializations = options.specializations;
    if (specializations.empty())
      specializations.emplace_back();
    for (mlir::Operation *kernel : kernels)
      for (const Bindings &bindings : specializations)
        if (failed(compileKernel(kernel, bindings)))
          return failure();
  }

  return options.emit == Emit::Unit ? writeUnit() : success();
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
  result.ok = succeeded(compileSource());
  diagnosticStream.flush();
  result.timings = stopwatch.timings();
  if (!result.ok)
    result.output.clear();
  return std::move(result);
}

CompileResult mlafix::compile(std::string_view source, std::string_view name,
                              const CompileOptions &options) {
  return Compilation(source, name, options).run();
}

bool mlafix::parseBindings(std::string_view text, Bindings &bindings,
                           std::string &error) {
  SmallVector<StringRef> items;
  StringRef(text).split(items, ',');
  for (StringRef item : items) {
    auto [name, value] = item.trim().split('=');
    if (name.empty() || value.empty()) {
      error = ("expected bindings of the form NAME=VALUE,…, got '" +
               StringRef(text) + "'")
                  .str();
      return false;
    }
    if (any_of(bindings,
               [&](const auto &b) { return b.first == name.trim(); })) {
      error = ("expected each name once, got '" + name.trim() + "' twice in '" +
               StringRef(text) + "'")
                  .str();
      return false;
    }
    bindings.push_back({name.trim().str(), value.trim().str()});
  }
  return true;
}

#ifdef __SANITIZE_ADDRESS__
/// LLVM's bump allocator poisons its slabs where it is inlined here, and the
/// LLVM that is linked, built without a sanitizer, does not lift that from the
/// memory it takes out of them: a false alarm once a context lives long enough.
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0";
}
#endif
