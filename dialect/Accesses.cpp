//===- Accesses.cpp - accesses of operations, and their verifiers ---------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Mlafix.h"
#include "dialect/Origin.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

//===----------------------------------------------------------------------===//
// Checks for all kinds of accesses
//===----------------------------------------------------------------------===//

/// Returns true if `memref` is a buffer for a lane's part of a row along `dim`.
/// The pass mlafix-spill-rows makes such buffers.
static bool isRowBuffer(Value memref, size_t indices, DimAttr dim) {
  auto type = cast<MemRefType>(memref.getType());
  return dim && indices == 0 && type.getRank() == 1 && type.hasStaticShape() &&
         memref.getDefiningOp<memref::AllocaOp>();
}

namespace {
/// The part of a row that a load or store accesses. A field without a value
/// does not restrict the part.
struct Part {
  Value group, member;
  std::optional<RowSlice> slice = std::nullopt;
  bool isAny() const { return group || member; }
};
} // namespace

/// Returns the slice that a load or store accesses, or nullopt if it has none.
/// An op in generic form may lack one end of the slice. This end is then 0; if
/// it is `end`, verifySlice reports an error.
template <typename OpTy> static std::optional<RowSlice> sliceOf(OpTy op) {
  if (!op.getBegin() && !op.getEnd())
    return std::nullopt;
  return RowSlice{int64_t(op.getBegin().value_or(0)),
                  int64_t(op.getEnd().value_or(0))};
}

/// Checks that a slice lies within rows along the dim `last`.
static LogicalResult verifySlice(Operation *op, StringRef name, DimAttr last,
                                 RowSlice slice, Type element) {
  if (!last || last.isProduct())
    return op->emitOpError()
           << "expected the last dim of '" << name
           << "' to have one name or size, since a slice is taken of it, got "
           << (last ? last.str() : "a dim without a name");
  int64_t most = last.getSize(); // dynamic if the dim has no bound
  bool hasMost = !ShapedType::isDynamic(most);
  if (slice.begin < 0 || slice.end <= slice.begin ||
      (hasMost && slice.end > most)) {
    InFlightDiagnostic error = op->emitOpError()
                               << "expected a slice of one element or more of '"
                               << name << "', with ends from 0";
    if (hasMost)
      error << " to the row's " << (last.isBounded() ? "bound, " : "") << most;
    return error << ", got " << slice.begin << " to " << slice.end;
  }
  if (sharesByte(element) && slice.begin % 2 != 0)
    return op->emitOpError()
           << "expected a slice that begins at an even element of '" << name
           << "', which is " << getDTypeName(element)
           << " (two elements a byte), got " << slice.begin;
  return success();
}

/// Checks that a value along `dim` has the length of the slice. `dim` is null
/// if the value is a single element.
static LogicalResult verifyOfSlice(Operation *op, StringRef name, DimAttr dim,
                                   RowSlice slice) {
  int64_t count = slice.end - slice.begin;
  bool isFixed = dim && !dim.isBounded();
  if (isFixed && (!dim.isBound() || dim.getSize() == count))
    return success();
  InFlightDiagnostic error =
      op->emitOpError() << "expected a row of " << count
                        << " elements for the slice " << slice.begin << " to "
                        << slice.end << " of '" << name << "', got ";
  if (!dim)
    return error << "an element";
  return isFixed ? error << "one of " << dim.getSize()
                 : error << "one along " << dim.str();
}

/// Returns true if `op` accesses a single element of a row along `dim` by one
/// index, instead of by a group and a member.
static bool takesElements(MemoryAccessOpInterface op, DimAttr dim) {
  return llvm::any_of(op.getAccesses(), [&](const MemoryAccess &access) {
    return !access.isRow && !access.isPart() && access.getArgument() &&
           access.getProduct() == dim;
  });
}

