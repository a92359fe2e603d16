//===- KernelABI.cpp - a kernel's parameters and memory accesses in LLVM -*- C++
//-*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/KernelABI.h"
#include "lib/Conversion/Offset.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlafix;

namespace {
/// A load, a store or a prefetch of one element or one pack, whatever op it is.
struct LoweredAccess {
  Value memref;
  ValueRange indices;
  Value stored;            // null for a load and a prefetch
  Type type;               // of what is moved
  unsigned alignment;      // in bytes
  Value mask;              // of a masked load
  Value passThru;          // where its mask is false
  bool isStreamed = false; // a store past the caches

  MemRefType getMemRefType() const {
    return cast<MemRefType>(memref.getType());
  }
};
} // namespace

static std::optional<LoweredAccess> getAccess(Operation *op) {
  auto natural = [](Value memref) {
    return static_cast<unsigned>(
        getDTypeBytes(cast<MemRefType>(memref.getType()).getElementType()));
  };
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return LoweredAccess{load.getMemRef(),
                        load.getIndices(),
                        Value(),
                        load.getType(),
                        natural(load.getMemRef()),
                        {},
                        {}};
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return LoweredAccess{store.getMemRef(),
                        store.getIndices(),
                        store.getValue(),
                        store.getValue().getType(),
                        natural(store.getMemRef()),
                        {},
                        {}};
  if (auto load = dyn_cast<vector::LoadOp>(op))
    return LoweredAccess{load.getBase(),
                        load.getIndices(),
                        Value(),
                        load.getType(),
                        static_cast<unsigned>(load.getAlignment().value_or(
                            natural(load.getBase()))),
                        {},
                        {}};
  if (auto store = dyn_cast<vector::StoreOp>(op))
    return LoweredAccess{store.getBase(),
                        store.getIndices(),
                        store.getValueToStore(),
                        store.getValueToStore().getType(),
                        static_cast<unsigned>(store.getAlignment().value_or(
                            natural(store.getBase()))),
                        {},
                        {},
                        store.getNontemporal()};
  if (auto load = dyn_cast<vector::MaskedLoadOp>(op))
    return LoweredAccess{load.getBase(),
                        load.getIndices(),
                        Value(),
                        load.getType(),
                        static_cast<unsigned>(load.getAlignment().value_or(
                            natural(load.getBase()))),
                        load.getMask(),
                        load.getPassThru()};
  if (auto prefetch = dyn_cast<memref::PrefetchOp>(op))
    return LoweredAccess{prefetch.getMemref(),
                        prefetch.getIndices(),
                        Value(),
                        prefetch.getMemRefType().getElementType(),
                        natural(prefetch.getMemref()),
                        {},
                        {}};
  return std::nullopt;
}

/// The argument that an op wants no more of than its pointer; null for others.
static Value getPointerSource(Operation *op) {
  if (auto present = dyn_cast<PresentOp>(op))
    return present.getSource();
  if (auto extract = dyn_cast<memref::ExtractAlignedPointerAsIndexOp>(op))
    return extract.getSource();
  return Value();
}

static SmallVector<int64_t> getStrides(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)type.getStridesAndOffset(
      strides, offset); // the kernel's verifier has seen to it
  return strides;
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

