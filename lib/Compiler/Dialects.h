//===- Dialects.h - the dialects in use -------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_COMPILER_DIALECTS_H
#define MLAFIX_LIB_COMPILER_DIALECTS_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlafix {

/// The dialects that kernels are written in or pass through on their way to
/// code, and their translations to LLVM IR. Made once a process.
mlir::DialectRegistry &dialectRegistry();

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_DIALECTS_H
