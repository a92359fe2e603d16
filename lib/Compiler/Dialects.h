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

/// Returns the dialects of kernels and of all lowering stages, with their
/// translations to LLVM IR. The registry is created once per process.
mlir::DialectRegistry &dialectRegistry();

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_DIALECTS_H
