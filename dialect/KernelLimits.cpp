//===- KernelLimits.cpp - limits of units that kernels must keep ----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/KernelVerifier.h"

#include "mlafix/UnitLimits.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlafix;

/// Returns "" if a unit can contain `text`. Otherwise describes what is wrong
/// with `text`, by a phrase that follows "got" in a message.
static std::string findTextError(StringRef text) {
  if (text.size() > limits::nameBytes)
    return "one of " + std::to_string(text.size()) + " bytes";
  if (!llvm::json::isUTF8(text))
    return "one that is not UTF-8";
  return limits::isText(text) ? "" : "one with control characters";
}

/// Checks that a unit can contain a text. `what` describes the text, for
/// example "the name of argument 3".
static LogicalResult verifyText(KernelOp kernel, StringRef text,
                                const Twine &what, bool mayBeEmpty) {
  std::string fault = findTextError(text);
  if (fault.empty() && text.empty() && !mayBeEmpty)
    fault = "an empty one";
  if (fault.empty())
    return success();
  return kernel.emitOpError()
         << "expected " << what << " to be a text of "
         << (mayBeEmpty ? "at most " : "1 to ") << limits::nameBytes
         << " bytes in UTF-8 without control characters, got " << fault;
}

static LogicalResult verifyTensor(KernelOp kernel, unsigned index,
                                  MemRefType type) {
  if (type.getRank() > MLAFIX_MAX_DIMS)
    return failAt(kernel, index) << "expected at most " << int(MLAFIX_MAX_DIMS)
                                 << " dims, got " << type.getRank();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return success(); // TensorVerifier reports the layout
  for (int64_t stride : strides)
    if (stride < 0 && !ShapedType::isDynamic(stride))
      return failAt(kernel, index)
             << "expected strides of at least 0, or dynamic ones, got "
             << stride;
  if (ArrayAttr dims = kernel.getArgDims(index))
    for (auto [position, attr] : llvm::enumerate(dims))
      if (auto name = dyn_cast<StringAttr>(attr))
        if (failed(verifyText(kernel, name.getValue(),
                              "the name of dim " + Twine(position) +
                                  " of argument " + Twine(index),
                              /*mayBeEmpty=*/true)))
          return failure();
  return success();
}

/// Checks the names that can be bound. Lists of bindings, such as
/// "D=128,T=bf16", contain these names, so a name must not contain '=' or ','.
static LogicalResult verifyBindable(KernelOp kernel) {
  for (const BindableName &name : getBindableNames(kernel)) {
    StringRef text = name.name;
    if (failed(verifyText(kernel, text, "a name that may be bound",
                          /*mayBeEmpty=*/false)))
      return failure();
    if (!limits::isBindable({text.data(), text.size()}))
      return kernel.emitOpError()
             << "expected no '=' or ',' in a name that may be bound, got '"
             << text << "'";
  }
  return success();
}

LogicalResult mlafix::verifyLimits(KernelOp kernel) {
  // Do not check the length of a code version's name here (a kernel with a plan
  // is a code version): the name has a suffix that this limit leaves room for.
  StringRef name = kernel.getSymName();
  if (!kernel.getPlanAttr() && name.size() > limits::kernelNameBytes)
    return kernel.emitOpError()
           << "expected a name of at most " << limits::kernelNameBytes
           << " bytes, got one of " << name.size() << " bytes";
  if (failed(verifyText(kernel, name, "the kernel's name", false)))
    return failure();
  // Do not count the arguments of a distributed kernel (one with a geometry),
  // since it has additional arguments that units do not contain.
  if (!kernel.getGeometry() && kernel.getNumArguments() > MLAFIX_MAX_ARGS)
    return kernel.emitOpError()
           << "expected at most " << int(MLAFIX_MAX_ARGS) << " arguments, got "
           << kernel.getNumArguments();
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    if (failed(verifyText(kernel, kernel.getArgName(index),
                          "the name of argument " + Twine(index), false)))
      return failure();
    if (auto memref = dyn_cast<MemRefType>(type))
      if (failed(verifyTensor(kernel, index, memref)))
        return failure();
  }
  return success();
}

LogicalResult mlafix::verifyGridLimits(KernelOp kernel) {
  size_t extents = 0;
  if (auto grid = dyn_cast_if_present<ForallOp>(kernel.getGrid()))
    extents = grid.getExtents().size();
  if (auto grid = dyn_cast_if_present<RaggedForallOp>(kernel.getGrid()))
    extents = grid.getInner().size();
  if (extents > limits::extents)
    return kernel.getGrid()->emitOpError()
           << "expected at most " << limits::extents << " extents, got "
           << extents;
  return verifyBindable(kernel);
}
