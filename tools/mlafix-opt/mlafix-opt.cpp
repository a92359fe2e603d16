//===- mlafix-opt.cpp - the pass driver and the compiler ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One set of options: where one of the compiler's is given (--emit, --target,
// …), kernels are compiled; otherwise passes run, as in mlir-opt.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"

#include "lib/Compiler/Dialects.h"
#include "lib/Compiler/Pipeline.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace llvm;

/// Whether the command line, which has been parsed, names passes to run.
static bool arePassesGiven() {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::PassManager passes(&context);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  return failed(config.setupPassPipeline(passes)) || !passes.empty();
}

/// Leaves the options of LLVM's own libraries, a thousand, to --help-hidden.
static void hideLibraryOptions() {
  for (auto &entry : cl::getRegisteredOptions())
    if (is_contained(entry.second->Categories, &cl::getGeneralCategory()))
      entry.second->setHiddenFlag(cl::Hidden);
}

#ifndef NDEBUG
/// What LLVM's own --debug-only does, which an LLVM without assertions lacks.
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

int main(int argc, char **argv) {
  // LLVM's last resort when it has no instruction for something: one line, and
  // no core file.
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
        mlir::MlirOptMain(argc, argv, input, output, registry));
  if (arePassesGiven()) {
    errs() << "error: expected options of the compiler (--emit, --target, …) "
              "or passes, got both\n";
    return EXIT_FAILURE;
  }
  return compiler.run(input, output);
}
