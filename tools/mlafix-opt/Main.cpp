//===- Main.cpp - the pass driver and the compiler ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// mlafix-opt compiles kernels if it gets an option of the compiler, such as
// --emit or --target. Otherwise it runs passes, as mlir-opt does.
//
//===----------------------------------------------------------------------===//

#include "Main.h"

#include "Compile.h"

#include "lib/Compiler/Dialects.h"
#include "lib/Compiler/Pipeline.h"
#include "lib/Compiler/TextCheck.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace llvm;

/// Returns true if the parsed command line names passes to run.
static bool arePassesGiven() {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::PassManager passes(&context);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  return failed(config.setupPassPipeline(passes)) || !passes.empty();
}

/// Returns true if the parser can read `text` within its limits of stack and
/// time; otherwise reports an error.
static bool isReadable(const MemoryBuffer &text) {
  std::optional<mlafix::TextError> error;
  if (!mlir::isBytecode(text.getMemBufferRef()))
    error = mlafix::checkText(text.getBuffer());
  if (!error)
    return true;
  SourceMgr sources;
  sources.AddNewSourceBuffer(
      MemoryBuffer::getMemBuffer(text.getMemBufferRef(), false), SMLoc());
  auto [line, column] = sources.getLineAndColumn(
      SMLoc::getFromPointer(text.getBufferStart() + error->offset));
  errs() << text.getBufferIdentifier() << ":" << line << ":" << column
         << ": error: " << error->message << "\n";
  return false;
}

/// Runs the passes of the command line, as mlir-opt does.
static mlir::LogicalResult runPasses(int argc, char **argv, StringRef input,
                                     StringRef output,
                                     mlir::DialectRegistry &registry) {
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::MlirOptMain(argc, argv, input, output, registry);
  std::string error;
  std::unique_ptr<MemoryBuffer> text = mlir::openInputFile(input, &error);
  StringRef plain = text ? mlafix::dropByteOrderMark(text->getBuffer()) : "";
  if (text && plain.size() != text->getBufferSize())
    text = MemoryBuffer::getMemBufferCopy(plain, text->getBufferIdentifier());
  std::unique_ptr<ToolOutputFile> file =
      text && isReadable(*text) ? mlir::openOutputFile(output, &error)
                                : nullptr;
  if (!error.empty())
    errs() << "error: " << error << "\n";
  if (!file ||
      failed(mlir::MlirOptMain(file->os(), std::move(text), registry, config)))
    return mlir::failure();
  file->keep();
  return mlir::success();
}

/// Hides the thousand options of LLVM's own libraries. --help-hidden shows
/// them.
static void hideLibraryOptions() {
  for (auto &entry : cl::getRegisteredOptions())
    if (is_contained(entry.second->Categories, &cl::getGeneralCategory()))
      entry.second->setHiddenFlag(cl::Hidden);
}

#ifndef NDEBUG
/// An option that does the same as LLVM's --debug-only, which LLVM lacks if it
/// was built without assertions.
static cl::list<std::string> debugged(
    "mlafix-debug", cl::CommaSeparated, cl::value_desc("pass,…"),
    cl::desc("Print what these passes note for the compiler's authors (LDBG)"));

static void enableDebugOutput() {
  SmallVector<const char *> types;
  for (const std::string &type : debugged)
    types.push_back(type.c_str());
  DebugFlag = !types.empty();
  if (DebugFlag)
    setCurrentDebugTypes(types.data(), types.size());
}
#endif

int mlafix_opt_main(int argc, char **argv) {
  // LLVM calls this handler before it would abort. The handler prints one line
  // and exits, so that there is no core dump.
  install_fatal_error_handler([](void *, const char *reason, bool) {
    errs() << "error: LLVM cannot go on: " << reason << "\n";
    std::_Exit(EXIT_FAILURE);
  });
  hideLibraryOptions();
  mlafix::registerMlafixPasses();
  mlir::DialectRegistry &registry = mlafix::dialectRegistry();
  mlafix::CompileCommand compiler;
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "mlafix compiler and pass driver\n", registry);
#ifndef NDEBUG
  enableDebugOutput();
#endif
  if (!compiler.isGiven())
    return mlir::asMainReturnCode(
        runPasses(argc, argv, input, output, registry));
  if (arePassesGiven()) {
    errs() << "error: expected options of the compiler (--emit, --target, …) "
              "or passes, got both\n";
    return EXIT_FAILURE;
  }
  return compiler.run(input, output);
}
