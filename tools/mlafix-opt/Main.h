//===- Main.h - the pass driver and the compiler ----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TOOLS_MLAFIX_OPT_MAIN_H
#define MLAFIX_TOOLS_MLAFIX_OPT_MAIN_H

/// The whole of mlafix-opt; returns its exit status. A function, so that the
/// Python package has the tool as well: its libmlafix_compiler.so exports it.
extern "C" __attribute__((visibility("default"))) int
mlafix_opt_main(int argc, char **argv);

#endif // MLAFIX_TOOLS_MLAFIX_OPT_MAIN_H
