//===- Remarks.h - remarks about decisions of passes ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A remark is a sentence for the author of a kernel. It says what a pass did or
// did not do, and why. mlir/IR/Remarks.h has the kinds of remarks: passed,
// missed, analysis. The text of a remark is built only if remarks are enabled.
// docs/Troubleshooting.md lists all remarks.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_REMARKS_H
#define MLAFIX_TRANSFORMS_REMARKS_H

#include "mlir/IR/Remarks.h"
#include "mlir/IR/SymbolTable.h"

namespace mlafix {

/// Returns the options of a remark called `name`. `pass` is the DEBUG_TYPE of
/// the pass. `function` is a KernelOp or the function to which it has been
/// lowered.
inline mlir::remark::RemarkOpts nameRemark(llvm::StringRef name,
                                           llvm::StringRef pass,
                                           mlir::Operation *function) {
  return mlir::remark::RemarkOpts::name(name).category(pass).function(
      mlir::SymbolTable::getSymbolName(function).getValue());
}

/// The name of a remark's metric: the bytes of each row that are moved
/// inefficiently. Remarks with the largest metrics are shown first.
inline constexpr llvm::StringLiteral kRowBytes = "bytes";

/// Returns a number with a noun, such as "1 lane" or "16 lanes".
inline std::string count(int64_t number, llvm::StringRef what) {
  return llvm::formatv("{0} {1}{2}", number, what, number == 1 ? "" : "s");
}

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_REMARKS_H
