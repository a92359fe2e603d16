//===- Dialects.cpp - the dialects in use ---------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/Dialects.h"

#include "dialect/MlafixThread.h"
#include "lib/Target/LLVMIR.h"
#include "lib/Transforms/ThreadOps.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

mlir::DialectRegistry &mlafix::dialectRegistry() {
  // The registry does not change once it is created, so threads may share it.
  static mlir::DialectRegistry &registry = *[] {
    auto *made = new mlir::DialectRegistry;
    made->insert<MlafixDialect, MlafixThreadDialect, mlir::LLVM::LLVMDialect,
                 mlir::NVVM::NVVMDialect, mlir::arith::ArithDialect,
                 mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
                 mlir::gpu::GPUDialect, mlir::index::IndexDialect,
                 mlir::math::MathDialect, mlir::memref::MemRefDialect,
                 mlir::scf::SCFDialect, mlir::tensor::TensorDialect,
                 mlir::ub::UBDialect, mlir::vector::VectorDialect>();
    mlir::arith::registerConvertArithToLLVMInterface(*made);
    mlir::cf::registerConvertControlFlowToLLVMInterface(*made);
    mlir::registerConvertMathToLLVMInterface(*made);
    mlir::ub::registerConvertUBToLLVMInterface(*made);
    mlir::vector::registerConvertVectorToLLVMInterface(*made);
    target::registerTranslations(*made);
    return made;
  }();
  return registry;
}
