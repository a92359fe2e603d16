//===- LineInfo.h - lines of the source in generated code -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Line information lets profilers and disassemblers show the source line of an
// instruction. PTX has it as `.loc` directives, and a cubin as a line table.
// Line information contains the path of the source, so it is left out of units
// whose bytes must not depend on that path.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_LINEINFO_H
#define MLAFIX_LIB_TARGET_LINEINFO_H

#include "mlir/IR/BuiltinOps.h"

namespace mlafix::target {

/// Gives each function of `module` (LLVM dialect) a debug scope with line
/// directives only, and each operation one source position. The position is the
/// start of the first file range in the operation's location, or line 0
/// (unknown) if it has none.
void attachLineInfo(mlir::ModuleOp module);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_LINEINFO_H
