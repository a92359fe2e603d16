//===- Target.cpp - the target of a module --------------------------------===//
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

static ModuleOp getModule(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  return module ? module : op->getParentOfType<ModuleOp>();
}

StringRef mlafix::getTarget(Operation *op) {
  ModuleOp module = getModule(op);
  auto target =
      module ? module->getAttrOfType<StringAttr>(kTargetAttr) : StringAttr();
  return target ? target.getValue() : StringRef();
}

MachineModel mlafix::getMachine(Operation *op) {
  ModuleOp module = getModule(op);
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
