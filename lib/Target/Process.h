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

/// A child process that starts before its input exists, so that its startup
/// overlaps other work. finish() writes the input to its standard input. Input,
/// output and log use no files on disk.
class Process {
public:
  struct Result {
    /// The exit status. It is nullopt if the host program has already waited
    /// for the child: because it ignores SIGCHLD, or has a handler that waits.
    std::optional<int> status;
    std::string output; // text of standard output
    std::string log;    // text of standard error
  };

  /// Starts the program at the path `program`. The entries "NAME=value" of
  /// `environment` are added to the caller's environment and override it.
  static llvm::Expected<std::unique_ptr<Process>>
  start(llvm::StringRef program, llvm::ArrayRef<llvm::StringRef> arguments,
        llvm::ArrayRef<std::string> environment = {});

  /// Passes `input` to standard input and waits until the program ends. Call it
  /// only once.
  llvm::Expected<Result> finish(llvm::StringRef input);

  /// Kills the program if it is still running.
  ~Process();

private:
  class Pipe;
  class Memory;

  Process();
  enum class End { Exit, Signal, Unknown };
  /// Waits for the program to end. Sets `number` to the exit status or the
  /// signal number.
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