/// Checks an access to a part of rows along the dim `last`. `dim` is the dim of
/// the value loaded or stored, or null if it is an element.
static LogicalResult verifyPart(Operation *op, StringRef name, DimAttr last,
                                DimAttr dim, Part part) {
  if (!last || !last.isProduct())
    return op->emitOpError()
           << "expected the last dim of '" << name
           << "' to be a product such as (G 128), since the access names "
           << (!part.group   ? "a member"
               : part.member ? "a group and a member"
                             : "a group")
           << ", got " << (last ? last.str() : "a dim without a name");
  if (bool(dim) == (part.group && part.member))
    return op->emitOpError()
           << "expected "
           << (dim ? "an element, since the access names a group and a member"
                   : "a row, since the access names only a group or a member")
           << " of '" << name << "', got " << (dim ? "a row" : "an element");
  auto kernel = op->getParentOfType<KernelOp>();
  for (BlockArgument argument : kernel.getBody().getArguments())
    for (Operation *user : argument.getUsers())
      if (auto access = dyn_cast<MemoryAccessOpInterface>(user);
          access && takesElements(access, last))
        return user->emitOpError()
               << "expected a group and a member to name an element along "
               << last.str()
               << ", since this kernel also names groups or members of such "
                  "rows, got one index";
  return success();
}

/// Checks that elements that share a byte are accessed only as whole rows or
/// groups, which start at a byte boundary.
static LogicalResult verifyHalves(Operation *op, StringRef name, DimAttr dim,
                                  Part part, Type element) {
  if (!sharesByte(element))
    return success();
  if (!dim || part.member || dim.isPerGroup())
    return op->emitOpError()
           << "expected a whole row or group of '" << name << "', which is "
           << getDTypeName(element) << " (two elements a byte), got "
           << (!dim          ? "a single element"
               : part.member ? "one member of each group"
                             : "a row of one element a group");
  if (dim.isBounded())
    return op->emitOpError()
           << "expected rows of '" << name << "', which is "
           << getDTypeName(element)
           << " (two elements a byte), along a dim that is known when the "
              "kernel is compiled, got "
           << dim.str();
  DimAttr whole = dim.isProduct() ? dim.getGroup() : dim;
  if (whole.isBound() && whole.getSize() % 2 != 0)
    return op->emitOpError()
           << "expected an even number of elements in a "
           << (dim.isProduct() || part.group ? "group" : "row") << " of '"
           << name << "', which is " << getDTypeName(element)
           << " (two elements a byte), got " << whole.getSize();
  return success();
}

/// Checks that a tensor in tiles is accessed only by element, or by rows with
/// one element per group.
static LogicalResult verifySwizzled(Operation *op, Value memref, StringRef name,
                                    DimAttr dim, Part part) {
  auto kernel = op->getParentOfType<KernelOp>();
  bool isOfElements = !dim || dim.isPerGroup() || getProductOf(kernel, dim);
  bool isPart = part.isAny() || part.slice;
  if (!isSwizzled(memref) || (isOfElements && !isPart))
    return success();
  InFlightDiagnostic error = op->emitOpError()
                             << "expected an element of '" << name
                             << "' or a row of one element a group, since the "
                                "tensor lies in tiles (swizzle), got ";
  if (isPart)
    return error << (part.slice ? "a slice of a row" : "a part of a row");
  return error << "a row along " << dim.str();
}

