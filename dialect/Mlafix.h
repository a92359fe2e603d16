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

/// The base of a log-sum-exp (N8): e or 2.
enum class LogBase { E, Two };

/// A field of a code version's plan (dialect/Plan.h).
enum class PlanField : unsigned;

/// Returns true if `type` is a row tile: a rank-1 tensor whose encoding is a
/// DimAttr.
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

/// The names of the attributes of a kernel's arguments.
inline constexpr llvm::StringLiteral kDimsAttr = "mlafix.dims";
inline constexpr llvm::StringLiteral kDTypeAttr = "mlafix.dtype";
inline constexpr llvm::StringLiteral kAccessAttr = "mlafix.access";
inline constexpr llvm::StringLiteral kOptionalAttr = "mlafix.optional";
inline constexpr llvm::StringLiteral kAtMostAttr = "mlafix.at_most";
inline constexpr llvm::StringLiteral kFillAttr = "mlafix.fill";
inline constexpr llvm::StringLiteral kPeersAttr = "mlafix.peers";
inline constexpr llvm::StringLiteral kListAttr = "mlafix.list";
inline constexpr llvm::StringLiteral kSwizzleAttr = "mlafix.swizzle";

/// The value of kFillAttr for which the fill depends on the tensor: -inf for an
/// lse, else 0.
inline constexpr llvm::StringLiteral kIdentity = "identity";

/// The values to which optional arguments are bound. "absent" is also the
/// access mode of an argument that is bound to it.
inline constexpr llvm::StringLiteral kAbsent = "absent";
inline constexpr llvm::StringLiteral kPresent = "present";

/// The two factors of a product "(G K)" in an argument's dims. Each is a name
/// or a number.
struct Factors {
  llvm::StringRef groups, group;

  /// Parses a dim's text. Returns nullopt if it is not a product.
  static std::optional<Factors> of(llvm::StringRef dim);
  /// Returns true if `dim` is `name`, or a product with the factor `name`.
  static bool has(llvm::StringRef dim, llvm::StringRef name);
  /// Returns true if each factor is an upper-case name or a number of at least
  /// 1.
  bool isValid() const;
  /// Returns the product as a dim. The factors must be valid.
  DimAttr getDim(mlir::MLIRContext *context) const;
  /// Returns the product as a dim, with the sizes to which the kernel binds
  /// names. The factors must be valid.
  DimAttr getDim(KernelOp kernel) const;
};

/// Returns the row tile type of a dim: tensor<size x element, #mlafix.dim<…>>.
mlir::RankedTensorType getRowTileType(DimAttr dim, mlir::Type elementType);
/// Returns the dim of a row tile.
DimAttr getTileDim(mlir::Type tile);

/// Returns true if `name` begins with an upper-case letter, as the names of
/// compile-time dims, dtype variables and bases do.
bool isConstantName(llvm::StringRef name);

/// Returns `memref` if it is a kernel argument, else null.
mlir::BlockArgument getKernelArgument(mlir::Value memref);
/// Returns the kernel of a kernel argument.
KernelOp getKernelOf(mlir::BlockArgument argument);
/// Returns dim `position` of a kernel argument: a product, a static size, a
/// name with a bound, or a name. Returns null if the dim has neither a size nor
/// a name, or if `memref` is not a kernel argument.
DimAttr getArgumentDim(mlir::Value memref, unsigned position);
/// Returns the last dim of a kernel argument, along which its rows lie. Returns
/// null as getArgumentDim() does, or if the argument has no dims.
DimAttr getLastDim(mlir::Value memref);
/// Returns the last dim of the first argument whose last dim is a product
/// (`groups` K). Returns null if there is no such argument.
DimAttr getProductOf(KernelOp kernel, DimAttr groups);
/// Returns the dtype variable of a kernel argument, or null if it has none.
mlir::StringAttr getDTypeVariable(mlir::Value memref);

/// Returns the name of `type` in units, such as "bf16" or "index". Returns ""
/// if the language has no such type.
llvm::StringRef getDTypeName(mlir::Type type);
/// Returns the MLIR type of a dtype name, or null if there is none.
mlir::Type getDTypeByName(mlir::MLIRContext *context, llvm::StringRef name);
/// Returns the names of all dtypes, separated by ", ".
std::string listDTypes();
/// Returns the number of bits of an element of `type` in memory.
int64_t getDTypeBits(mlir::Type type);
/// Returns the number of bytes of an element of `type` in memory. Returns 1 if
/// two elements share a byte.
int64_t getDTypeBytes(mlir::Type type);
/// Returns true if two elements of `type` share a byte. `type` is a scalar or
/// vector type.
bool sharesByte(mlir::Type type);
/// Returns true if `memref` is a kernel argument that is stored in tiles of 128
/// x 4 or 8 x 4 elements (mlafix.swizzle).
bool isSwizzled(mlir::Value memref);
/// Returns the number of rows per tile for a value of kSwizzleAttr. Returns 0
/// if the value is invalid.
int64_t getTileRows(llvm::StringRef swizzle);
/// Returns the number of rows per tile of `memref`, which must be in tiles.
int64_t getTileRows(mlir::Value memref);
/// Returns true if `type`, or its element type, is a float of one byte.
bool isFp8(mlir::Type type);
/// Returns the type that a loaded value has in a kernel's body. A float becomes
/// f32 (N7), and an unsigned integer becomes signless.
mlir::Type getComputeType(mlir::Type type);

/// A name that `mlafix-specialize` can bind.
struct BindableName {
  enum Kind {
    /// An upper-case dim. It must be bound to a size or to "any".
    Dim,
    /// A dtype variable. It must be bound.
    DType,
    /// The base of an lse. It must be bound.
    Base,
    /// A lower-case dim. It may be bound, as an optimisation.
    DynamicDim,
    /// An optional argument. It may be bound, as an optimisation.
    Presence
  };
  llvm::StringRef name;
  Kind kind;
  /// The name's default, as `--specialize` spells it, or "" if there is none.
  std::string defaultValue;
};

/// Returns a kernel's unbound names. Dims come first, in the order of the
/// arguments, and then dtypes, bases, dynamic dims and optional arguments.
llvm::SmallVector<BindableName> getBindableNames(KernelOp kernel);

/// Returns the base for which `name` stands: "e" or "2". A name stands for what
/// `getBound` returns for it or, if that is "", for the name's default. Either
/// may be the name of another base, which is resolved in the same way. Returns
/// "" if a name is reached that is neither bound nor has a default.
llvm::StringRef
resolveBase(KernelOp kernel, llvm::StringRef name,
            llvm::function_ref<llvm::StringRef(llvm::StringRef)> getBound);

/// Returns true if a launch knows `index` without running the kernel: a
/// constant, an integer argument (also one that is cast to index, but no
/// boolean), or a size of a tensor that every call passes. Once the kernel's
/// names are bound, grid extents must be such values.
bool isKnownAtLaunch(mlir::Value index);

/// Returns the unbound names in the dim of `type`, which is a row tile or a
/// state. Returns an empty list for other types.
llvm::SmallVector<llvm::StringRef, 2> getLengthNames(mlir::Type type);

} // namespace mlafix

#endif // MLAFIX_DIALECT_MLAFIX_H
