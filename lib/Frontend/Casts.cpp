//===- Casts.cpp - conversions between element types, rows and scalars ----===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Frontend/BuilderImpl.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlafix;

using Impl = KernelBuilder::Impl;
using Kind = ValueType::Kind;

namespace {
/// Converts one scalar or row.
class Cast {
public:
  Cast(Impl &impl, KernelBuilder::Value operand, const SourceLocation &location)
      : impl(impl), location(location), x(impl.get(operand)),
        source(getElementTypeOrSelf(x.getType())),
        widensUnsigned(source.isInteger(1) || impl.isUnsigned(operand)) {}

  KernelBuilder::Value toBool();
  KernelBuilder::Value toFloat(Type element);
  /// `element`: index, i32 or i64.
  KernelBuilder::Value toInteger(Type element);
  /// f32 rounded to what `element`, a narrower float, holds.
  KernelBuilder::Value round(Type element);

private:
  mlir::Value constant(float number);
  /// The operand's type with `element` in place of its own.
  Type typed(Type element) const {
    return isRowTile(x.getType())
               ? getRowTileType(getTileDim(x.getType()), element)
               : element;
  }
  template <typename OpTy> KernelBuilder::Value cast(Type element) {
    return impl.wrap(impl.make<OpTy>(location, typed(element), x));
  }
  Type i64() const { return impl.builder.getI64Type(); }

  Impl &impl;
  const SourceLocation &location;
  mlir::Value x;
  Type source;
  bool widensUnsigned;
};
} // namespace

KernelBuilder::Value Cast::toBool() {
  mlir::Value zero = impl.constantLike(x.getType(), 0, location);
  if (source.isF32())
    return impl.wrap(
        impl.make<arith::CmpFOp>(location, arith::CmpFPredicate::UNE, x, zero));
  return impl.wrap(
      impl.make<arith::CmpIOp>(location, arith::CmpIPredicate::ne, x, zero));
}

KernelBuilder::Value Cast::toFloat(Type element) {
  // An index goes through i64, which holds it.
  if (source.isIndex())
    x = impl.make<arith::IndexCastOp>(location, i64(), x);
  return widensUnsigned ? cast<arith::UIToFPOp>(element)
                        : cast<arith::SIToFPOp>(element);
}

KernelBuilder::Value Cast::toInteger(Type element) {
  if (source.isF32()) {
    if (!element.isIndex())
      return cast<arith::FPToSIOp>(element);
    x = impl.make<arith::FPToSIOp>(location, i64(), x);
    return cast<arith::IndexCastOp>(element);
  }
  if (source.isIndex() && !element.isInteger(64)) {
    // Two casts of an index fold to none, whatever bits they dropped between
    // them; an index is a number of 64 bits, and those are truncated.
    x = impl.make<arith::IndexCastOp>(location, i64(), x);
    return cast<arith::TruncIOp>(element);
  }
  if (element.isIndex() || source.isIndex())
    return widensUnsigned ? cast<arith::IndexCastUIOp>(element)
                          : cast<arith::IndexCastOp>(element);
  if (element.getIntOrFloatBitWidth() < source.getIntOrFloatBitWidth())
    return cast<arith::TruncIOp>(element);
  return widensUnsigned ? cast<arith::ExtUIOp>(element)
                        : cast<arith::ExtSIOp>(element);
}

mlir::Value Cast::constant(float number) {
  mlir::Value scalar = impl.make<arith::ConstantOp>(
      location, impl.builder.getF32FloatAttr(number));
  return isRowTile(x.getType())
             ? impl.make<SplatOp>(location, x.getType(), scalar).getResult()
             : scalar;
}

KernelBuilder::Value Cast::round(Type element) {
  // fp8 saturates, and upstream's folds would not.
  if (isFp8(element)) {
    const llvm::fltSemantics &fp8 =
        mlir::cast<FloatType>(element).getFloatSemantics();
    bool isPower = isa<Float8E8M0FNUType>(element);
    float most = APFloat::getLargest(fp8).convertToFloat();
    float least = isPower ? 0x1p-127f : -most;
    x = impl.make<arith::MinimumFOp>(location, x, constant(most));
    x = impl.make<arith::MaximumFOp>(location, x, constant(least));
  }
  x = impl.make<arith::TruncFOp>(location, typed(element), x);
  return cast<arith::ExtFOp>(impl.builder.getF32Type());
}

