//===- CodeGen.cpp - a lowered kernel to code -----------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/CodeGen.h"

#include "lib/Target/Assembler.h"
#include "lib/Target/ChipCheck.h"
#include "lib/Target/CpuImage.h"
#include "lib/Target/Cubin.h"
#include "lib/Target/Json.h"
#include "lib/Target/LLVMIR.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;
using namespace mlafix;
using namespace mlafix::target;

namespace {

/// The stages from a lowered module on, for one kernel and target. Members are
/// filled in the order of the stages; errors are emitted at the module.
class Generator {
public:
  Generator(mlir::ModuleOp module, const TargetSpec &target,
            const CompileOptions &options, Stopwatch &stopwatch)
      : module(module), target(target), options(options), stopwatch(stopwatch) {
  }

  FailureOr<KernelCode> run();

private:
  LogicalResult makeLLVMIR();
  LogicalResult makeGpuCode();
  LogicalResult makeCpuCode();
  LogicalResult assemble(StringRef ptx);
  LogicalResult noteResources(StringRef cubin);
  LogicalResult readManifest();

  LogicalResult fail(Error error) {
    return module.emitError(toString(std::move(error)));
  }
  bool emits(Emit emit) const { return options.emit == emit; }

  mlir::ModuleOp module;
  const TargetSpec &target;
  const CompileOptions &options;
  Stopwatch &stopwatch;

  KernelInfo info;
  LLVMContext context;
  std::unique_ptr<TargetMachine> machine;
  std::unique_ptr<llvm::Module> llvmModule;
  std::vector<std::string> entries;
  KernelCode result;
};

} // namespace

LogicalResult Generator::makeLLVMIR() {
  Expected<std::unique_ptr<TargetMachine>> made =
      createTargetMachine(target, requiredPtxVersion(module, target));
  if (!made)
    return fail(made.takeError());
  machine = std::move(*made);
  llvmModule = stopwatch.time("translate", [&] {
    return translateToLLVMIR(module, info, *machine, context);
  });
  if (!llvmModule)
    return failure();
  stopwatch.time("optimise", [&] { optimize(*llvmModule, *machine); });
  return success();
}

/// Reads the parts of the manifest that the passes have written.
LogicalResult Generator::readManifest() {
  Expected<json::Value> signature = toJson(info.signature);
  if (!signature)
    return fail(signature.takeError());
  result.signature = std::move(*signature->getAsObject());
  result.code.target = target.name.str();
  for (mlir::DictionaryAttr variant : info.variants) {
    Expected<json::Value> entry = toJson(variant);
    if (!entry)
      return fail(entry.takeError());
    result.code.variants.push_back(std::move(*entry));
  }
  return success();
}

LogicalResult Generator::noteResources(StringRef cubin) {
  Expected<StringMap<KernelResources>> resources = readResources(cubin);
  if (!resources)
    return fail(resources.takeError());
  for (auto [index, entry] : enumerate(entries)) {
    auto found = resources->find(entry);
    if (found == resources->end())
      return module.emitError("the assembler's cubin does not describe '" +
                              entry + "'");
    const KernelResources &kernel = found->second;
    result.resources.push_back({entry, target.name.str(), kernel.registers,
                                kernel.localBytes, kernel.sharedBytes});
    (*result.code.variants[index].getAsObject())["registers"] =
        kernel.registers;
  }
  return success();
}

/// Tries the assemblers in turn. A unit does without a cubin where there is
/// none, or where all are older than the chip.
LogicalResult Generator::assemble(StringRef ptx) {
  Expected<std::vector<Assembler *>> assemblers =
      findAssemblers(options.assembler, options.ptxas);
  if (!assemblers)
    return fail(assemblers.takeError());
  std::string reason = assemblers->empty() ? noAssemblerMessage().str() : "";
  for (Assembler *assembler : *assemblers) {
    Expected<std::string> cubin = stopwatch.time(
        "assemble", [&] { return assembler->assemble(ptx, target); });
    if (cubin) {
      if (failed(noteResources(*cubin)))
        return failure();
      result.code.images.push_back(
          {"cubin", std::move(*cubin), assembler->name().str()});
      return success();
    }
    Error error = cubin.takeError();
    if (!error.isA<UnsupportedByAssembler>())
      return fail(std::move(error));
    reason += (reason.empty() ? "" : "; ") + toString(std::move(error));
  }
  if (emits(Emit::Cubin))
    return module.emitError(reason);
  module.emitWarning("the unit holds PTX alone for ")
      << target.name
      << ", which the driver assembles when it is loaded: " << reason;
  return success();
}

LogicalResult Generator::makeGpuCode() {
  Expected<std::string> ptx = stopwatch.time("generate code", [&] {
    return generateCode(*llvmModule, *machine, /*assembly=*/true);
  });
  if (!ptx)
    return fail(ptx.takeError());
  if (emits(Emit::PTX)) {
    result.output = std::move(*ptx);
    return success();
  }
  if (failed(assemble(*ptx)))
    return failure();
  if (emits(Emit::Cubin))
    result.output = std::move(result.code.images.front().bytes);
  else
    result.code.images.push_back({"ptx", std::move(*ptx), ""});
  return success();
}

LogicalResult Generator::makeCpuCode() {
  Expected<std::string> object = stopwatch.time("generate code", [&] {
    return generateCode(*llvmModule, *machine, /*assembly=*/false);
  });
  if (!object)
    return fail(object.takeError());
  if (emits(Emit::Object)) {
    result.output = std::move(*object);
    return success();
  }
  Expected<CpuImage> image =
      stopwatch.time("link", [&] { return linkCpuImage(*object, entries); });
  if (!image)
    return fail(image.takeError());
  for (auto [variant, offset] : zip_equal(result.code.variants, image->offsets))
    (*variant.getAsObject())["offset"] = offset;
  result.code.images.push_back({"cpu", std::move(image->bytes), ""});
  return success();
}

FailureOr<KernelCode> Generator::run() {
  if (target.isGPU() && failed(checkChip(module, target)))
    return failure();
  FailureOr<KernelInfo> taken = takeKernelInfo(module);
  if (failed(taken))
    return failure();
  info = std::move(*taken);
  for (mlir::DictionaryAttr variant : info.variants)
    entries.push_back(variant.getAs<mlir::StringAttr>("entry").str());
  if (failed(readManifest()) || failed(makeLLVMIR()))
    return failure();
  if (emits(Emit::LLVM)) {
    raw_string_ostream(result.output) << *llvmModule;
    return std::move(result);
  }
  if (failed(target.isGPU() ? makeGpuCode() : makeCpuCode()))
    return failure();
  return std::move(result);
}

FailureOr<KernelCode> mlafix::generateKernel(mlir::ModuleOp module,
                                             const TargetSpec &target,
                                             const CompileOptions &options,
                                             Stopwatch &stopwatch) {
  return Generator(module, target, options, stopwatch).run();
}
