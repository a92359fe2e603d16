//===- RemarkMessages.cpp - remarks of passes as messages -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/RemarkMessages.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Remarks.h"

using namespace mlafix;

namespace {
class Streamer : public mlir::remark::detail::MLIRRemarkStreamerBase {
public:
  explicit Streamer(std::string where) : where(std::move(where)) {}

  void streamOptimizationRemark(
      const mlir::remark::detail::Remark &remark) override {
    mlir::InFlightDiagnostic message = mlir::emitRemark(remark.getLocation());
    message << remark.getFunction() << " on " << where << ": ";
    for (const auto &text : remark.getArgs())
      message << text.val;
    message << " [" << remark.getRemarkTypeString().lower() << ": "
            << remark.getRemarkName() << "]";
  }

private:
  std::string where;
};
} // namespace

RemarkMessages::RemarkMessages(mlir::MLIRContext &context, std::string where)
    : context(context) {
  mlir::remark::RemarkCategories all;
  all.passed = all.missed = all.analysis = all.failed = ".*";
  // Fails where the context has an engine already.
  [[maybe_unused]] auto enabled = mlir::remark::enableOptimizationRemarks(
      context, std::make_unique<Streamer>(std::move(where)),
      std::make_unique<mlir::remark::RemarkEmittingPolicyAll>(), all);
  assert(succeeded(enabled) && "expected a context without a remark engine");
}

RemarkMessages::~RemarkMessages() { context.setRemarkEngine(nullptr); }