/// Checks an access with `indices` indices to a row along `dim`, or to an
/// element if `dim` is null. `memref` must be a kernel argument whose access
/// mode allows the operation, or a buffer of a row along `dim`.
static LogicalResult verifyAccess(Operation *op, Value memref, size_t indices,
                                  DimAttr dim, bool writes, StringRef what,
                                  Part part = {}) {
  auto type = cast<MemRefType>(memref.getType());
  if (!part.isAny() && !part.slice && isRowBuffer(memref, indices, dim))
    return success();
  BlockArgument argument = getKernelArgument(memref);
  if (!argument)
    return op->emitOpError() << "expected the " << what
                             << " to be an argument of the kernel, got "
                             << describeOrigin(memref);
  KernelOp kernel = getKernelOf(argument);
  StringRef name = kernel.getArgName(argument.getArgNumber());
  StringRef access = kernel.getArgAccess(argument.getArgNumber());
  if (writes && access == "read")
    return op->emitOpError()
           << "expected '" << name
           << "' to be writable to store to it, got access \"read\"";

  bool isOfRow = dim || part.isAny() || part.slice;
  int64_t expected = type.getRank() - (isOfRow ? 1 : 0);
  if (static_cast<int64_t>(indices) != expected)
    return op->emitOpError() << "expected " << expected << " indices for "
                             << (isOfRow ? "a row" : "an element") << " of '"
                             << name << "', got " << indices;
  if (failed(verifyHalves(op, name, dim, part, type.getElementType())) ||
      failed(verifySwizzled(op, memref, name, dim, part)))
    return failure();
  if (!isOfRow)
    return success();
  DimAttr last = getLastDim(memref);
  if (part.slice && (failed(verifySlice(op, name, last, *part.slice,
                                        type.getElementType())) ||
                     failed(verifyOfSlice(op, name, dim, *part.slice))))
    return failure();
  if (part.isAny() && failed(verifyPart(op, name, last, dim, part)))
    return failure();
  if (!dim)
    return success();
  if (part.isAny())
    last = part.group ? last.getGroup() : last.getGroups();
  if (!part.slice && last != (dim.isPerGroup() ? dim.getGroups() : dim))
    return op->emitOpError()
           << "expected a "
           << (part.group    ? "group"
               : part.member ? "member"
                             : "row")
           << " of '" << name << "' along dim "
           << (last ? last.str() : "without a name") << ", got " << dim.str();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) ||
      (strides.back() != 1 &&
       (part.isAny() || part.slice ||
        (!dim.isPerGroup() && !getProductOf(kernel, dim)))))
    return op->emitOpError() << "expected the last dim of '" << name
                             << "' to have stride 1 (N12), got " << type;
  return success();
}

/// Checks the accesses to the payload and the lse of a state in memory.
static LogicalResult verifyStateAccess(Operation *op, StateType state,
                                       Value out, size_t outIndices, Value lse,
                                       size_t lseIndices, bool writes) {
  if (out) {
    if (failed(verifyAccess(op, out, outIndices, state.getDim(), writes,
                            "payload")))
      return failure();
    Type element = cast<MemRefType>(out.getType()).getElementType();
    if (!isa<FloatType>(element))
      return op->emitOpError()
             << "expected a payload of floats, got " << element;
  }
  if (lse) {
    if (failed(verifyAccess(op, lse, lseIndices, DimAttr(), writes, "lse")))
      return failure();
    Type element = cast<MemRefType>(lse.getType()).getElementType();
    if (!element.isF32())
      return op->emitOpError() << "expected an lse of f32, got " << element;
  }
  return success();
}

/// Checks that `valueType` has the element type into which elements of `memref`
/// are loaded.
static LogicalResult verifyElement(Operation *op, Value memref,
                                   Type valueType) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  Type expected = getComputeType(element),
       got = getElementTypeOrSelf(valueType);
  if (expected != got)
    return op->emitOpError()
           << "expected " << expected << " for elements of type " << element
           << ", got " << got;
  return success();
}

/// Returns true if the dtype of `memref` is a variable for integers. Returns
/// true for any bound variable too: the element type then no longer shows what
/// the variable stood for, and mlafix-specialize has checked the binding.
static bool isOfIntegerVariable(Value memref) {
  StringAttr variable = getDTypeVariable(memref);
  if (!variable)
    return false;
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  if (element.isInteger() && !element.isInteger(1))
    return true;
  DictionaryAttr bindings =
      getKernelOf(getKernelArgument(memref)).getBindingsAttr();
  return bindings && bindings.contains(variable);
}

