//===- Mlafix.h - the mlafix dialect -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_MLAFIX_H
#define MLAFIX_DIALECT_MLAFIX_H

#include "dialect/MemoryAccess.h"

#include "mlafix/UnitKinds.h"
#include "mlafix/UnitLimits.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlafix {

/// The base of a log-sum-exp (N8).
enum class LogBase { E, Two };

/// A field of a code version's plan (dialect/Plan.h).
enum class PlanField : unsigned;

/// True if `type` is a row tile: a rank-1 tensor whose encoding is a DimAttr.
bool isRowTile(mlir::Type type);

} // namespace mlafix

#include "dialect/MlafixEnums.h.inc"

#include "dialect/MlafixDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/MlafixAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/MlafixTypes.h.inc"

#include "dialect/MlafixInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialect/MlafixOps.h.inc"

namespace mlafix {

/// Names of the argument attributes of a kernel.
inline constexpr llvm::StringLiteral kDimsAttr = "mlafix.dims";
inline constexpr llvm::StringLiteral kDTypeAttr = "mlafix.dtype";
inline constexpr llvm::StringLiteral kAccessAttr = "mlafix.access";
inline constexpr llvm::StringLiteral kOptionalAttr = "mlafix.optional";
inline constexpr llvm::StringLiteral kAtMostAttr = "mlafix.at_most";
inline constexpr llvm::StringLiteral kFillAttr = "mlafix.fill";
inline constexpr llvm::StringLiteral kPeersAttr = "mlafix.peers";
inline constexpr llvm::StringLiteral kListAttr = "mlafix.list";
inline constexpr llvm::StringLiteral kSwizzleAttr = "mlafix.swizzle";

/// The fill whose value depends on the tensor: -inf for an lse, else 0.
inline constexpr llvm::StringLiteral kIdentity = "identity";

/// Bindings of optional arguments. "absent" is also the access of an argument
/// bound to it.
inline constexpr llvm::StringLiteral kAbsent = "absent";
inline constexpr llvm::StringLiteral kPresent = "present";

/// The factors (names or numbers) of a product in an argument's dims, "(G K)".
struct Factors {
  llvm::StringRef groups, group;

  /// Parses a dim's text; nullopt if it is not a product.
  static std::optional<Factors> of(llvm::StringRef dim);
  /// True if `dim` is `name`, or a product with that factor.
  static bool has(llvm::StringRef dim, llvm::StringRef name);
  /// True if each factor is an upper-case name or a number >= 1.
  bool isValid() const;
  /// The product as a dim; null if the factors are invalid.
  DimAttr getDim(mlir::MLIRContext *context) const;
  /// As above, with sizes for the names that the kernel binds.
  DimAttr getDim(KernelOp kernel) const;
};

/// The row tile type of a dim: tensor<size x element, #mlafix.dim<…>>.
mlir::RankedTensorType getRowTileType(DimAttr dim, mlir::Type elementType);
/// The dim of a row tile.
DimAttr getTileDim(mlir::Type tile);

/// The kernel argument that `memref` is, or null.
mlir::BlockArgument getKernelArgument(mlir::Value memref);
/// The dim of a kernel argument at `position`: its name, or its size if static.
/// Null for other values.
DimAttr getArgumentDim(mlir::Value memref, unsigned position);
/// The last dim of an argument that is a product of `groups` and another dim;
/// null if there is none.
DimAttr getProductOf(KernelOp kernel, DimAttr groups);
/// The dtype variable of a kernel argument's elements; null if there is none.
mlir::StringAttr getDTypeVariable(mlir::Value memref);

/// The spelling of `type` in units ("bf16", "index"); empty if the language
/// lacks it.
llvm::StringRef getDTypeName(mlir::Type type);
/// The MLIR type of a dtype name, or null.
mlir::Type getDTypeByName(mlir::MLIRContext *context, llvm::StringRef name);
/// All names of the dtype table, separated by ", ".
std::string listDTypes();
/// Bits of an element of `type` in memory.
int64_t getDTypeBits(mlir::Type type);
/// Bytes of an element of `type` in memory, or of the byte that two elements
/// share.
int64_t getDTypeBytes(mlir::Type type);
/// True if two elements of `type` (a scalar or vector type) share a byte.
bool sharesByte(mlir::Type type);
/// True if `memref` is a kernel argument stored in tiles of 128 x 4 or 8 x 4
/// (mlafix.swizzle).
bool isSwizzled(mlir::Value memref);
/// The rows per tile of `swizzle`, a value of kSwizzleAttr; 0 for other text.
int64_t getTileRows(llvm::StringRef swizzle);
/// The rows per tile of a swizzled `memref`.
int64_t getTileRows(mlir::Value memref);
/// True if `type`, or its element type, is a float of one byte.
bool isFp8(mlir::Type type);
/// The type of a loaded value in a body: floats are widened to f32 (N7),
/// unsigned integers become signless.
mlir::Type getComputeType(mlir::Type type);

/// A name that `mlafix-specialize` can bind.
struct BindableName {
  enum Kind {
    Dim,        ///< upper case: must be bound to a size or to "any"
    DType,      ///< must be bound
    Base,       ///< base of an lse: must be bound
    DynamicDim, ///< lower case: may be bound, as an optimisation
    Presence    ///< optional argument: may be bound, as an optimisation
  };
  llvm::StringRef name;
  Kind kind;
  /// The name's default as `--specialize` spells it; empty if there is none.
  std::string defaultValue;
};

/// A kernel's unbound names: dims in the order of the arguments, then dtypes,
/// bases, dynamic dims and optional arguments.
llvm::SmallVector<BindableName> getBindableNames(KernelOp kernel);

/// The names in the length of a state's row or a row tile; empty for other
/// types.
llvm::SmallVector<llvm::StringRef, 2> getLengthNames(mlir::Type type);

} // namespace mlafix

#endif // MLAFIX_DIALECT_MLAFIX_H
