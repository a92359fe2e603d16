//===- Main.h - run a kernel on .npy files ----------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TOOLS_MLAFIX_RUN_MAIN_H
#define MLAFIX_TOOLS_MLAFIX_RUN_MAIN_H

/// Runs mlafix-run and returns the exit status. libmlafix_compiler.so exports
/// this function, so that the Python package can offer the tool, too.
extern "C" __attribute__((visibility("default"))) int
mlafix_run_main(int argc, char **argv);

#endif // MLAFIX_TOOLS_MLAFIX_RUN_MAIN_H
