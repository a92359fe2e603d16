//===- Compile.h - mlafix-opt as a compiler ---------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TOOLS_MLAFIX_OPT_COMPILE_H
#define MLAFIX_TOOLS_MLAFIX_OPT_COMPILE_H

namespace mlafix {

/// Compiles as the command line asks; returns the process's exit status.
int compileMain(int argc, char **argv);

} // namespace mlafix

#endif // MLAFIX_TOOLS_MLAFIX_OPT_COMPILE_H
