//===- Declaration.cpp - a kernel before names are bound ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/Declaration.h"

#include "lib/Analysis/Signature.h"
#include "lib/Target/Json.h"
#include "lib/Transforms/MovedElements.h"

using namespace llvm;
using namespace mlafix;

Expected<json::Object> mlafix::declare(KernelOp kernel) {
  Expected<json::Value> value = target::toJson(getSignature(kernel));
  if (!value)
    return value.takeError();
  json::Object &signature = *value->getAsObject();
  signature.erase("bindings");
  signature.erase("defaults");
  json::Object names;
  json::Array &args = *signature.getArray("args");
  for (auto [index, entry] : enumerate(args))
    if (auto name =
            kernel.getArgAttrOfType<mlir::StringAttr>(index, kDTypeAttr)) {
      json::Object &arg = *entry.getAsObject();
      arg["dtype_name"] = name.getValue();
      auto memref = cast<mlir::MemRefType>(kernel.getArgumentTypes()[index]);
      if (!memref.getElementType().isInteger(1) &&
          !findUseAsNumber(kernel, name.getValue()))
        arg["dtype_moved"] = true;
    }
  // Dynamic dims and optional arguments need no binding, and are among the
  // arguments.
  for (const BindableName &name : getBindableNames(kernel))
    if (name.kind != BindableName::DynamicDim &&
        name.kind != BindableName::Presence)
      names[name.name] = name.defaultValue.empty()
                             ? json::Value(nullptr)
                             : json::Value(name.defaultValue);
  signature["names"] = std::move(names);
  return std::move(signature);
}
