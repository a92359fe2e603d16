//===- Target.cpp - what the passes know of a target -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Target.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace mlafix;

StringRef mlafix::getTarget(Operation *op) {
  auto module =
      isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  auto target =
      module ? module->getAttrOfType<StringAttr>(kTargetAttr) : StringAttr();
  return target ? target.getValue() : StringRef();
}

MachineModel mlafix::getMachine(Operation *op) {
  auto module =
      isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  std::vector<std::string> overrides;
  if (module)
    if (auto texts = module->getAttrOfType<ArrayAttr>(kMachineAttr))
      for (auto text : texts.getAsRange<StringAttr>())
        overrides.push_back(text.str());
  llvm::Expected<MachineModel> model =
      MachineModel::get(getTarget(op), overrides);
  if (model)
    return *model;
  llvm::consumeError(model.takeError());
  return MachineModel();
}

FailureOr<MachineModel> mlafix::getMachine(Operation *op, StringRef target,
                                           ArrayRef<std::string> overrides) {
  llvm::Expected<MachineModel> model = MachineModel::get(target, overrides);
  if (!model)
    return op->emitError() << toString(model.takeError());
  return *model;
}

DictionaryAttr mlafix::makeAlignGuard(MLIRContext *context,
                                      ArrayRef<int64_t> args, int64_t bytes) {
  Builder b(context);
  return b.getDictionaryAttr(
      {b.getNamedAttr("kind", b.getStringAttr("align")),
       b.getNamedAttr("args", b.getI64ArrayAttr(args)),
       b.getNamedAttr("bytes", b.getI64IntegerAttr(bytes))});
}

DictionaryAttr mlafix::makeMaxRowsGuard(MLIRContext *context, int64_t value) {
  Builder b(context);
  return b.getDictionaryAttr(
      {b.getNamedAttr("kind", b.getStringAttr("max_rows")),
       b.getNamedAttr("value", b.getI64IntegerAttr(value))});
}

DictionaryAttr mlafix::makeStrideGuard(MLIRContext *context, int64_t arg,
                                       int64_t dim, int64_t value) {
  Builder b(context);
  return b.getDictionaryAttr(
      {b.getNamedAttr("kind", b.getStringAttr("stride")),
       b.getNamedAttr("arg", b.getI64IntegerAttr(arg)),
       b.getNamedAttr("dim", b.getI64IntegerAttr(dim)),
       b.getNamedAttr("value", b.getI64IntegerAttr(value))});
}

/// A guard that says nothing but which arguments it is about.
static DictionaryAttr makeArgsGuard(MLIRContext *context, StringRef kind,
                                    ArrayRef<int64_t> args) {
  Builder b(context);
  return b.getDictionaryAttr({b.getNamedAttr("kind", b.getStringAttr(kind)),
                              b.getNamedAttr("args", b.getI64ArrayAttr(args))});
}

DictionaryAttr mlafix::makeDistinctGuard(MLIRContext *context, int64_t a,
                                         int64_t b) {
  return makeArgsGuard(context, "distinct", {a, b});
}

DictionaryAttr mlafix::makeBeyondCacheGuard(MLIRContext *context,
                                            ArrayRef<int64_t> args) {
  return makeArgsGuard(context, "beyond_cache", args);
}

DictionaryAttr mlafix::makeSameStridesGuard(MLIRContext *context,
                                            ArrayRef<int64_t> args) {
  return makeArgsGuard(context, "same_strides", args);
}

/// The guards of one kind.
static SmallVector<DictionaryAttr> getGuards(ArrayAttr guards, StringRef kind) {
  SmallVector<DictionaryAttr> result;
  if (!guards)
    return result;
  for (Attribute attr : guards)
    if (auto guard = dyn_cast<DictionaryAttr>(attr))
      if (auto name = guard.getAs<StringAttr>("kind");
          name && name.getValue() == kind)
        result.push_back(guard);
  return result;
}

/// Whether `arg` is one of those that the guard speaks of.
static bool isOfGuard(DictionaryAttr guard, int64_t arg) {
  return llvm::any_of(guard.getAs<ArrayAttr>("args").getAsRange<IntegerAttr>(),
                      [&](IntegerAttr index) { return index.getInt() == arg; });
}

int64_t mlafix::getGuardedAlignment(ArrayAttr guards, int64_t arg) {
  for (DictionaryAttr guard : getGuards(guards, "align"))
    if (isOfGuard(guard, arg))
      return guard.getAs<IntegerAttr>("bytes").getInt();
  return 0;
}

bool mlafix::isGuardedBeyondCache(ArrayAttr guards, int64_t arg) {
  return llvm::any_of(
      getGuards(guards, "beyond_cache"),
      [&](DictionaryAttr guard) { return isOfGuard(guard, arg); });
}

bool mlafix::areGuardedDistinct(ArrayAttr guards, int64_t a, int64_t b) {
  return llvm::any_of(getGuards(guards, "distinct"), [&](DictionaryAttr guard) {
    auto args = guard.getAs<ArrayAttr>("args").getAsRange<IntegerAttr>();
    return llvm::all_of(args, [&](IntegerAttr arg) {
      return arg.getInt() == a || arg.getInt() == b;
    });
  });
}

int64_t mlafix::getStrideOwner(ArrayAttr guards, int64_t arg) {
  for (DictionaryAttr guard : getGuards(guards, "same_strides"))
    if (isOfGuard(guard, arg))
      return cast<IntegerAttr>(guard.getAs<ArrayAttr>("args")[0]).getInt();
  return arg;
}

bool mlafix::hasRowBound(ArrayAttr guards) {
  return !getGuards(guards, "max_rows").empty();
}
