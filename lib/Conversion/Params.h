//===- Params.h - what a launch passes to a kernel --------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CONVERSION_PARAMS_H
#define MLAFIX_CONVERSION_PARAMS_H

#include "dialect/RowProgram.h"

namespace mlafix {

/// The parameters that a distributed kernel needs: addresses, sizes and strides
/// that are dynamic and used, scalars that are used. `last` arguments at the
/// end, the range of a CPU kernel, are not among them.
llvm::SmallVector<ParamAttr> collectParams(KernelOp kernel, unsigned last);

/// The type a parameter has in LLVM; pointers are in `addressSpace`. What is
/// for ranks is passed in memory, as `getTableType` says.
mlir::Type getParamType(KernelOp kernel, ParamAttr param,
                        unsigned addressSpace);

/// The memory that a parameter of kind Peers points to: an address for each
/// rank; of kind Group: this rank, their number (i32), the time-out in ns
/// (i64), the address for a failure, and the addresses of the ranks'
/// workspaces. Null for other kinds.
mlir::Type getTableType(ParamAttr param, unsigned addressSpace);

/// The argument of the kernel that a parameter other than a size or a stride
/// stands for.
mlir::BlockArgument getParamArgument(KernelOp kernel, ParamAttr param);

/// The argument whose lines are passed for those of a tensor: one of the same
/// dims and, by a guard, the same strides, or its own.
unsigned getTableOwner(KernelOp kernel, TableLinesOp lines);

/// The argument and its dim whose size is passed for that of dim `dim` of
/// argument `arg`: the first of that name, or its own.
std::pair<unsigned, unsigned> getSizeOwner(KernelOp kernel, unsigned arg,
                                           unsigned dim);

/// The description of the kernel, a code version, in a unit.
VariantAttr describeCodeVersion(KernelOp kernel,
                                llvm::ArrayRef<ParamAttr> params);

} // namespace mlafix

#endif // MLAFIX_CONVERSION_PARAMS_H
