//===- MlafixOpBase.td - what every file of operations needs -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_OP_BASE
#define MLAFIX_OP_BASE

include "dialect/MlafixInterfaces.td"
include "dialect/MlafixTypes.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/LoopLikeInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

class Mlafix_Op<string mnemonic, list<Trait> traits = []> : Op<Mlafix_Dialect, mnemonic, traits>;

#endif // MLAFIX_OP_BASE
