//===- mlafix-opt.cpp - the pass driver and the compiler ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// With --emit or --target it compiles kernels; otherwise it runs passes, as
// mlir-opt does.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"

#include "lib/Compiler/Dialects.h"
#include "lib/Compiler/Pipeline.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace llvm;

/// Whether an argument is one of the compiler's own options.
static bool compiles(ArrayRef<char *> arguments) {
  return any_of(arguments, [](StringRef argument) {
    if (!argument.consume_front("--") && !argument.consume_front("-"))
      return false;
    StringRef name = argument.split('=').first;
    return name == "emit" || name == "target" || name == "specialize" ||
           name == "kernel";
  });
}

int main(int argc, char **argv) {
  // LLVM's last resort when it has no instruction for something: one line, and
  // no core file.
  install_fatal_error_handler([](void *, const char *reason, bool) {
    errs() << "error: LLVM cannot go on: " << reason << "\n";
    std::_Exit(EXIT_FAILURE);
  });
  if (compiles(ArrayRef(argv, argc).drop_front()))
    return mlafix::compileMain(argc, argv);

  mlafix::registerMlafixPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv,
      "mlafix pass driver (with --emit or --target: the compiler, see "
      "mlafix-opt --emit=unit --help)\n",
      mlafix::dialectRegistry()));
}
