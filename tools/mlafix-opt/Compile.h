//===- Compile.h - mlafix-opt as a compiler ---------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TOOLS_MLAFIX_OPT_COMPILE_H
#define MLAFIX_TOOLS_MLAFIX_OPT_COMPILE_H

#include "llvm/ADT/StringRef.h"
#include <memory>

namespace mlafix {

/// The options with which mlafix-opt compiles. The constructor adds them to the
/// options of the pass driver.
class CompileCommand {
public:
  CompileCommand();
  ~CompileCommand();

  /// Returns true if the parsed command line has one of these options.
  bool isGiven() const;
  /// Compiles the file `input` and writes the file `output`. "-" stands for
  /// standard input or output. Returns the exit status.
  int run(llvm::StringRef input, llvm::StringRef output) const;

private:
  struct Options;
  std::unique_ptr<Options> options;
};

} // namespace mlafix

#endif // MLAFIX_TOOLS_MLAFIX_OPT_COMPILE_H
