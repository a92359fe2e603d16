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

  /// An open region, or one that this builder has left.
  struct Frame {
    enum Kind { Top, Grid, Predicate, For, Then, Else } kind;
    mlir::Operation *op;

    /// The region's name in messages.
    llvm::StringRef name() const {
      constexpr llvm::StringLiteral names[] = {"the kernel",    "the grid",
                                               "the predicate", "the loop",
                                               "the branch",    "the branch"};
      return names[kind];
    }
  };

  //===-- Handles -------------------------------------------------------===//

  mlir::Value get(Value value) const {
    return value.id ? values[value.id - 1].value : mlir::Value();
  }
  bool isUnsigned(Value value) const { return values[value.id - 1].isUnsigned; }
  Value wrap(mlir::Value value, bool isUnsigned = false);
  /// The result of the op that make() created; no value if it failed.
  template <typename OpTy>
  std::enable_if_t<std::is_base_of_v<mlir::OpState, OpTy>, Value>
  wrap(OpTy op, bool isUnsigned = false) {
    return op ? wrap(mlir::Value(op->getResult(0)), isUnsigned) : Value();
  }
  Values wrapAll(mlir::ValueRange range);
  llvm::SmallVector<mlir::Value> getAll(const Values &list) const;
  ValueType type(Value value) const;
  /// The type of a state, a row or a scalar.
  static ValueType typeOf(mlir::Type type);
  std::string spell(Value value) const { return type(value).str(); }
  /// True for scalars and rows.
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
  /// True if the kernel is not finished; otherwise reports an error.
  bool checkUnfinished(const SourceLocation &location);
  /// Reports that `op` takes `expected` and not the type of `value`; returns no
  /// value.
  Value failType(std::string_view op, llvm::StringRef expected, Value value,
                 const SourceLocation &location) {
    fail(location) << "expected " << expected << " for '" << llvm::StringRef(op)
                   << "', got " << spell(value);
    return {};
  }
  /// Adds the bounds of an argument's dims to the kernel's. Reports an error
  /// and returns false if another argument bounds a dim differently.
  bool setBounds(const TensorArgument &argument,
                 const SourceLocation &location);
  /// True if `name` is a valid argument name; otherwise reports an error.
  bool checkName(const std::string &name, const SourceLocation &location);
  /// True if ops can be added at this point; otherwise reports an error.
  bool checkOpen(const SourceLocation &location, bool inGrid = true);
  /// True if `value` is visible at this point; otherwise reports an error.
  bool checkVisible(Value value, const char *what,
                    const SourceLocation &location);
  bool checkVisible(const Values &list, const char *what,
                    const SourceLocation &location);
  /// True if `value` is visible and a boolean; otherwise reports an error.
  bool checkCondition(Value value, const char *what,
                      const SourceLocation &location);
  /// True if `value` is a tensor argument; otherwise reports an error.
  bool checkTensor(Value value, const char *what,
                   const SourceLocation &location);

  //===-- Operations ----------------------------------------------------===//

  /// Creates an op and verifies it, unless it has regions. If it is invalid,
  /// erases it and returns null.
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
  /// True if the innermost region is of one of `kinds`, so that it can end
  /// here; otherwise reports an error.
  bool closing(llvm::ArrayRef<Frame::Kind> kinds, const char *what,
               const SourceLocation &location);

  /// The common type of two alternatives: their own type if it is the same; for
  /// states, the one with a sink if either has one; else null.
  static mlir::Type joinTypes(mlir::Type a, mlir::Type b);
  /// Converts `value` to `type`, which is its own type or one that joinTypes()
  /// returned for it.
  mlir::Value widen(mlir::Value value, mlir::Type type, mlir::Location loc);

  //===-- Memory --------------------------------------------------------===//

  unsigned rank(Value tensor) const;
  /// The dim of the rows of `tensor`. Reports an error and returns null if it
  /// has no name.
  DimAttr rowDim(Value tensor, const SourceLocation &location);
  /// The dim with this name, or its size if that is bound. `name` may also be a
  /// number.
  DimAttr dimOf(std::string_view name);
  /// Called when rows of `tensor` are loaded or stored: requires unit stride of
  /// their elements. For rows with one element per group that are not sliced,
  /// settleGroupRows() decides that later.
  void useRows(Value tensor, bool isSlice = false);
  /// Called at the end. A row along the groups of a product has one element per
  /// group if the kernel computes with rows of the product; all others get unit
  /// stride.
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
    bool isUnsigned; // not part of MLIR's integer types
  };
  std::vector<Handle> values;
  std::vector<Frame> frames;
  /// Dims are computed before this op, the grid.
  mlir::Operation *grid = nullptr;
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, mlir::Value> dims;
  llvm::SmallVector<mlir::Attribute> argNames;
  llvm::SmallVector<mlir::Attribute> argAttrs;
};

/// Parses the base of an lse; reports an error if there is no such base.
BaseAttr parseBase(KernelBuilder::Impl &impl, std::string_view text,
                   const SourceLocation &location);

} // namespace mlafix

#endif // MLAFIX_LIB_FRONTEND_BUILDERIMPL_H
