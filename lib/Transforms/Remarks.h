//===- Remarks.h - what passes say of their decisions -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A remark is a sentence for the author of a kernel: what a pass did or did not
// do (mlir/IR/Remarks.h: passed, missed, analysis), and why. Its text is built
// only where somebody listens. docs/Troubleshooting.md lists them.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_REMARKS_H
#define MLAFIX_TRANSFORMS_REMARKS_H

#include "mlir/IR/Remarks.h"
#include "mlir/IR/SymbolTable.h"

namespace mlafix {

/// A remark called `name` by pass `pass` (its DEBUG_TYPE) on `function`, a
/// KernelOp or what it was lowered to.
inline mlir::remark::RemarkOpts nameRemark(llvm::StringRef name,
                                           llvm::StringRef pass,
                                           mlir::Operation *function) {
  return mlir::remark::RemarkOpts::name(name).category(pass).function(
      mlir::SymbolTable::getSymbolName(function).getValue());
}

/// The name of the number in a remark that has one: the bytes of each row that
/// are moved inefficiently. Remarks with the largest numbers are shown first.
inline constexpr llvm::StringLiteral kRowBytes = "bytes";

/// "1 lane", "16 lanes".
inline std::string count(int64_t number, llvm::StringRef what) {
  return llvm::formatv("{0} {1}{2}", number, what, number == 1 ? "" : "s");
}

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_REMARKS_H
