//===- Guards.cpp - what the guards of a code version ensure --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Guards.h"

using namespace mlir;
using namespace mlafix;

/// Returns the first guard of kind `kind` that is about argument `arg`, or
/// null.
static GuardAttr findGuardOn(ArrayAttr guards, GuardKind kind, int64_t arg) {
  if (guards)
    for (GuardAttr guard : guards.getAsRange<GuardAttr>())
      if (guard.getKind() == kind && guard.isAbout(arg))
        return guard;
  return {};
}

int64_t mlafix::getStrideOwner(ArrayAttr guards, int64_t arg) {
  GuardAttr guard = findGuardOn(guards, GuardKind::SameStrides, arg);
  return guard ? guard.getArgs().front() : arg;
}

bool mlafix::areGuardedDistinct(ArrayAttr guards, int64_t a, int64_t b) {
  return guards &&
         llvm::any_of(guards.getAsRange<GuardAttr>(), [&](GuardAttr guard) {
           return guard.getKind() == GuardKind::Distinct && a != b &&
                  guard.isAbout(a) && guard.isAbout(b);
         });
}

int64_t mlafix::getGuardedAlignment(ArrayAttr guards, int64_t arg) {
  GuardAttr guard = findGuardOn(guards, GuardKind::Align, arg);
  return guard ? guard.getNumber() : 0;
}

bool mlafix::isGuardedBeyondCache(ArrayAttr guards, int64_t arg) {
  return static_cast<bool>(findGuardOn(guards, GuardKind::BeyondCache, arg));
}

bool mlafix::isGuardedPacked(ArrayAttr guards, int64_t arg, int64_t dim) {
  return guards &&
         llvm::any_of(guards.getAsRange<GuardAttr>(), [&](GuardAttr guard) {
           return guard.getKind() == GuardKind::Packed && guard.isAbout(arg) &&
                  guard.getDim() == dim;
         });
}

int64_t mlafix::getGuardedMultiple(KernelOp kernel, StringRef dim) {
  if (ArrayAttr guards = kernel.getGuardsAttr())
    for (GuardAttr guard : guards.getAsRange<GuardAttr>()) {
      if (guard.getKind() != GuardKind::Multiple)
        continue;
      ArrayAttr dims = kernel.getArgDims(guard.getArgs().front());
      if (cast<StringAttr>(dims[guard.getDim()]).getValue() == dim)
        return guard.getNumber();
    }
  return 1;
}

bool mlafix::hasUnknownStride(KernelOp kernel, Value memref) {
  BlockArgument argument = getKernelArgument(memref);
  for (auto [dim, stride] : llvm::enumerate(
           cast<MemRefType>(memref.getType()).getStridesAndOffset().first))
    if (ShapedType::isDynamic(stride) &&
        !(argument && isGuardedPacked(kernel.getGuardsAttr(),
                                      argument.getArgNumber(), dim)))
      return true;
  return false;
}

std::optional<int64_t> mlafix::getRowBound(ArrayAttr guards) {
  if (guards)
    for (GuardAttr guard : guards.getAsRange<GuardAttr>())
      if (guard.getKind() == GuardKind::MaxRows)
        return guard.getNumber();
  return std::nullopt;
}