KernelBuilder::Value KernelBuilder::convert(Value operand,
                                            std::string_view dtype,
                                            const SourceLocation &location) {
  if (!impl->checkUnfinished(location) ||
      !impl->checkVisible(operand, "operand", location))
    return {};
  ValueType from = impl->type(operand);
  Builder &builder = impl->builder;
  Type element = llvm::StringSwitch<Type>(dtype)
                     .Case("f32", builder.getF32Type())
                     .Case("i32", builder.getI32Type())
                     .Case("i64", builder.getI64Type())
                     .Case("index", builder.getIndexType())
                     .Case("bool", builder.getI1Type())
                     .Default({});
  Type inMemory = getDTypeByName(impl->context.get(), llvm::StringRef(dtype));
  if (inMemory && from.dtype == "f32" && Impl::isArithmetic(from) &&
      isa<FloatType>(inMemory) && !inMemory.isF32() && !sharesByte(inMemory))
    return Cast(*impl, operand, location).round(inMemory);
  if (!element || !Impl::isArithmetic(from)) {
    impl->fail(location)
        << "expected a scalar or a row to convert to f32, i32, i64, index or "
           "bool, or one of f32 to round to another float, got "
        << from.str() << " to '" << llvm::StringRef(dtype) << "'";
    return {};
  }
  if (from.dtype == dtype)
    return operand;
  // An index has no size in memory, so a row cannot hold it.
  if (element.isIndex() && from.kind == Kind::Row)
    return impl->failType("index", operand, location);
  Cast cast(*impl, operand, location);
  if (element.isInteger(1))
    return cast.toBool();
  return element.isF32() ? cast.toFloat(element) : cast.toInteger(element);
}

KernelBuilder::Value KernelBuilder::splat(Value scalar, std::string_view dim,
                                          const SourceLocation &location) {
  if (!impl->checkOpen(location) ||
      !impl->checkVisible(scalar, "scalar", location))
    return {};
  ValueType type = impl->type(scalar);
  if (type.kind != Kind::Scalar || type.dtype == "index" ||
      type.dtype == "u8" || dim.empty())
    return impl->failType("splat", scalar, location);
  mlir::Value value = impl->get(scalar);
  return impl->wrap(impl->make<SplatOp>(
      location, getRowTileType(impl->dimOf(dim), value.getType()), value));
}

KernelBuilder::Value KernelBuilder::iota(std::string_view dim,
                                         const SourceLocation &location) {
  if (!impl->checkOpen(location))
    return {};
  if (dim.empty()) {
    impl->fail(location) << "expected the name of a dim for an iota, got none";
    return {};
  }
  Type row = getRowTileType(impl->dimOf(dim), impl->builder.getI32Type());
  return impl->wrap(impl->make<IotaOp>(location, row));
}

/// The groups' dim of a row that is reduced or scanned along `name`, its second
/// factor; null, and an error, if it is not that.
static DimAttr getGroupsAlong(Impl &impl, mlir::Value row,
                              std::string_view name, llvm::StringRef what,
                              const SourceLocation &location) {
  DimAttr dim = getTileDim(row.getType());
  if (dim.isProduct() && dim.getGroup().getText() == name)
    return dim.getGroups();
  impl.fail(location)
      << "expected "
      << (dim.isProduct()
              ? dim.getGroup().str() + ", the second factor of " + dim.str()
              : "a row along a product, as \"(G K)\", or none")
      << ", to " << what << " along, got \"" << llvm::StringRef(name) << "\""
      << (dim.isProduct() ? "" : " of a row along " + dim.str());
  return {};
}

KernelBuilder::Value KernelBuilder::reduce(std::string_view op, Value row,
                                           std::string_view along,
                                           const SourceLocation &location) {
  if (!impl->checkOpen(location) || !impl->checkVisible(row, "row", location))
    return {};
  llvm::StringRef name = op;
  bool isIndex = name.consume_front("arg");
  std::optional<ReduceKind> kind = symbolizeReduceKind(name);
  if (!kind || (isIndex && *kind == ReduceKind::add)) {
    impl->fail(location)
        << "expected add, max, min, argmax or argmin to reduce by, got '"
        << llvm::StringRef(op) << "'";
    return {};
  }
  mlir::Value value = impl->get(row);
  if (!isRowTile(value.getType()))
    return impl->failType(op, row, location);
  Type type = isIndex ? impl->builder.getI32Type()
                      : getElementTypeOrSelf(value.getType());
  if (!along.empty()) {
    DimAttr groups = getGroupsAlong(*impl, value, along, "reduce", location);
    if (!groups)
      return {};
    type = getRowTileType(groups, type);
  }
  if (isIndex)
    return impl->wrap(impl->make<ArgReduceOp>(location, type, *kind, value));
  return impl->wrap(impl->make<ReduceOp>(location, type, *kind, value));
}

KernelBuilder::Value KernelBuilder::scan(std::string_view op, Value row,
                                         std::string_view along,
                                         const SourceLocation &location) {
  if (!impl->checkOpen(location) || !impl->checkVisible(row, "row", location))
    return {};
  std::optional<ReduceKind> kind = symbolizeReduceKind(op);
  if (!kind) {
    impl->fail(location) << "expected add, max or min to scan by, got '"
                         << llvm::StringRef(op) << "'";
    return {};
  }
  mlir::Value value = impl->get(row);
  if (!isRowTile(value.getType()))
    return impl->failType("scan", row, location);
  if (!along.empty() && !getGroupsAlong(*impl, value, along, "scan", location))
    return {};
  return impl->wrap(
      impl->make<ScanOp>(location, *kind, value, /*inGroups=*/!along.empty()));
}
