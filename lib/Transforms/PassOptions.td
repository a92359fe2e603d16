//===- PassOptions.td - options of several passes ----------*- tablegen -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_PASSOPTIONS
#define MLAFIX_TRANSFORMS_PASSOPTIONS

include "mlir/Pass/PassBase.td"

// The options of passes whose decisions depend on the target.
class TargetOption : Option<"target", "target", "std::string", "\"\"", "a name that mlafix-opt --list-targets prints">;
class MachineOption : ListOption<"machine", "machine", "std::string", "NAME=VALUE: numbers to replace of what lib/Machine/MachineModel.def says of the target">;

#endif // MLAFIX_TRANSFORMS_PASSOPTIONS
