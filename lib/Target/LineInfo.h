//===- LineInfo.h - lines of the source in generated code -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The line information with which profilers and disassemblers show a line of
// the kernel's source beside an instruction: `.loc` in PTX, the line table of a
// cubin. It names the source's path, so units that must not differ with it are
// made without.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_LINEINFO_H
#define MLAFIX_LIB_TARGET_LINEINFO_H

#include "mlir/IR/BuiltinOps.h"

namespace mlafix::target {

/// Gives every function of `module` (LLVM dialect) a debug scope with line
/// directives only, and every operation one source position: the start of the
/// first range in its location, or line 0 (no line) if there is none.
void attachLineInfo(mlir::ModuleOp module);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_LINEINFO_H
