//===- LineInfo.h - lines of the source in generated code -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Line information lets profilers and disassemblers show the kernel's source
// line beside an instruction: `.loc` in PTX, the line table of a cubin. It
// contains the source's path, so units whose bytes must not depend on that are
// made without it.
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
