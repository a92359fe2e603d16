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

/// The compiler's options, registered beside those of the pass driver.
class CompileCommand {
public:
  CompileCommand();
  ~CompileCommand();

  /// True if the parsed command line has one of the options.
  bool isGiven() const;
  /// Compiles the file `input` to the file `output` ("-": standard streams).
  /// Returns the process's exit status.
  int run(llvm::StringRef input, llvm::StringRef output) const;

private:
  struct Options;
  std::unique_ptr<Options> options;
};

} // namespace mlafix

#endif // MLAFIX_TOOLS_MLAFIX_OPT_COMPILE_H
