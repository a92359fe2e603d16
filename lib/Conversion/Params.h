//===- Params.h - a kernel's parameters -------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CONVERSION_PARAMS_H
#define MLAFIX_CONVERSION_PARAMS_H

#include "dialect/MlafixThread.h"

namespace mlafix {

/// Returns the parameters that a distributed kernel uses: addresses, dynamic
/// sizes and strides, and scalars. Leaves out the last `last` arguments (the
/// range of a CPU kernel).
llvm::SmallVector<ParamAttr> collectParams(KernelOp kernel, unsigned last);

/// The LLVM address space of tensors on a GPU. Tensors on a CPU are in 0.
inline constexpr unsigned kGlobalMemory = 1;

/// Returns the LLVM type of a parameter. Pointers are in `addressSpace`. Values
/// per rank are passed by a pointer to a table (see getTableType).
mlir::Type getParamType(KernelOp kernel, ParamAttr param,
                        unsigned addressSpace);

/// Returns the type of the table behind a parameter with a value per rank; null
/// for other kinds. For kind Peers, it holds an address per rank. For kind
/// Group, it holds this rank (i32), the number of ranks (i32), the timeout in
/// ns (i64), the failure address, and the addresses of all workspaces.
mlir::Type getTableType(ParamAttr param);

/// Returns the kernel argument that `param` passes. `param` must not be a size
/// or a stride.
mlir::BlockArgument getParamArgument(KernelOp kernel, ParamAttr param);

/// Returns the argument whose number of cache lines is passed for the tensor of
/// `lines`. It is an argument with the same type, dims and (by a guard)
/// strides, or the tensor itself.
unsigned getTableOwner(KernelOp kernel, TableLinesOp lines);

/// Returns the (argument, dim) whose size is passed for dim `dim` of `arg`. It
/// is the first dim with the same name in a tensor that every call passes. If
/// there is none, it is (`arg`, `dim`).
std::pair<unsigned, unsigned> getSizeOwner(KernelOp kernel, unsigned arg,
                                           unsigned dim);

/// Describes `kernel`, a code version with `params`, for a unit.
VariantAttr describeCodeVersion(KernelOp kernel,
                                llvm::ArrayRef<ParamAttr> params);

} // namespace mlafix

#endif // MLAFIX_CONVERSION_PARAMS_H
