//===- Kernels.h - Parses kernels for tests ---------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TEST_UNITTESTS_ANALYSIS_KERNELS_H
#define MLAFIX_TEST_UNITTESTS_ANALYSIS_KERNELS_H

#include "dialect/Mlafix.h"
#include "lib/Compiler/Dialects.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include <string>

/// A kernel @k with the given arguments and body. Its grid runs over n, the
/// first dim of the first argument. The body can use %c0, %c1, %n, the grid
/// index %t, and the types !vec (f32), !ints (i32), !rows (f32, rows of dim
/// "D") and !state.
class Kernel {
public:
  Kernel(const std::string &arguments, const std::string &body)
      : context(mlafix::dialectRegistry()),
        module(mlir::parseSourceString<mlir::ModuleOp>(text(arguments, body),
                                                       &context)) {}

  mlafix::KernelOp operator*() {
    return *module->getOps<mlafix::KernelOp>().begin();
  }

private:
  static std::string text(const std::string &arguments,
                          const std::string &body) {
    return R"(
      !vec = memref<?xf32, strided<[?], offset: ?>>
      !ints = memref<?xi32, strided<[?], offset: ?>>
      !rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
      !state = !mlafix.state<"D", e>
      mlafix.kernel @k(%x: !vec {mlafix.dims = ["n"], mlafix.access = "update"})" +
           arguments + R"() {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %n = memref.dim %x, %c0 : !vec
        mlafix.forall (%t) in (%n) {
        )" +
           body + "}\n}\n";
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

#endif // MLAFIX_TEST_UNITTESTS_ANALYSIS_KERNELS_H
