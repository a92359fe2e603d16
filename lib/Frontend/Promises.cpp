//===- Promises.cpp - what an author promises, and prints -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Frontend/BuilderImpl.h"

using namespace mlir;
using namespace mlafix;

bool KernelBuilder::proveBounds(const SourceLocation &location) {
  if (!impl->checkOpen(location, /*inGrid=*/false))
    return false;
  impl->kernel.setBounds("prove");
  return true;
}

bool KernelBuilder::allow(std::string_view kind,
                          const SourceLocation &location) {
  if (!impl->checkOpen(location, /*inGrid=*/false))
    return false;
  SmallVector<StringRef> kinds;
  if (std::optional<ArrayAttr> known = impl->kernel.getAllow())
    for (StringAttr one : known->getAsRange<StringAttr>())
      kinds.push_back(one.getValue());
  kinds.push_back(kind);
  impl->kernel.setAllowAttr(
      mlir::Builder(impl->kernel.getContext()).getStrArrayAttr(kinds));
  return true;
}

bool KernelBuilder::distinct(Value tensor, const SourceLocation &location) {
  return impl->checkOpen(location, /*inGrid=*/false) &&
         impl->checkTensor(tensor, "table", location) &&
         impl->make<DistinctOp>(location, impl->get(tensor));
}

bool KernelBuilder::assume(Value condition, std::string_view text,
                           const SourceLocation &location) {
  return impl->checkUnfinished(location) &&
         impl->checkCondition(condition, "assumption", location) &&
         impl->make<AssumeOp>(location, impl->get(condition),
                              llvm::StringRef(text));
}

bool KernelBuilder::print(std::string_view text, const Values &values,
                          const SourceLocation &location) {
  if (!impl->checkOpen(location) ||
      !impl->checkVisible(values, "value", location))
    return false;
  for (Value value : values) {
    ValueType::Kind kind = impl->type(value).kind;
    if (kind != ValueType::Kind::Scalar && kind != ValueType::Kind::State) {
      impl->fail(location) << "expected scalars and states to print, got "
                           << impl->spell(value);
      return false;
    }
  }
  return bool(impl->make<PrintOp>(location, llvm::StringRef(text),
                                  impl->getAll(values)));
}
