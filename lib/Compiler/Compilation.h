//===- Compilation.h - one call of the compiler -----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_COMPILER_COMPILATION_H
#define MLAFIX_LIB_COMPILER_COMPILATION_H

#include "lib/Compiler/CodeGen.h"
#include "lib/Compiler/ContextPool.h"
#include "lib/Compiler/TextCheck.h"
#include "mlafix/Compiler.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

namespace mlafix {

/// True if the output of `emit` does not depend on the target.
inline bool needsNoTarget(Emit emit) { return emit < Emit::Layout; }

/// True if `emit` produces one output for all kernels and bindings together.
inline bool isOfUnit(Emit emit) {
  return emit == Emit::Unit || emit == Emit::Header || emit == Emit::TvmFfi;
}

inline llvm::StringRef kernelName(mlir::Operation *kernel) {
  return mlir::SymbolTable::getSymbolName(kernel).getValue();
}

/// The state of one call of compile(): its context, source and results.
class Compilation {
public:
  Compilation(llvm::StringRef source, llvm::StringRef name,
              const CompileOptions &options)
      : options(options), diagnosticStream(result.diagnostics) {
    sources.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBufferCopy(dropByteOrderMark(source), name),
        llvm::SMLoc());
  }

  CompileResult run();

private:
  llvm::LogicalResult compileSource();
  llvm::LogicalResult writeUnit();
  llvm::LogicalResult writeHostText();
  llvm::LogicalResult checkSourceText();
  llvm::LogicalResult checkBindings();
  llvm::LogicalResult selectTargets();
  llvm::LogicalResult selectAssemblers();
  llvm::LogicalResult selectKernels();
  llvm::LogicalResult checkSingle();
  llvm::LogicalResult compileKernel(mlir::Operation *kernel,
                                    const Bindings &bindings);
  llvm::LogicalResult writeAnalysis(mlir::ModuleOp isolated);
  llvm::LogicalResult lower(mlir::ModuleOp module, const Bindings &bindings,
                            llvm::StringRef target);
  void applyPassOptions(mlir::PassManager &passes) const;
  std::string nameTarget(const Bindings &bindings,
                         llvm::StringRef target) const;
  llvm::LogicalResult addToUnit(mlir::Operation *kernel,
                                std::vector<target::UnitKernel> entry);
  /// Appends `module` to the output, in MLIR's syntax.
  void print(mlir::ModuleOp module);
  llvm::LogicalResult describe();
  llvm::LogicalResult describeForHost(mlir::Operation *kernel,
                                      const Bindings &bindings);
  llvm::LogicalResult generate(mlir::ModuleOp module, const Bindings &bindings,
                               const target::TargetSpec &target,
                               std::vector<target::UnitKernel> &kernels);

  /// Reports an error that has no location in the source. Returns failure.
  llvm::LogicalResult fail(const llvm::Twine &message,
                           Diagnostic::Kind kind = Diagnostic::Kind::Other,
                           std::string subject = {}) {
    diagnosticStream << "error: " << message << "\n";
    result.messages.push_back({Diagnostic::Severity::Error,
                               message.str(),
                               {},
                               {},
                               kind,
                               std::move(subject)});
    return llvm::failure();
  }

  const CompileOptions &options;
  ContextLease context;
  llvm::SourceMgr sources;
  CompileResult result;
  llvm::raw_string_ostream diagnosticStream;
  Stopwatch stopwatch;

  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<const target::TargetSpec *> targets;
  Assemblers assemblers;
  std::vector<mlir::Operation *> kernels;
  std::vector<target::UnitKernel> unitKernels;
  llvm::StringSet<> unitNames; ///< name and bindings of each kernel in the unit
};

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_COMPILATION_H
