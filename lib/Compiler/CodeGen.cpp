//===- CodeGen.cpp - compiles a lowered kernel to code --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/CodeGen.h"

#include "lib/Compiler/Parallel.h"
#include "lib/Machine/MachineModel.h"
#include "lib/Plan/ResidentBlocks.h"
#include "lib/Target/CpuImage.h"
#include "lib/Target/Cubin.h"
#include "lib/Target/Json.h"
#include "lib/Target/LLVMIR.h"
#include "lib/Target/Unit.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Remarks.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Target/TargetMachine.h"
#include <numeric>

using namespace llvm;
using namespace mlafix;
using namespace mlafix::target;

namespace {

/// The code that one thread compiles: the whole kernel, or one of its code
/// versions.
struct Part {
  /// The code version, until it is translated to LLVM IR. Null if the part is
  /// the whole kernel.
  mlir::OwningOpRef<mlir::ModuleOp> source;
  LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  std::string code;               ///< PTX, or a CPU's object
  StringMap<uint64_t> stackBytes; ///< CPU only: stack bytes by function
};

/// A cubin, and the resources that each kernel in it takes.
struct AssembledCode {
  std::string cubin;
  StringMap<KernelResources> resources;
};

/// Hosts are assumed to have stacks of this size, so units record how many
/// bytes a code version needs only if it needs more.
constexpr uint64_t smallStackBytes = 64 << 10;

/// Compiles one kernel for one target, from the lowered module to its code.
/// Each stage fills some members. Errors are reported at the module.
class Generator {
public:
  Generator(mlir::ModuleOp module, const TargetSpec &target,
            const CompileOptions &options, Assemblers &assemblers,
            Stopwatch &stopwatch)
      : module(module), target(target), options(options),
        assemblers(assemblers), stopwatch(stopwatch) {}

  FailureOr<KernelCode> run();

private:
  void split();
  std::vector<size_t> byLength();
  Error generatePart(Part &part, unsigned ptxVersion);
  LogicalResult generate();
  LogicalResult makeGpuCode();
  LogicalResult makeCpuCode();
  std::vector<StringRef>
  findSpills(StringRef ptx, const StringMap<KernelResources> &resources);
  void remarkOnSpills(ArrayRef<StringRef> spilling, StringRef remedy);
  Expected<AssembledCode> assembleBy(Assembler &assembler, std::string &ptx);
  LogicalResult assemble(std::string &ptx);
  LogicalResult noteResources(const StringMap<KernelResources> &resources);
  LogicalResult readManifest();

  LogicalResult fail(Error error) {
    return module.emitError(toString(std::move(error)));
  }
  bool emits(Emit emit) const { return options.emit == emit; }

  mlir::ModuleOp module;
  const TargetSpec &target;
  const CompileOptions &options;
  Assemblers &assemblers;
  Stopwatch &stopwatch;

  KernelInfo info;
  std::vector<std::unique_ptr<Part>> parts;
  std::vector<std::string> entries;
  KernelCode result;
};

} // namespace

/// Splits the module into one part per code version, if possible.
void Generator::split() {
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> versions;
  // With line information, do not split: each separate module would number its
  // files from 1, and the numbers would clash in the joined PTX.
  if (target.isGPU() && !emits(Emit::LLVM) && !options.lineInfo)
    versions = splitCodeVersions(module, entries);
  parts.resize(std::max<size_t>(1, versions.size()));
  for (std::unique_ptr<Part> &part : parts)
    part = std::make_unique<Part>();
  for (auto [part, version] : zip(parts, versions))
    part->source = std::move(version);
}

