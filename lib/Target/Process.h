//===- Process.h - a program that waits for its input -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_PROCESS_H
#define MLAFIX_LIB_TARGET_PROCESS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/Program.h"
#include <memory>
#include <optional>
#include <string>

namespace mlafix::target {

/// A program that starts at construction and gets its standard input later, so
/// that its start-up overlaps other work. Nothing of it touches a file system.
class Process {
public:
  struct Result {
    /// None where the host reaps every child itself (SIGCHLD is ignored, or its
    /// handler waits for all): then no status can be read.
    std::optional<int> status;
    std::string output; // of its standard output
    std::string log;    // of its standard error
  };

  /// Starts `program`, a path, with `environment` ("NAME=value") added to or in
  /// place of the caller's own.
  static llvm::Expected<std::unique_ptr<Process>>
  start(llvm::StringRef program, llvm::ArrayRef<llvm::StringRef> arguments,
        llvm::ArrayRef<std::string> environment = {});

  /// Gives it `input` and waits for its end. Once only.
  llvm::Expected<Result> finish(llvm::StringRef input);

  /// Ends a program that has not finished.
  ~Process();

private:
  class Pipe;
  class Memory;

  Process();
  enum class End { Exit, Signal, Unknown };
  /// Waits for the end; `number` is the status or the signal.
  End wait(int &number);
  llvm::Error startIn(llvm::StringRef program,
                      llvm::ArrayRef<llvm::StringRef> arguments,
                      llvm::ArrayRef<std::string> environment);

  std::string program;
  std::unique_ptr<Pipe> input;
  std::unique_ptr<Memory> output, log;
  llvm::sys::ProcessInfo process;
  bool running = false;
};

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_PROCESS_H
