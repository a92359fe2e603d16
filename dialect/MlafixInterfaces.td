//===- MlafixInterfaces.td - what ops have in common -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_INTERFACES
#define MLAFIX_INTERFACES

include "mlir/IR/OpBase.td"

def Mlafix_MemoryAccessOpInterface : OpInterface<"MemoryAccessOpInterface"> {
  let cppNamespace = "::mlafix";
  let description = [{
    Tells which tensors an op reads or writes, at which indices, and under which predicate. Every op of the dialect in a row's program
    that accesses tensors implements this interface. A grid op does not, although a ragged grid reads tensors to find its rows.
  }];
  let methods = [
    InterfaceMethod<[{
      Returns the accesses of the op, in the order of its operands: one for a row or a scalar, and two for a state in memory, since
      the payload and the lse are each an access. If the predicate is false, no access happens.
    }], "::llvm::SmallVector<::mlafix::MemoryAccess, 2>", "getAccesses">
  ];
}

#endif // MLAFIX_INTERFACES
