//===- Assembler.h - PTX to cubin -------------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// mlafix ships no assembler and needs none to build: it uses what it finds.
// A `ptxas` process (12 ms for a code version, once it is started) comes before
// nvJitLink in process (10 ms for one), because nvJitLink assembles as if more
// code were to be linked in and so spends more registers: 39 against 32 on the
// bf16 merge for sm_90, 48 against 40 on the fixup, and fewer blocks fit on a
// multiprocessor.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_ASSEMBLER_H
#define MLAFIX_LIB_TARGET_ASSEMBLER_H

#include "lib/Target/Targets.h"
#include "mlafix/AssemblerKind.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>
#include <vector>

namespace mlafix::target {

/// Advice for the kernel's author if an assembler's log tells that the kernel
/// exceeds a limit; else empty.
llvm::StringRef adviseOnLog(llvm::StringRef log);

/// The assembler is older than the chip or the PTX version; another one, or the
/// driver, may succeed.
class UnsupportedByAssembler : public llvm::ErrorInfo<UnsupportedByAssembler> {
public:
  static char ID;
  explicit UnsupportedByAssembler(std::string message)
      : message(std::move(message)) {}
  void log(llvm::raw_ostream &os) const override { os << message; }
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }

private:
  std::string message;
};

/// A running assembler. Its PTX input need not exist yet.
class Assembly {
public:
  virtual ~Assembly();
  /// Assembles `ptx`. Errors contain the assembler's own message. Call once.
  virtual llvm::Expected<std::string> finish(llvm::StringRef ptx) = 0;
};

/// Options of an assembly.
struct AssemblyOptions {
  /// The PTX has a single entry, so parallel assembly is of no use.
  bool isSingle = false;
  /// Keeps the line table of the PTX in the cubin (LineInfo.h).
  bool lineInfo = false;
  /// Assembles with `-O1`, since ptxas may compute a wrong address where
  /// optimised code spills registers (PtxasFaults.cpp).
  bool isCautious = false;
};

/// Something that assembles PTX. Lives as long as the process; safe to call
/// from several threads.
class Assembler {
public:
  virtual ~Assembler();
  /// Name and version for the manifest: "nvJitLink 13.0", "ptxas 13.0.88".
  virtual llvm::StringRef name() const = 0;
  /// Starts whatever does not need the PTX; an earlier start makes finish()
  /// faster. Destroying the result without finish() cancels it.
  virtual std::unique_ptr<Assembly> begin(const TargetSpec &target,
                                          const AssemblyOptions &options) = 0;
  /// Assembles `ptx` for `target`.
  llvm::Expected<std::string> assemble(llvm::StringRef ptx,
                                       const TargetSpec &target) {
    return begin(target, {})->finish(ptx);
  }
};

/// Returns the assemblers of `kind` on this machine, best first; empty if there
/// are none.
///
/// A named assembler takes precedence over those that are found: `ptxasPath`
/// (an option), then the program that the environment variable MLAFIX_PTXAS
/// names, then the library that MLAFIX_NVJITLINK names, then ptxas below
/// CUDA_HOME, on PATH and in PyPI wheels, then libnvJitLink below CUDA_HOME, on
/// the loader's path and in PyPI wheels. Naming something that is no assembler
/// is an error.
llvm::Expected<std::vector<Assembler *>>
findAssemblers(AssemblerKind kind, llvm::StringRef ptxasPath);

/// The message to a user for whom findAssemblers() found nothing.
llvm::StringRef noAssemblerMessage();

// Opens each of the two kinds, for findAssemblers().

/// Opens the nvJitLink library at `path` (or of that soname), once a process.
llvm::Expected<Assembler *> openNvJitLink(llvm::StringRef path);

/// Asks the program `name` (a path, or a name on PATH) for its version, once a
/// process.
llvm::Expected<Assembler *> openPtxas(llvm::StringRef name);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_ASSEMBLER_H