/// Checks the type of a stored value. An integer dtype variable has an unknown
/// width, so i32 and i64 may be stored. Tensors of 8-bit integers accept i32,
/// i64 and f32.
static LogicalResult verifyStored(Operation *op, Value target, Type stored) {
  Type element = cast<MemRefType>(target.getType()).getElementType();
  Type value = getElementTypeOrSelf(stored);
  bool isInteger = value.isInteger(32) || value.isInteger(64);
  if (isInteger && isOfIntegerVariable(target))
    return success();
  if (element.isInteger(8) && (isInteger || value.isF32()))
    return success();
  return verifyElement(op, target, value);
}

/// Checks the type of a loaded value. A load may widen integers. If the dtype
/// is an integer variable, i64 may be loaded whatever dtype the variable is
/// bound to. If the variable is bound to a float, the i64 has the float's bits.
static LogicalResult verifyLoaded(Operation *op, Value source, Type loaded) {
  Type element = cast<MemRefType>(source.getType()).getElementType();
  Type result = getElementTypeOrSelf(loaded);
  if (result.isInteger(64) && isOfIntegerVariable(source))
    return success();
  bool widens = element.isInteger() && !element.isInteger(1) &&
                result.isSignlessInteger() && result != element;
  if (!widens)
    return verifyElement(op, source, loaded);
  if (result.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth())
    return op->emitOpError()
           << "expected an integer of at least "
           << element.getIntOrFloatBitWidth() << " bits for elements of type "
           << element << ", got " << result;
  return success();
}

//===----------------------------------------------------------------------===//
// The operations
//===----------------------------------------------------------------------===//

LogicalResult LoadStateOp::verify() {
  return verifyStateAccess(*this, getType(), getOut(), getOutIndices().size(),
                           getLse(), getLseIndices().size(),
                           /*writes=*/false);
}

LogicalResult StoreStateOp::verify() {
  if (!getOut() && !getLse())
    return emitOpError()
           << "expected a payload, an lse or both to store to, got neither";
  if (getScale() && !getOut())
    return emitOpError() << "expected a payload beside the scale, got none";
  return verifyStateAccess(*this, getState().getType(), getOut(),
                           getOutIndices().size(), getLse(),
                           getLseIndices().size(), /*writes=*/true);
}

LogicalResult LoadOp::verify() {
  DimAttr dim = isRowTile(getType()) ? getTileDim(getType()) : DimAttr();
  if (failed(verifyAccess(*this, getSource(), getIndices().size(), dim,
                          /*writes=*/false, "source",
                          {getGroup(), getMember(), sliceOf(*this)})) ||
      failed(verifyLoaded(*this, getSource(), getType())))
    return failure();
  if (getOther() && !getPredicate())
    return emitOpError()
           << "expected a predicate beside the 'else' value, got none";
  return success();
}

LogicalResult LoadIntoOp::verify() {
  int64_t first = getFirst(), each = getEach();
  if (first < -INT32_MAX || each < 1)
    return emitOpError() << "expected first >= " << -INT32_MAX
                         << " and each >= 1, got first = " << first
                         << " and each = " << each;
  auto type = cast<MemRefType>(getSource().getType());
  DimAttr dim = getLastDim(getSource());
  if (!dim)
    return emitOpError() << "expected an argument of the kernel whose last dim "
                            "has a name or a size, got "
                         << type;
  if (sharesByte(type.getElementType()))
    return emitOpError() << "expected a row with elements of whole bytes to "
                            "read into another one, got "
                         << getDTypeName(type.getElementType());
  DimAttr whole = getTileDim(getType());
  if (whole.isPerGroup() ||
      (!ShapedType::isDynamic(whole.getSize()) && whole.getSize() < first))
    return emitOpError() << "expected a row of at least " << first
                         << " elements to read into, got one along "
                         << whole.str();
  if (failed(verifyAccess(*this, getSource(), getIndices().size(), dim,
                          /*writes=*/false, "source")))
    return failure();
  std::optional<RowSlice> slice = sliceOf(*this);
  BlockArgument argument = getKernelArgument(getSource());
  StringRef name = getKernelOf(argument).getArgName(argument.getArgNumber());
  return failure((slice && failed(verifySlice(*this, name, dim, *slice,
                                              type.getElementType()))) ||
                 failed(verifyLoaded(*this, getSource(), getType())));
}

