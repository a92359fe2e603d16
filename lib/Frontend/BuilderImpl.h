//===- BuilderImpl.h - the state of a kernel builder ------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_FRONTEND_BUILDERIMPL_H
#define MLAFIX_LIB_FRONTEND_BUILDERIMPL_H

#include "dialect/Mlafix.h"
#include "lib/Compiler/ContextPool.h"
#include "lib/Compiler/Diagnostics.h"
#include "mlafix/KernelBuilder.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SetVector.h"

namespace mlafix {

struct KernelBuilder::Impl {
  Impl(std::string_view name, const SourceLocation &location);

  /// A region that is open, or that this builder has left.
  struct Frame {
    enum Kind { Top, Grid, Predicate, For, Then, Else } kind;
    mlir::Operation *op;
  };

  //===-- Handles -------------------------------------------------------===//

  mlir::Value get(Value value) const {
    return value.id ? values[value.id - 1].value : mlir::Value();
  }
  bool isUnsigned(Value value) const { return values[value.id - 1].isUnsigned; }
  Value wrap(mlir::Value value, bool isUnsigned = false);
  /// The result of what make() made, if anything.
  template <typename OpTy>
  std::enable_if_t<std::is_base_of_v<mlir::OpState, OpTy>, Value>
  wrap(OpTy op, bool isUnsigned = false) {
    return op ? wrap(mlir::Value(op->getResult(0)), isUnsigned) : Value();
  }
  Values wrapAll(mlir::ValueRange range);
  llvm::SmallVector<mlir::Value> getAll(const Values &list) const;
  ValueType type(Value value) const;
  std::string spell(Value value) const { return type(value).str(); }
  /// True if it is the type of a scalar or a row.
  static bool isArithmetic(const ValueType &type) {
    return type.kind == ValueType::Kind::Scalar ||
           type.kind == ValueType::Kind::Row;
  }

  //===-- Errors --------------------------------------------------------===//

  mlir::InFlightDiagnostic fail(const SourceLocation &location) {
    return mlir::emitError(at(location));
  }
  mlir::Location at(const SourceLocation &location) {
    return fromSourceLocation(context.get(), location);
  }
  /// True if anything can be added at all, before the grid or in it: an error
  /// if not.
  bool checkUnfinished(const SourceLocation &location);
  /// Says that `op` is not for the type of `value`; answers no value.
  Value failType(std::string_view op, Value value,
                 const SourceLocation &location) {
    fail(location) << "expected another type for '" << llvm::StringRef(op)
                   << "', got " << spell(value);
    return {};
  }
  /// Adds the bounds of an argument's dims to the kernel's; false, and an
  /// error, where another argument gives one of them another bound.
  bool setBounds(const TensorArgument &argument,
                 const SourceLocation &location);
  /// True if `name` is one that an argument may have: an error if not.
  bool checkName(const std::string &name, const SourceLocation &location);
  /// True if a body can be added to at all: an error if not.
  bool checkOpen(const SourceLocation &location, bool inGrid = true);
  /// True if `value` exists where the builder is: an error if not.
  bool checkVisible(Value value, const char *what,
                    const SourceLocation &location);
  bool checkVisible(const Values &list, const char *what,
                    const SourceLocation &location);
  /// checkVisible, and whether it is a condition.
  bool checkCondition(Value value, const char *what,
                      const SourceLocation &location);
  /// True if `value` is a tensor argument: an error if not.
  bool checkTensor(Value value, const char *what,
                   const SourceLocation &location);

  //===-- Operations ----------------------------------------------------===//

  /// Makes an operation and verifies it, unless it has regions. Null, and
  /// without it, if it is wrong.
  template <typename OpTy, typename... Args>
  OpTy make(const SourceLocation &location, Args &&...args) {
    OpTy op = OpTy::create(builder, at(location), std::forward<Args>(args)...);
    if (op->getNumRegions() != 0 || succeeded(mlir::verify(op, false)))
      return op;
    op->erase();
    return {};
  }
  Value addArgument(mlir::Type type, const std::string &name,
                    const mlir::NamedAttrList &attributes,
                    const SourceLocation &location);
  mlir::Value constantLike(mlir::Type type, int64_t value,
                           const SourceLocation &location);
  /// Ends the innermost region, which must be of one of `kinds`.
  bool closing(llvm::ArrayRef<Frame::Kind> kinds, const char *what,
               const SourceLocation &location);

  /// The type of a result that is one of two values: their own, or of states of
  /// which one may hold a sink, that one's; null for others.
  static mlir::Type joinTypes(mlir::Type a, mlir::Type b);
  /// `value` as one of `type`, which is its own or joined from it.
  mlir::Value widen(mlir::Value value, mlir::Type type, mlir::Location loc);

  //===-- Memory --------------------------------------------------------===//

  unsigned rank(Value tensor) const;
  /// The dim that rows of `tensor` lie along; null, and an error, if it is none
  /// that has a name.
  DimAttr rowDim(Value tensor, const SourceLocation &location);
  /// The dim that arguments call so: its size, where that is fixed. A type may
  /// spell the size, too.
  DimAttr dimOf(std::string_view name);
  /// Rows of `tensor` are moved. Their elements lie one behind another, but for
  /// rows of one element a group, of which settleGroupRows() decides, unless it
  /// is a slice that is moved.
  void useRows(Value tensor, bool isSlice = false);
  /// At the end: rows along the groups of a product are of one element a group
  /// where the kernel computes with rows of the product, and others' elements
  /// lie one behind another.
  void settleGroupRows();
  void refreshSignature();

  ContextLease context;
  std::vector<Diagnostic> diagnostics;
  DiagnosticCollector collector;
  mlir::OpBuilder builder;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  KernelOp kernel;
  bool finished = false;
  llvm::SetVector<mlir::Value> groupRows; ///< see settleGroupRows()

  struct Handle {
    mlir::Value value;
    bool isUnsigned; // MLIR's integers do not say
  };
  std::vector<Handle> values;
  std::vector<Frame> frames;
  /// Where dims go: before the grid.
  mlir::Operation *grid = nullptr;
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, mlir::Value> dims;
  llvm::SmallVector<mlir::Attribute> argNames;
  llvm::SmallVector<mlir::Attribute> argAttrs;
};

/// The base of an lse by its name; an error if there is none.
BaseAttr parseBase(KernelBuilder::Impl &impl, std::string_view text,
                   const SourceLocation &location);

} // namespace mlafix

#endif // MLAFIX_LIB_FRONTEND_BUILDERIMPL_H