SmallVector<Param> mlafix::collectParams(KernelOp kernel, unsigned last) {
  unsigned count = kernel.getNumArguments() - last;
  SmallVector<SmallVector<bool>> usesSize(count), usesStride(count);
  SmallVector<bool> usesPointer(count);
  for (unsigned i = 0; i < count; ++i)
    if (auto type = dyn_cast<MemRefType>(kernel.getArgumentTypes()[i])) {
      usesSize[i].resize(type.getRank());
      usesStride[i].resize(type.getRank());
    }
  kernel.walk([&](Operation *op) {
    if (auto dim = dyn_cast<memref::DimOp>(op)) {
      if (BlockArgument argument = getKernelArgument(dim.getSource()))
        if (std::optional<int64_t> index = dim.getConstantIndex())
          usesSize[argument.getArgNumber()][*index] = true;
      return;
    }
    if (Value memref = getPointerSource(op)) {
      usesPointer[getKernelArgument(memref).getArgNumber()] = true;
      return;
    }
    std::optional<LoweredAccess> access = getAccess(op);
    BlockArgument argument =
        access ? getKernelArgument(access->memref) : BlockArgument();
    if (!argument)
      return;
    usesPointer[argument.getArgNumber()] = true;
    int64_t owner =
        getStrideOwner(kernel.getGuardsAttr(), argument.getArgNumber());
    for (auto [dim, stride] :
         llvm::enumerate(getStrides(access->getMemRefType())))
      if (ShapedType::isDynamic(stride))
        usesStride[owner][dim] = true;
  });

  SmallVector<Param> params;
  for (unsigned i = 0; i < count; ++i) {
    if (!isa<MemRefType>(kernel.getArgumentTypes()[i])) {
      if (!kernel.getArgument(i).use_empty())
        params.push_back({Param::Scalar, i});
      continue;
    }
    if (usesPointer[i])
      params.push_back({Param::Pointer, i});
    for (auto [dim, used] : llvm::enumerate(usesSize[i]))
      if (used)
        params.push_back({Param::Size, i, static_cast<unsigned>(dim)});
    for (auto [dim, used] : llvm::enumerate(usesStride[i]))
      if (used)
        params.push_back({Param::Stride, i, static_cast<unsigned>(dim)});
  }
  return params;
}

Type mlafix::getParamType(KernelOp kernel, const Param &param,
                          unsigned addressSpace) {
  MLIRContext *context = kernel.getContext();
  switch (param.kind) {
  case Param::Pointer:
    return LLVM::LLVMPointerType::get(context, addressSpace);
  case Param::Size:
  case Param::Stride:
    return IntegerType::get(context, 64);
  case Param::Scalar: {
    Type type = kernel.getArgumentTypes()[param.arg];
    if (type.isIndex())
      return IntegerType::get(context, 64);
    return type.isInteger(1) ? IntegerType::get(context, 8) : type;
  }
  }
  llvm_unreachable("all kinds are handled");
}