LogicalResult StoreOp::verify() {
  DimAttr dim = isRowTile(getValue().getType())
                    ? getTileDim(getValue().getType())
                    : DimAttr();
  if (failed(verifyAccess(*this, getTarget(), getIndices().size(), dim,
                          /*writes=*/true, "target",
                          {getGroup(), getMember(), sliceOf(*this)})))
    return failure();
  return verifyStored(*this, getTarget(), getValue().getType());
}

LogicalResult StoreMembersOp::verify() {
  BlockArgument argument = getKernelArgument(getTarget());
  DimAttr product = getAccesses().front().getProduct();
  if (!argument || !product)
    return emitOpError() << "expected an argument of the kernel whose last dim "
                            "is a product, got "
                         << (argument ? "another dim"
                                      : describeOrigin(getTarget()));
  if (failed(verifyAccess(*this, getTarget(), getIndices().size(), product,
                          /*writes=*/true, "target")))
    return failure();
  int64_t members = product.getGroup().getSize();
  if (static_cast<int64_t>(getValues().size()) != members)
    return emitOpError() << "expected a row for each of " << members
                         << " members, got " << getValues().size();
  for (Type type : getValues().getTypes())
    if (getTileDim(type) != product.getGroups())
      return emitOpError() << "expected rows along dim "
                           << product.getGroups().str() << ", got "
                           << getTileDim(type).str();
  return verifyStored(*this, getTarget(), getValues().front().getType());
}

//===----------------------------------------------------------------------===//
// Accesses as data
//===----------------------------------------------------------------------===//

#include "dialect/MlafixInterfaces.cpp.inc"

BlockArgument MemoryAccess::getArgument() const {
  return getKernelArgument(memref);
}

DimAttr MemoryAccess::getRowDim() const {
  if (!isRow)
    return {};
  if (isa<LoadIntoOp>(op)) // the result has another dim
    return getLastDim(memref);
  for (Type type :
       llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes())) {
    if (isRowTile(type))
      return getTileDim(type);
    if (auto state = dyn_cast<StateType>(type))
      return state.getDim();
  }
  return {};
}

bool MemoryAccess::isPartAs(const MemoryAccess &other) const {
  // Slices are equal only if they are slices of rows with the same dim.
  bool isSameSlice =
      slice == other.slice && (!slice || getRowDim() == other.getRowDim());
  return !isShifted && !other.isShifted && isSameSlice &&
         !group == !other.group &&
         (member || allMembers) == (other.member || other.allMembers);
}

bool MemoryAccess::isPerGroup() const {
  return isRow && getRowDim().isPerGroup();
}

DimAttr MemoryAccess::getProduct() const {
  DimAttr dim = getLastDim(memref);
  return dim && dim.isProduct() ? dim : DimAttr();
}

std::optional<int64_t> MemoryAccess::getMovedMember() const {
  APInt number;
  if (!isRow || !member || isPerGroup() ||
      !matchPattern(member, m_ConstantInt(&number)))
    return std::nullopt;
  int64_t size = getProduct().getGroup().getSize();
  if (!llvm::isPowerOf2_64(size) || number.uge(size) ||
      size * getDTypeBytes(getElementType()) > kGroupBytes)
    return std::nullopt;
  return number.getSExtValue();
}

