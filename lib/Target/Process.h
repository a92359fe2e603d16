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

/// A child process that starts at construction and gets its standard input
/// later, so that its startup overlaps other work. It uses no files on disk.
class Process {
public:
  struct Result {
    /// nullopt if the host reaps all children (SIGCHLD ignored, or a handler
    /// that waits for all): the status is then unavailable.
    std::optional<int> status;
    std::string output; // from standard output
    std::string log;    // from standard error
  };

  /// Starts `program`, a path. `environment` ("NAME=value") extends and
  /// overrides the caller's.
  static llvm::Expected<std::unique_ptr<Process>>
  start(llvm::StringRef program, llvm::ArrayRef<llvm::StringRef> arguments,
        llvm::ArrayRef<std::string> environment = {});

  /// Passes `input` and waits for the end. Call once.
  llvm::Expected<Result> finish(llvm::StringRef input);

  /// Kills the program if it has not finished.
  ~Process();

private:
  class Pipe;
  class Memory;

  Process();
  enum class End { Exit, Signal, Unknown };
  /// Waits for the end; sets `number` to the exit status or the signal.
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
