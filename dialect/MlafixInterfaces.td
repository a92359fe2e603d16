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
    An op of a row's program that reads or writes tensors: which, where, and under which predicate. Every such op of the dialect
    implements it; what a grid reads to find its rows is no access of a row.
  }];
  let methods = [
    InterfaceMethod<[{
      The accesses of the op, in the order of its operands: one for a row or a scalar, two for a state in memory, whose payload and
      lse are each an access. A predicate that is false prevents all of them.
    }], "::llvm::SmallVector<::mlafix::MemoryAccess, 2>", "getAccesses">
  ];
}

#endif // MLAFIX_INTERFACES
