//===- PeerFlags.h - ranks that wait for each other -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CONVERSION_MLAFIXTONVVM_PEERFLAGS_H
#define MLAFIX_CONVERSION_MLAFIXTONVVM_PEERFLAGS_H

#include "dialect/RowProgram.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlafix {

/// Replaces `mlafix.wait_peers` and `mlafix.release_peers` in `function`, whose
/// arguments are `params`, by stores to the ranks' workspaces
/// (mlafix/GroupLayout.h) and loads from this rank's.
///
/// Flags count collectives and only grow. A launch reads its number from the
/// workspace, so that a graph may replay it.
void lowerPeerFlags(mlir::LLVM::LLVMFuncOp function,
                    llvm::ArrayRef<ParamAttr> params, unsigned addressSpace);

} // namespace mlafix

#endif // MLAFIX_CONVERSION_MLAFIXTONVVM_PEERFLAGS_H