DictionaryAttr mlafix::describeVariant(KernelOp kernel,
                                       ArrayRef<Param> params) {
  Builder b(kernel.getContext());
  auto number = [&](StringRef name, int64_t value) {
    return b.getNamedAttr(name, b.getI64IntegerAttr(value));
  };
  LayoutAttr layout = kernel.getLayoutAttr();
  SmallVector<Attribute> described;
  for (const Param &param : params) {
    // The last argument, which a launch chooses (GridToGroups.cpp).
    if (layout.isGrouped() && param.arg + 1 == kernel.getNumArguments()) {
      described.push_back(b.getDictionaryAttr(
          b.getNamedAttr("kind", b.getStringAttr("group_threads"))));
      continue;
    }
    constexpr StringLiteral kinds[] = {"pointer", "size", "stride", "scalar"};
    SmallVector<NamedAttribute> fields = {
        b.getNamedAttr("kind", b.getStringAttr(kinds[param.kind])),
        number("arg", param.arg)};
    if (param.kind == Param::Size || param.kind == Param::Stride)
      fields.push_back(number("dim", param.dim));
    described.push_back(b.getDictionaryAttr(fields));
  }
  bool waits =
      kernel
          .walk([](NVVM::GriddepcontrolOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
  SmallVector<NamedAttribute> shape = {
      number("lanes", layout.getLanes()), number("packs", layout.getPacks()),
      number("pack", layout.getPack()), number("rows", layout.getRows())};
  if (layout.isGrouped())
    shape.push_back(number("groups", layout.getGroups()));
  return b.getDictionaryAttr({
      b.getNamedAttr("entry", kernel.getSymNameAttr()),
      b.getNamedAttr("guards", kernel.getGuardsAttr()),
      b.getNamedAttr("params", b.getArrayAttr(described)),
      b.getNamedAttr("geometry", kernel.getGeometryAttr()),
      b.getNamedAttr("layout", b.getDictionaryAttr(shape)),
      b.getNamedAttr("dependent_launch", b.getBoolAttr(waits)),
  });
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

namespace {
class BodyLowering {
public:
  BodyLowering(KernelOp kernel, LLVM::LLVMFuncOp function,
               ArrayRef<Param> params, ValueRange values, unsigned addressSpace)
      : kernel(kernel), function(function), params(params), values(values),
        addressSpace(addressSpace), b(kernel.getContext()) {}

  LogicalResult run();

private:
  LogicalResult lower(Operation *op);
  LogicalResult lowerAccess(Operation *op, const LoweredAccess &access);
  void lowerAlloca(memref::AllocaOp op);

  Value find(Param::Kind kind, unsigned arg, unsigned dim = 0) {
    for (auto [param, value] : llvm::zip(params, values))
      if (param.kind == kind && param.arg == arg && param.dim == dim)
        return value;
    return {};
  }
  Value toIndex(Location loc, Value i64) {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), i64);
  }
  Value i64Constant(Location loc, int64_t value) {
    return arith::ConstantIntOp::create(b, loc, value, 64);
  }

  KernelOp kernel;
  LLVM::LLVMFuncOp function;
  ArrayRef<Param> params;
  ValueRange values;
  unsigned addressSpace;
  OpBuilder b;
  llvm::DenseMap<Value, Value> localPointers;
};
} // namespace

/// Elements in memory are what LLVM can address: a byte for a boolean, no
/// signs.
static Type getMemoryType(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (element.isInteger(1) || element.isUnsignedInteger(8) ||
      isa<Float8E4M3FNType>(element))
    element = IntegerType::get(type.getContext(), 8);
  if (auto vector = dyn_cast<VectorType>(type))
    return VectorType::get(vector.getShape(), element);
  return element;
}

LogicalResult BodyLowering::lowerAccess(Operation *op,
                                        const LoweredAccess &access) {
  Location loc = op->getLoc();
  b.setInsertionPoint(op);
  Type element = access.getMemRefType().getElementType();
  if (!access.stored && isa<Float8E4M3FNType>(element))
    return op->emitError()
           << "expected elements of bf16, f16 or f32 to load, got "
           << getDTypeName(element) << ", which can only be stored";

  BlockArgument argument = getKernelArgument(access.memref);
  Value base = argument ? find(Param::Pointer, argument.getArgNumber())
                        : localPointers.lookup(access.memref);
  Value offset =
      buildOffset(b, loc, access.indices, getStrides(access.getMemRefType()),
                  [&](unsigned dim) {
                    int64_t owner = getStrideOwner(kernel.getGuardsAttr(),
                                                   argument.getArgNumber());
                    return find(Param::Stride, owner, dim);
                  });
  Type memory = getMemoryType(access.type);
  Value pointer = base;
  if (offset)
    pointer = LLVM::GEPOp::create(b, loc, base.getType(),
                                  getElementTypeOrSelf(memory), base, offset);

  if (auto prefetch = dyn_cast<memref::PrefetchOp>(op)) {
    LLVM::Prefetch::create(b, loc, pointer, prefetch.getIsWrite(),
                           prefetch.getLocalityHint(),
                           prefetch.getIsDataCache());
  } else if (!access.stored) {
    Value value;
    if (access.mask) {
      // Booleans are bytes in memory.
      Value none = access.passThru;
      if (getElementTypeOrSelf(access.type).isInteger(1))
        none = arith::ExtUIOp::create(b, loc, memory, none);
      else if (memory != access.type)
        none = UnrealizedConversionCastOp::create(b, loc, memory, none)
                   .getResult(0);
      value = LLVM::MaskedLoadOp::create(b, loc, memory, pointer, access.mask,
                                         none, access.alignment);
    } else {
      value = LLVM::LoadOp::create(b, loc, memory, pointer, access.alignment);
    }
    if (getElementTypeOrSelf(access.type).isInteger(1)) {
      Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(memory));
      value =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zero);
    }
    // Unsigned and signless bytes are the same value to the body.
    if (value.getType() != op->getResult(0).getType())
      value = UnrealizedConversionCastOp::create(
                  b, loc, op->getResult(0).getType(), value)
                  .getResult(0);
    op->getResult(0).replaceAllUsesWith(value);
  } else {
    Value value = access.stored;
    if (getElementTypeOrSelf(access.type).isInteger(1))
      value = arith::ExtUIOp::create(b, loc, memory, value);
    else if (value.getType() != memory)
      value = UnrealizedConversionCastOp::create(b, loc, memory, value)
                  .getResult(0);
    LLVM::StoreOp::create(b, loc, value, pointer, access.alignment,
                          /*isVolatile=*/false, access.isStreamed);
  }
  op->erase();
  return success();
}