int64_t MemoryAccess::getMovedBits() const {
  int64_t elements = getMovedMember() ? getProduct().getGroup().getSize() : 1;
  return elements * getDTypeBits(getElementType());
}

//===----------------------------------------------------------------------===//
// The accesses of each operation
//===----------------------------------------------------------------------===//

SmallVector<MemoryAccess, 2> LoadOp::getAccesses() {
  return {{*this, getSource(), getIndices(), getPredicate(), /*isWrite=*/false,
           isRowTile(getType()), /*isState=*/false, getGroup(), getMember(),
           /*allMembers=*/false, /*isShifted=*/false, sliceOf(*this)}};
}

SmallVector<MemoryAccess, 2> LoadIntoOp::getAccesses() {
  return {{*this, getSource(), getIndices(), getPredicate(), /*isWrite=*/false,
           /*isRow=*/true, /*isState=*/false, /*group=*/{}, /*member=*/{},
           /*allMembers=*/false, /*isShifted=*/true, sliceOf(*this)}};
}

SmallVector<MemoryAccess, 2> StoreOp::getAccesses() {
  return {{*this, getTarget(), getIndices(), getPredicate(), /*isWrite=*/true,
           isRowTile(getValue().getType()), /*isState=*/false, getGroup(),
           getMember(), /*allMembers=*/false, /*isShifted=*/false,
           sliceOf(*this)}};
}

SmallVector<MemoryAccess, 2> StoreMembersOp::getAccesses() {
  return {{*this, getTarget(), getIndices(), getPredicate(), /*isWrite=*/true,
           /*isRow=*/true, /*isState=*/false, /*group=*/{}, /*member=*/{},
           /*allMembers=*/true}};
}

SmallVector<MemoryAccess, 2> LoadStateOp::getAccesses() {
  return {{*this, getOut(), getOutIndices(), getPredicate(), /*isWrite=*/false,
           /*isRow=*/true, /*isState=*/true},
          {*this, getLse(), getLseIndices(), getPredicate(), /*isWrite=*/false,
           /*isRow=*/false, /*isState=*/true}};
}

SmallVector<MemoryAccess, 2> StoreStateOp::getAccesses() {
  SmallVector<MemoryAccess, 2> accesses;
  if (getOut())
    accesses.push_back({*this, getOut(), getOutIndices(), getPredicate(),
                        /*isWrite=*/true, /*isRow=*/true, /*isState=*/true});
  if (getLse())
    accesses.push_back({*this, getLse(), getLseIndices(), getPredicate(),
                        /*isWrite=*/true, /*isRow=*/false, /*isState=*/true});
  return accesses;
}

//===----------------------------------------------------------------------===//
// Enumeration and order of accesses
//===----------------------------------------------------------------------===//

SmallVector<MemoryAccess> mlafix::collectAccesses(Operation *root) {
  SmallVector<MemoryAccess> accesses;
  root->walk<WalkOrder::PreOrder>([&](MemoryAccessOpInterface op) {
    llvm::append_range(accesses, op.getAccesses());
  });
  return accesses;
}

std::optional<MemoryAccess> mlafix::getSingleAccess(Operation *op) {
  auto access = dyn_cast<MemoryAccessOpInterface>(op);
  if (!access || isa<LoadStateOp, StoreStateOp>(op))
    return std::nullopt;
  return access.getAccesses().front();
}

bool mlafix::mayWrite(Operation *op) {
  return anyOp(op, [](Operation *nested) {
    auto effects = dyn_cast<MemoryEffectOpInterface>(nested);
    return !nested->hasTrait<OpTrait::HasRecursiveMemoryEffects>() &&
           !isMemoryEffectFree(nested) &&
           !(effects && effects.onlyHasEffect<MemoryEffects::Read>());
  });
}

bool mlafix::mayWriteBetween(Operation *first, Operation *last) {
  for (Operation *op = first->getNextNode(); op != last; op = op->getNextNode())
    if (mayWrite(op))
      return true;
  return false;
}
