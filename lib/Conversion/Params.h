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

/// The parameters of a distributed kernel: addresses, dynamic sizes and
/// strides, and scalars, as far as they are used. Excludes the `last` arguments
/// at the end (the range of a CPU kernel).
llvm::SmallVector<ParamAttr> collectParams(KernelOp kernel, unsigned last);

/// The LLVM type of a parameter; pointers are in `addressSpace`. Values per
/// rank are passed in memory (getTableType).
mlir::Type getParamType(KernelOp kernel, ParamAttr param,
                        unsigned addressSpace);

/// The type of the memory behind a parameter. Kind Peers: an address per rank.
/// Kind Group: this rank and the number of ranks (i32), the timeout in ns
/// (i64), the failure address, and the addresses of all workspaces. Null for
/// other kinds.
mlir::Type getTableType(ParamAttr param, unsigned addressSpace);

/// The kernel argument of a parameter other than a size or stride.
mlir::BlockArgument getParamArgument(KernelOp kernel, ParamAttr param);

/// The argument whose lines are passed for this tensor: an argument with the
/// same dims and, by a guard, the same strides; else the tensor itself.
unsigned getTableOwner(KernelOp kernel, TableLinesOp lines);

/// Returns the (argument, dim) whose size is passed for dim `dim` of `arg`: the
/// first dim with the same name in a tensor that every call passes, or else
/// (`arg`, `dim`).
std::pair<unsigned, unsigned> getSizeOwner(KernelOp kernel, unsigned arg,
                                           unsigned dim);

/// Describes the kernel, a code version, for a unit.
VariantAttr describeCodeVersion(KernelOp kernel,
                                llvm::ArrayRef<ParamAttr> params);

} // namespace mlafix

#endif // MLAFIX_CONVERSION_PARAMS_H