/// Returns the indices of the parts, longest part first. If there are fewer
/// cores than parts, the part that starts last is then a short one.
std::vector<size_t> Generator::byLength() {
  std::vector<size_t> lengths, order(parts.size());
  for (const std::unique_ptr<Part> &part : parts) {
    size_t &length = lengths.emplace_back(0);
    if (part->source)
      part->source->walk([&](mlir::Operation *) { ++length; });
  }
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(
      order, [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  return order;
}

/// Returns the bytes of stack that a call of `function` needs: the sum of its
/// allocas.
static uint64_t countStackBytes(const llvm::Function &function) {
  const llvm::DataLayout &layout = function.getDataLayout();
  uint64_t bytes = 0;
  for (const llvm::Instruction &instruction : llvm::instructions(function))
    if (auto *buffer = dyn_cast<llvm::AllocaInst>(&instruction))
      if (std::optional<TypeSize> size = buffer->getAllocationSize(layout))
        bytes += llvm::alignTo(size->getFixedValue(), buffer->getAlign());
  return bytes;
}

/// Optimises the LLVM IR of a part. Generates its code too, unless only IR is
/// emitted.
Error Generator::generatePart(Part &part, unsigned ptxVersion) {
  auto machine = leaseTargetMachine(target, ptxVersion);
  if (!machine)
    return machine.takeError();
  Expected<std::unique_ptr<llvm::Module>> translated =
      translateToLLVMIR(part.source ? *part.source : module, info, target,
                        **machine, part.context);
  if (!translated)
    return translated.takeError();
  part.source = nullptr;
  part.module = std::move(*translated);
  optimize(*part.module, **machine);
  if (emits(Emit::LLVM))
    return Error::success();
  if (!target.isGPU())
    for (const llvm::Function &function : *part.module)
      part.stackBytes[function.getName()] = countStackBytes(function);
  Expected<std::string> code =
      generateCode(*part.module, **machine, target.isGPU());
  if (!code)
    return code.takeError();
  part.code = std::move(*code);
  part.module = nullptr;
  return Error::success();
}

/// Generates all parts in parallel.
LogicalResult Generator::generate() {
  unsigned ptxVersion = requiredPtxVersion(module, target);
  return stopwatch.time("LLVM", [&]() -> LogicalResult {
    split();
    std::vector<size_t> order = byLength();
    std::vector<std::string> errors(parts.size());
    {
      SharedContext shared(*module.getContext());
      // Report the diagnostics of all threads in the order of code versions.
      mlir::ParallelDiagnosticHandler diagnostics(module.getContext());
      parallelFor(parts.size(), [&](size_t next) {
        size_t i = order[next];
        diagnostics.setOrderIDForThread(i);
        errors[i] = toString(generatePart(*parts[i], ptxVersion));
        diagnostics.eraseOrderIDForThread();
      });
    }
    for (const std::string &error : errors)
      if (!error.empty())
        return module.emitError(error);
    return success();
  });
}

/// Reads what passes recorded for the manifest as attributes: the signature and
/// the code versions.
LogicalResult Generator::readManifest() {
  Expected<json::Value> signature = toJson(info.signature);
  if (!signature)
    return fail(signature.takeError());
  result.signature = std::move(*signature->getAsObject());
  result.code.target = target.name.str();
  for (VariantAttr variant : info.variants)
    result.code.variants.push_back(toJson(variant));
  return success();
}

LogicalResult
Generator::noteResources(const StringMap<KernelResources> &resources) {
  MachineModel machine = cantFail(MachineModel::get(target.name));
  for (auto [index, entry] : enumerate(entries)) {
    auto found = resources.find(entry);
    if (found == resources.end())
      return module.emitError("expected a cubin that describes '" + entry +
                              "', got one without it from the assembler");
    const KernelResources &kernel = found->second;
    result.resources.push_back({entry, target.name.str(), kernel.registers,
                                kernel.localBytes, kernel.sharedBytes});
    json::Object version =
        toJson(fitBlocks(info.variants[index], machine, kernel.registers));
    version["registers"] = kernel.registers;
    result.code.variants[index] = std::move(version);
  }
  return success();
}

/// Returns the entries that spill registers: their code takes more local memory
/// than their PTX declares.
std::vector<StringRef>
Generator::findSpills(StringRef ptx,
                      const StringMap<KernelResources> &resources) {
  std::vector<StringRef> spilling;
  for (StringRef entry : entries)
    if (resources.lookup(entry).localBytes > countLocalBytes(ptx, entry))
      spilling.push_back(entry);
  return spilling;
}

void Generator::remarkOnSpills(ArrayRef<StringRef> spilling, StringRef remedy) {
  for (StringRef entry : spilling)
    mlir::remark::missed(module.getLoc(),
                         mlir::remark::RemarkOpts::name("spills")
                             .category("mlafix-assemble")
                             .function(entry))
        << "the assembler spilled registers, where ptxas 13.0 may compute a "
           "wrong address: "
        << remedy;
}

/// Assembles `ptx`. If entries spill registers, assembles it again with little
/// optimisation. If they still spill, gives these entries more registers in
/// `ptx` and starts over (PtxasFaults.cpp). This is the last resort: with more
/// registers per thread, fewer blocks fit.
Expected<AssembledCode> Generator::assembleBy(Assembler &assembler,
                                              std::string &ptx) {
  AssemblyOptions how = Assemblers::assemblyOptions(options);
  std::unique_ptr<Assembly> assembly = std::move(assemblers.begun);
  while (true) {
    if (!assembly)
      assembly = assembler.begin(target, how);
    Expected<std::string> cubin =
        stopwatch.time("assemble", [&] { return assembly->finish(ptx); });
    if (!cubin)
      return cubin.takeError();
    Expected<StringMap<KernelResources>> resources = readResources(*cubin);
    if (!resources)
      return resources.takeError();
    std::vector<StringRef> spilling = findSpills(ptx, *resources);
    bool isGiven = false;
    if (how.isCautious)
      for (StringRef entry : spilling)
        isGiven |= giveRegisters(ptx, entry);
    if (spilling.empty() || (how.isCautious && !isGiven))
      return AssembledCode{std::move(*cubin), std::move(*resources)};
    remarkOnSpills(spilling, isGiven ? "assembled again with more registers"
                                     : "assembled again with -O1");
    how.isCautious = !how.isCautious;
    assembly = nullptr;
  }
}

/// Tries the assemblers in order. If there is none, or none knows the chip, a
/// unit contains no cubin.
LogicalResult Generator::assemble(std::string &ptx) {
  std::string reason = assemblers.all.empty() ? noAssemblerMessage().str() : "";
  for (Assembler *assembler : assemblers.all) {
    Expected<AssembledCode> code = assembleBy(*assembler, ptx);
    if (code) {
      if (failed(noteResources(code->resources)))
        return failure();
      result.code.images.push_back(
          {"cubin", std::move(code->cubin), assembler->name().str()});
      return success();
    }
    Error error = code.takeError();
    if (!error.isA<UnsupportedByAssembler>())
      return fail(std::move(error));
    reason += (reason.empty() ? "" : "; ") + toString(std::move(error));
  }
  if (emits(Emit::Cubin))
    return module.emitError(reason);
  module.emitWarning("the unit holds only PTX for ")
      << target.name << ", which the driver compiles at load: " << reason;
  return success();
}

LogicalResult Generator::makeGpuCode() {
  std::vector<std::string> code;
  for (std::unique_ptr<Part> &part : parts)
    code.push_back(std::move(part->code));
  std::string ptx = joinPtx(code);
  if (emits(Emit::PTX)) {
    result.output = std::move(ptx);
    return success();
  }
  if (failed(assemble(ptx)))
    return failure();
  if (emits(Emit::Cubin))
    result.output = std::move(result.code.images.front().bytes);
  else
    result.code.images.push_back({"ptx", std::move(ptx), ""});
  return success();
}

LogicalResult Generator::makeCpuCode() {
  std::string &object = parts.front()->code;
  if (emits(Emit::Object)) {
    if (Error error = checkDefined(object))
      return fail(std::move(error));
    result.output = std::move(object);
    return success();
  }
  Expected<CpuImage> image =
      stopwatch.time("link", [&] { return linkCpuImage(object, entries); });
  if (!image)
    return fail(image.takeError());
  for (auto [value, entry, offset] :
       zip_equal(result.code.variants, entries, image->offsets)) {
    json::Object &variant = *value.getAsObject();
    variant["offset"] = offset;
    if (uint64_t bytes = parts.front()->stackBytes.lookup(entry);
        bytes > smallStackBytes)
      variant["stack_bytes"] = bytes;
  }
  result.code.images.push_back({"cpu", std::move(image->bytes), ""});
  return success();
}

FailureOr<KernelCode> Generator::run() {
  if (target.isGPU() && failed(checkTarget(module, target)))
    return failure();
  FailureOr<KernelInfo> taken = takeKernelInfo(module);
  if (failed(taken))
    return failure();
  info = std::move(*taken);
  for (VariantAttr variant : info.variants)
    entries.push_back(variant.getEntry().str());
  if (options.lineInfo && target.isGPU())
    attachLineInfo(module);
  if (failed(readManifest()) || failed(generate()))
    return failure();
  if (emits(Emit::LLVM)) {
    raw_string_ostream(result.output) << *parts.front()->module;
    return std::move(result);
  }
  if (failed(target.isGPU() ? makeGpuCode() : makeCpuCode()))
    return failure();
  return std::move(result);
}

FailureOr<KernelCode> mlafix::generateKernel(mlir::ModuleOp module,
                                             const TargetSpec &target,
                                             const CompileOptions &options,
                                             Assemblers &assemblers,
                                             Stopwatch &stopwatch) {
  return Generator(module, target, options, assemblers, stopwatch).run();
}
