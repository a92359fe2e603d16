//===- Promises.cpp - mlafix.assume, mlafix.distinct, mlafix.print --------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/LaunchChecks.h"
#include "dialect/Origin.h"

#include "mlafix/UnitLimits.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlafix;

LogicalResult AssumeOp::verify() {
  StringRef text = getText();
  if (text.empty() || !limits::isText(text) || !llvm::json::isUTF8(text))
    return emitOpError() << "expected a text of 1 to " << limits::nameBytes
                         << " bytes in UTF-8 without control characters, got "
                         << getTextAttr();
  if (isLaunchCheck(*this) && !buildLaunchCheck(*this))
    return emitOpError()
           << "expected a condition of integer arguments and sizes, in at most "
           << limits::checkSteps
           << " steps, since it is before the grid, got one that a launch "
              "cannot compute";
  return success();
}

LogicalResult AssumeOp::canonicalize(AssumeOp op, PatternRewriter &rewriter) {
  if (!matchPattern(op.getCondition(), m_One()))
    return rewriter.notifyMatchFailure(op, "no condition that is always true");
  rewriter.eraseOp(op);
  return success();
}

LogicalResult DistinctOp::verify() {
  BlockArgument argument = getKernelArgument(getTable());
  if (!argument)
    return emitOpError() << "expected an argument of the kernel, got "
                         << describeOrigin(getTable());
  KernelOp kernel = getKernelOf(argument);
  StringRef access = kernel.getArgAccess(argument.getArgNumber());
  Type element = cast<MemRefType>(getTable().getType()).getElementType();
  if (access != "read")
    return emitOpError() << "expected a table that is read, got access \""
                         << access << "\"";
  if (!element.isInteger() || element.isInteger(1))
    return emitOpError() << "expected a table of integers, got " << element;
  return success();
}

LogicalResult PrintOp::verify() {
  size_t slots = getText().count("{}");
  if (slots != getValues().size())
    return emitOpError() << "expected a {} in the text for each value, got "
                         << slots << " for " << getValues().size() << " values";
  return success();
}
