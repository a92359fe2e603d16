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

/// An error that is being written. It converts to what a function returns for
/// an error: false, null or no value.
class Failure {
public:
  explicit Failure(mlir::InFlightDiagnostic error) : error(std::move(error)) {}

  template <typename Arg> Failure &operator<<(Arg &&arg) {
    error << std::forward<Arg>(arg);
    return *this;
  }
  template <typename Result> operator Result() const { return Result(); }
  operator mlir::InFlightDiagnostic() const = delete;

private:
  mlir::InFlightDiagnostic error;
};

struct KernelBuilder::Impl {
  Impl(std::string_view name, const SourceLocation &location);

  /// A region whose operations are being added.
  struct Frame {
    enum Kind { Top, Grid, Predicate, For, Then, Else } kind;
    mlir::Operation *op;

    /// Returns the region's name for messages.
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
  /// Returns the result of the op that make() created, or no value if make()
  /// failed.
  template <typename OpTy>
  std::enable_if_t<std::is_base_of_v<mlir::OpState, OpTy>, Value>
  wrap(OpTy op, bool isUnsigned = false) {
    return op ? wrap(mlir::Value(op->getResult(0)), isUnsigned) : Value();
  }
  Values wrapAll(mlir::ValueRange range);
  llvm::SmallVector<mlir::Value> getAll(const Values &list) const;
  ValueType type(Value value) const;
  /// Describes the type of a state, a row or a scalar.
  static ValueType typeOf(mlir::Type type);
  std::string spell(Value value) const { return type(value).str(); }
  /// Returns true if the type is a scalar or a row.
  static bool isArithmetic(const ValueType &type) {
    return type.kind == ValueType::Kind::Scalar ||
           type.kind == ValueType::Kind::Row;
  }

  //===-- Errors --------------------------------------------------------===//

  Failure fail(const SourceLocation &location) {
    return Failure(mlir::emitError(at(location)));
  }
  mlir::Location at(const SourceLocation &location) {
    return fromSourceLocation(context.get(), location);
  }
  /// Returns true if the kernel is not finished; otherwise reports an error.
  bool checkUnfinished(const SourceLocation &location);
  /// Reports that `op` takes `expected`, but `value` has another type. Returns
  /// no value.
  Value failType(std::string_view op, llvm::StringRef expected, Value value,
                 const SourceLocation &location) {
    return fail(location) << "expected " << expected << " for '" << op
                          << "', got " << spell(value);
  }
  /// Adds the bounds of an argument's dims to the kernel. Reports an error and
  /// returns false if another argument has a different bound for a dim.
  bool setBounds(const TensorArgument &argument,
                 const SourceLocation &location);
  /// Returns true if `name` is a valid name for a new argument; otherwise
  /// reports an error.
  bool checkName(const std::string &name, const SourceLocation &location);
  /// Returns true if ops can be added here; otherwise reports an error.
  /// `inGrid` says if the place must be inside the grid or before it.
  bool checkOpen(const SourceLocation &location, bool inGrid = true);
  /// Returns true if `value` is visible here; otherwise reports an error.
  bool checkVisible(Value value, const char *what,
                    const SourceLocation &location);
  bool checkVisible(const Values &list, const char *what,
                    const SourceLocation &location);
  /// Returns true if `value` is visible and a boolean; otherwise reports an
  /// error.
  bool checkCondition(Value value, const char *what,
                      const SourceLocation &location);
  /// Returns true if all of `list` are visible and of type index; otherwise
  /// reports an error.
  bool checkIndices(const Values &list, const char *what,
                    const SourceLocation &location);
  /// Returns true if `value` is a tensor argument; otherwise reports an error.
  bool checkTensor(Value value, const char *what,
                   const SourceLocation &location);

  //===-- Operations ----------------------------------------------------===//

  /// Creates an op and verifies it. If the op is invalid, erases it and returns
  /// null. An op with regions is not verified, since its regions are still
  /// empty.
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
  /// Creates a constant whose elements are `value`, of a scalar or row type.
  mlir::Value constantLike(mlir::Type type, double value,
                           const SourceLocation &location);
  /// Returns `value` as a constant of `type` if it is an i32 constant and
  /// `type` is f32, i64 or index. Otherwise returns `value` itself.
  mlir::Value retypeConstant(mlir::Value value, mlir::Type type,
                             const SourceLocation &location);
  /// Returns true if the innermost open region is of one of `kinds` and so can
  /// end here; otherwise reports an error.
  bool closing(llvm::ArrayRef<Frame::Kind> kinds, const char *what,
               const SourceLocation &location);

  /// Returns the common type of two alternative values. If both have the same
  /// type, returns that type. If both are states and one of them has a sink,
  /// returns the type of the one with the sink. Otherwise returns null.
  static mlir::Type joinTypes(mlir::Type a, mlir::Type b);
  /// Converts `value` to `type`, which is the type of `value` or one that
  /// joinTypes() returned for it.
  mlir::Value widen(mlir::Value value, mlir::Type type, mlir::Location loc);

  //===-- Memory --------------------------------------------------------===//

  unsigned rank(Value tensor) const;
  /// Returns the dim of the rows of `tensor`. Reports an error and returns null
  /// if the dim has no name.
  DimAttr rowDim(Value tensor, const SourceLocation &location);
  /// Returns the dim called `name`, or its size if the name is bound. `name`
  /// may also be a number.
  DimAttr dimOf(std::string_view name);
  /// Gives the last dim of `tensor` the stride 1, because the kernel loads or
  /// stores rows of `tensor`. If whole rows may have one element per group,
  /// leaves the decision about the stride to settleGroupRows().
  void useRows(Value tensor, bool isSlice = false);
  /// Decides for each tensor in `groupRows` whether its last dim gets the
  /// stride 1. The last dim of every tensor in `groupRows` is the number of
  /// groups of a product. If the kernel computes with rows along that product,
  /// the tensor's rows have one element per group and may have any stride.
  /// Otherwise the stride is 1. Call this when the kernel is complete.
  void settleGroupRows();
  void refreshSignature();

  ContextLease context;
  std::vector<Diagnostic> diagnostics;
  DiagnosticCollector collector;
  mlir::OpBuilder builder;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  KernelOp kernel;
  bool finished = false;
  llvm::SetVector<mlir::Value>
      groupRows; ///< tensors about which settleGroupRows() decides

  struct Handle {
    mlir::Value value;
    bool isUnsigned; // true for u8, whose type in MLIR is signless
  };
  std::vector<Handle> values;
  std::vector<Frame> frames;
  /// The grid, or null before it exists. Ops that read dims are inserted before
  /// the grid.
  mlir::Operation *grid = nullptr;
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, mlir::Value> dims;
  llvm::SmallVector<mlir::Attribute> argNames;
  llvm::SmallVector<mlir::Attribute> argAttrs;
};

} // namespace mlafix

#endif // MLAFIX_LIB_FRONTEND_BUILDERIMPL_H
