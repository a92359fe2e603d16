//===- PeerFlags.h - synchronises the ranks of a group ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CONVERSION_MLAFIXTONVVM_PEERFLAGS_H
#define MLAFIX_CONVERSION_MLAFIXTONVVM_PEERFLAGS_H

#include "dialect/MlafixThread.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlafix {

/// Lowers `mlafix_thread.wait_peers`, `mlafix_thread.release_peers` and the
/// exchange ops in `function`, whose arguments are `params`. They become stores
/// to the workspaces of all ranks (mlafix/GroupLayout.h), and loads from this
/// rank's workspace.
///
/// Flags hold the number of a collective, so they only grow. A launch reads its
/// number from the workspace, so that a graph may replay it.
void lowerPeerFlags(mlir::LLVM::LLVMFuncOp function,
                    llvm::ArrayRef<ParamAttr> params);

} // namespace mlafix

#endif // MLAFIX_CONVERSION_MLAFIXTONVVM_PEERFLAGS_H
