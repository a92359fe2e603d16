//===- AssemblerKind.h - where PTX is assembled -----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ASSEMBLERKIND_H
#define MLAFIX_ASSEMBLERKIND_H

namespace mlafix {

/// The assembler to use for PTX. CompilerOptions.def describes each kind.
enum class AssemblerKind {
#define MLAFIX_ASSEMBLER(KIND, NAME, MEANING) KIND,
#include "mlafix/CompilerOptions.def"
};

} // namespace mlafix

#endif // MLAFIX_ASSEMBLERKIND_H
