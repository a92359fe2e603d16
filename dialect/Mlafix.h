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

/// The fill that depends on what a tensor holds.
inline constexpr llvm::StringLiteral kIdentity = "identity";

/// The presence that an optional argument is bound to; the first is also the
/// access of an argument so bound.
inline constexpr llvm::StringLiteral kAbsent = "absent";
inline constexpr llvm::StringLiteral kPresent = "present";

/// A product in an argument's dims, "(G K)": its factors, which are names or
/// numbers.
struct Factors {
  llvm::StringRef groups, group;

  /// Of a dim's text; none of one that is no product.
  static std::optional<Factors> of(llvm::StringRef dim);
  /// True if `dim` is `name`, or a product that has it as a factor.
  static bool has(llvm::StringRef dim, llvm::StringRef name);
  /// True if each is an upper-case name or a number of at least 1.
  bool isValid() const;
  /// The dim, if they are.
  DimAttr getDim(mlir::MLIRContext *context) const;
  /// The same with the sizes that the kernel's names are bound to.
  DimAttr getDim(KernelOp kernel) const;
};

/// The row tile of a dim: tensor<size x element, #mlafix.dim<…>>.
mlir::RankedTensorType getRowTileType(DimAttr dim, mlir::Type elementType);
/// The dim of a row tile.
DimAttr getTileDim(mlir::Type tile);

/// The kernel argument that `memref` is, or null.
mlir::BlockArgument getKernelArgument(mlir::Value memref);
/// The dim that `memref`, a kernel argument, has at `position`: its name, or
/// its number when static. Null elsewhere.
DimAttr getArgumentDim(mlir::Value memref, unsigned position);
/// The last dim of an argument that is a product of `groups` and another dim;
/// null if there is none.
DimAttr getProductOf(KernelOp kernel, DimAttr groups);
/// The name of the dtype variable that `memref`, a kernel argument, has
/// elements of. Null elsewhere.
mlir::StringAttr getDTypeVariable(mlir::Value memref);

/// `type` as units spell it ("bf16", "index"), or empty if it is none that the
/// language has.
llvm::StringRef getDTypeName(mlir::Type type);
/// The MLIR type of a dtype name, or null.
mlir::Type getDTypeByName(mlir::MLIRContext *context, llvm::StringRef name);
/// All names of the dtype table, separated by ", ".
std::string listDTypes();
/// Bits of an element of `type` in memory.
int64_t getDTypeBits(mlir::Type type);
/// Bytes of an element of `type` in memory, or of those that share a byte.
int64_t getDTypeBytes(mlir::Type type);
/// True if two elements of `type`, a scalar or a vector, share a byte.
bool sharesByte(mlir::Type type);
/// True if `memref` is a kernel argument whose rows and columns lie in tiles of
/// 128 x 4 or 8 x 4 (mlafix.swizzle).
bool isSwizzled(mlir::Value memref);
/// The rows of a tile that `swizzle`, a value of kSwizzleAttr, names; 0 of
/// another text.
int64_t getTileRows(llvm::StringRef swizzle);
/// The rows of a tile of `memref`, which is swizzled.
int64_t getTileRows(mlir::Value memref);
/// True if its elements, or itself, are floats of one byte.
bool isFp8(mlir::Type type);
/// The type that a value of `type` has in a body after it is read from memory:
/// floats widen to f32 (N7), unsigned integers are signless.
mlir::Type getComputeType(mlir::Type type);

/// A name that `mlafix-specialize` can bind.
struct BindableName {
  enum Kind {
    Dim,        ///< upper case: must be bound, to a size or to "any"
    DType,      ///< likewise
    Base,       ///< of a log-sum-exp; likewise
    DynamicDim, ///< lower case: may be bound, as an optimisation
    Presence    ///< an optional argument: may be bound, likewise
  };
  llvm::StringRef name;
  Kind kind;
  /// Its default, as `--specialize` spells it; empty if there is none.
  std::string defaultValue;
};

/// The names of a kernel that are not bound yet: dims in the order of the
/// arguments, then dtypes, bases, dynamic dims and optional arguments.
llvm::SmallVector<BindableName> getBindableNames(KernelOp kernel);

/// The names of the length of a state's row or a row tile; none of another
/// type.
llvm::SmallVector<llvm::StringRef, 2> getLengthNames(mlir::Type type);

} // namespace mlafix

#endif // MLAFIX_DIALECT_MLAFIX_H
