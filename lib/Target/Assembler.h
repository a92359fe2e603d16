//===- Assembler.h - PTX to cubin -------------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// mlafix ships no assembler and needs none to build: it uses those that it
// finds on the machine. A `ptxas` process is preferred to the nvJitLink
// library, because nvJitLink assembles for further linking and therefore uses
// more registers, so fewer blocks fit on a multiprocessor. For sm_90, nvJitLink
// uses 39 registers instead of 32 for a merge of bf16 rows, and 48 instead of
// 40 for fixup_zero_kv_rows. Once ptxas has started, it takes about as long for
// a code version as nvJitLink (12 ms and 10 ms).
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

/// Returns advice for the kernel's author if `log`, an assembler's messages,
/// shows that the kernel exceeds a hardware limit. Otherwise returns "".
llvm::StringRef adviseOnLog(llvm::StringRef log);

/// Reports that the assembler is too old for the GPU or the PTX version.
/// Another assembler, or the driver, may still accept the PTX.
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

/// An assembler run that has started. Its PTX input may be generated later.
class Assembly {
public:
  virtual ~Assembly();
  /// Assembles `ptx` and returns the cubin. An error contains the assembler's
  /// own message. Call it only once.
  virtual llvm::Expected<std::string> finish(llvm::StringRef ptx) = 0;
};

/// Options of one assembler run.
struct AssemblyOptions {
  /// True if the PTX has only one entry, so that ptxas need not use several
  /// threads.
  bool isSingle = false;
  /// If true, keeps the line table of the PTX in the cubin (LineInfo.cpp).
  bool lineInfo = false;
  /// If true, assembles with `-O1`, because at its default level ptxas may
  /// compute a wrong address when it spills registers (PtxasFaults.cpp).
  bool isCautious = false;
};

/// A program or library that assembles PTX. It is never destroyed and may be
/// used by several threads.
class Assembler {
public:
  virtual ~Assembler();
  /// Returns the name and version for the manifest, for example "nvJitLink
  /// 13.0" or "ptxas 13.0.88".
  virtual llvm::StringRef name() const = 0;
  /// Does all work that does not need the PTX, for example starting the
  /// process. Calling it early makes finish() faster. Destroying the result
  /// without finish() cancels the run.
  virtual std::unique_ptr<Assembly> begin(const TargetSpec &target,
                                          const AssemblyOptions &options) = 0;
  /// Assembles `ptx` for `target` and returns the cubin.
  llvm::Expected<std::string> assemble(llvm::StringRef ptx,
                                       const TargetSpec &target) {
    return begin(target, {})->finish(ptx);
  }
};

/// Returns the assemblers of `kind` on this machine, best first. The list is
/// empty if there are none.
///
/// An assembler that the user names is used instead of any that a search would
/// find. The user can name it by `ptxasPath` (the option --ptxas), or by an
/// environment variable: MLAFIX_PTXAS or MLAFIX_NVJITLINK. The search looks for
/// ptxas below CUDA_HOME, on PATH and in PyPI wheels. Then it looks for
/// libnvJitLink below CUDA_HOME, on the loader's path and in PyPI wheels.
/// Returns an error if the user names something that is not an assembler.
llvm::Expected<std::vector<Assembler *>>
findAssemblers(AssemblerKind kind, llvm::StringRef ptxasPath);

/// Returns the message for a user on whose machine findAssemblers() found
/// nothing.
llvm::StringRef noAssemblerMessage();

// findAssemblers() opens assemblers with these two functions.

/// Opens the nvJitLink library at `path`, which may also be its soname. Each
/// path is opened once per process.
llvm::Expected<Assembler *> openNvJitLink(llvm::StringRef path);

/// Returns an assembler that runs the program `name` (a path, or a name on
/// PATH). Asks the program for its version, once per process, and fails if the
/// answer is not that of ptxas.
llvm::Expected<Assembler *> openPtxas(llvm::StringRef name);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_ASSEMBLER_H
