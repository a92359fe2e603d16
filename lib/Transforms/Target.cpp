//===- Target.cpp - what the passes know of a target -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Target.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

StringRef mlafix::getTarget(Operation *op) {
  auto module =
      isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  auto target =
      module ? module->getAttrOfType<StringAttr>(kTargetAttr) : StringAttr();
  return target ? target.getValue() : StringRef();
}

bool mlafix::hasFp8Conversion(StringRef target) {
  unsigned capability = 0;
  target.consume_front("sm_");
  return !target.getAsInteger(10, capability) && capability >= 89;
}

int64_t mlafix::getThreadsPerMultiprocessor(StringRef target) {
  return llvm::StringSwitch<int64_t>(target)
      .Case("sm_75", 1024)
      .Cases({"sm_86", "sm_87", "sm_88", "sm_89", "sm_110", "sm_120", "sm_121"},
             1536)
      .Default(2048);
}

/// 90 for "sm_90"; 0 for what is no GPU.
static unsigned getCapability(StringRef target) {
  unsigned capability = 0;
  if (!target.consume_front("sm_") || target.getAsInteger(10, capability))
    return 0;
  return capability;
}

int64_t mlafix::getAccessBytes(StringRef target) {
  return getCapability(target) >= 100 ? 32 : 16;
}

bool mlafix::hasWideRegisters(StringRef target) {
  return target == "x86-64-v4";
}

bool mlafix::hasDependentLaunch(StringRef target) {
  return getCapability(target) >= 90;
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
