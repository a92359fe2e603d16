//===- Selection.cpp - selects targets, assemblers and kernels ------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/Compilation.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace mlafix;
using mlafix::target::TargetSpec;

/// Fails if a size in the bindings does not fit in an i32, the type of an
/// element's index in its row. The specialize pass checks the names and dtypes
/// of the bindings.
LogicalResult Compilation::checkBindings() {
  constexpr uint64_t largest = INT32_MAX;
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
      return fail("expected a GPU target for --emit=" +
                  StringRef(spelling(options.emit)) + ", got '" + target->name +
                  "'");
    if (options.emit == Emit::Object && target->isGPU())
      return fail("expected a CPU target for --emit=object, got '" +
                  target->name + "'");
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

/// Fails if several kernels, targets or sets of bindings are given for an
/// emission that takes one of each. The emissions of a whole unit (isOfUnit)
/// take several of each. They contain all code versions, so they fail if
/// --variant chooses a single code version.
LogicalResult Compilation::checkSingle() {
  if (isOfUnit(options.emit)) {
    if (options.variant.empty())
      return success();
    return fail("--variant: expected no name, since --emit=" +
                StringRef(spelling(options.emit)) +
                " takes all code versions, got '" + options.variant + "'");
  }
  using Kind = Diagnostic::Kind;
  auto check = [&](size_t count, StringRef what, StringRef how,
                   Kind kind = Kind::Other) {
    if (count <= 1)
      return success();
    return fail("expected one " + what + " for " +
                    StringRef(spelling(options.emit)) + ", got " +
                    Twine(count) + " (" + how + ")",
                kind, std::to_string(count));
  };
  if (failed(check(kernels.size(), "kernel", "choose one with --kernel",
                   Kind::SeveralKernels)) ||
      failed(check(options.specializations.size(), "choice of bindings",
                   "give --specialize once")) ||
      failed(check(targets.size(), "target",
                   "name one; cpu stands for every level")))
    return failure();
  return success();
}