/// Shared memory of a GPU's block becomes a global of the module, a buffer of a
/// CPU's row a part of the stack.
void BodyLowering::lowerAlloca(memref::AllocaOp op) {
  constexpr unsigned kShared = 3;
  MemRefType type = op.getType();
  if (!type.getMemorySpace()) {
    b.setInsertionPoint(op);
    Value count = i64Constant(op.getLoc(), type.getNumElements());
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    localPointers[op] = LLVM::AllocaOp::create(
        b, op.getLoc(), pointer, getMemoryType(type.getElementType()), count,
        /*alignment=*/64);
    return;
  }
  b.setInsertionPoint(function);
  std::string name =
      (function.getSymName() + "_shared" + std::to_string(localPointers.size()))
          .str();
  auto array =
      LLVM::LLVMArrayType::get(type.getElementType(), type.getNumElements());
  auto global =
      LLVM::GlobalOp::create(b, op.getLoc(), array, /*isConstant=*/false,
                             LLVM::Linkage::Internal, name,
                             /*value=*/Attribute(), /*alignment=*/16, kShared);
  b.setInsertionPoint(op);
  localPointers[op] = LLVM::AddressOfOp::create(b, op.getLoc(), global);
}

LogicalResult BodyLowering::lower(Operation *op) {
  Location loc = op->getLoc();
  if (std::optional<LoweredAccess> access = getAccess(op))
    return lowerAccess(op, *access);
  if (auto alloca = dyn_cast<memref::AllocaOp>(op)) {
    lowerAlloca(alloca);
    return success();
  }
  b.setInsertionPoint(op);
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    BlockArgument argument = getKernelArgument(dim.getSource());
    std::optional<int64_t> index = dim.getConstantIndex();
    if (!argument || !index)
      return op->emitError() << "expected a dim of a kernel argument at a "
                                "constant position, got another";
    Value size = find(Param::Size, argument.getArgNumber(), *index);
    dim.getResult().replaceAllUsesWith(toIndex(loc, size));
    op->erase();
    return success();
  }
  if (Value memref = getPointerSource(op)) {
    Value pointer =
        find(Param::Pointer, getKernelArgument(memref).getArgNumber());
    Value result;
    if (isa<PresentOp>(op)) {
      Value null = LLVM::ZeroOp::create(b, loc, pointer.getType());
      result =
          LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ne, pointer, null);
    } else {
      result = toIndex(
          loc, LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), pointer));
    }
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }
  return success();
}

LogicalResult BodyLowering::run() {
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    if (op != kernel.getOperation() && failed(lower(op)))
      return failure();
  kernel.walk([](memref::AllocaOp op) { op.erase(); });

  Location loc = kernel.getLoc();
  Block &entry = function.getBody().front();
  b.setInsertionPointToEnd(&entry);
  for (auto [param, value] : llvm::zip(params, values)) {
    if (param.kind != Param::Scalar)
      continue;
    Value scalar = value;
    BlockArgument argument = kernel.getArgument(param.arg);
    if (argument.getType().isIndex())
      scalar = toIndex(loc, scalar);
    else if (argument.getType().isInteger(1))
      scalar =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, scalar,
                                arith::ConstantIntOp::create(b, loc, 0, 8));
    argument.replaceAllUsesWith(scalar);
  }
  Block &body = kernel.getBody().front();
  body.getTerminator()->erase();
  entry.getOperations().splice(entry.end(), body.getOperations());
  b.setInsertionPointToEnd(&entry);
  LLVM::ReturnOp::create(b, loc, ValueRange());
  return success();
}

LogicalResult mlafix::lowerBody(KernelOp kernel, LLVM::LLVMFuncOp function,
                                ArrayRef<Param> params, ValueRange values,
                                unsigned addressSpace) {
  return BodyLowering(kernel, function, params, values, addressSpace).run();
}

//===----------------------------------------------------------------------===//
// Math
//===----------------------------------------------------------------------===//

LogicalResult mlafix::checkRemainingMath(Operation *op) {
  if (!isa_and_nonnull<math::MathDialect>(op->getDialect()) ||
      isa<math::FmaOp, math::SqrtOp, math::AbsFOp, math::AbsIOp, math::FloorOp,
          math::CeilOp, math::CopySignOp, math::CountLeadingZerosOp,
          math::CtPopOp>(op))
    return success();
  return op->emitError()
         << "expected math.exp, exp2, log, log2, sqrt, rsqrt, fma, absf, "
            "absi, floor, ceil, copysign, ctlz or ctpop, got '"
         << op->getName() << "'";
}
