//===- BuilderArithmetic.cpp - constants, arithmetic, conversions, rows ---===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Frontend/BuilderImpl.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlafix;
using Impl = KernelBuilder::Impl;
using Kind = ValueType::Kind;

ValueType Impl::typeOf(Type type) {
  ValueType result;
  if (auto state = dyn_cast<StateType>(type)) {
    result.kind = Kind::State;
    result.dim = state.getDim().getText();
    result.base = state.getBase().getValue().str();
    result.sink = state.getSink();
    return result;
  }
  result.kind = isRowTile(type) ? Kind::Row : Kind::Scalar;
  result.dtype = getDTypeName(getElementTypeOrSelf(type)).str();
  if (isRowTile(type)) {
    DimAttr dim = getTileDim(type);
    result.dim = dim.isBounded() ? dim.getName().str() : dim.getText();
  }
  return result;
}

mlir::Value Impl::constantLike(Type type, double value,
                               const SourceLocation &location) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr attribute =
      element.isF32()
          ? TypedAttr(builder.getF32FloatAttr(value))
          : TypedAttr(builder.getIntegerAttr(element, int64_t(value)));
  mlir::Value scalar = make<arith::ConstantOp>(location, attribute);
  return isRowTile(type) ? make<SplatOp>(location, type, scalar).getResult()
                         : scalar;
}

mlir::Value Impl::retypeConstant(mlir::Value value, Type type,
                                 const SourceLocation &location) {
  APInt number;
  bool isNumber = type.isF32() || type.isInteger(64) || type.isIndex();
  if (!isNumber || !value.getType().isInteger(32) ||
      !matchPattern(value, m_ConstantInt(&number)))
    return value;
  return constantLike(type, double(number.getSExtValue()), location);
}

namespace {
/// The kinds of element types that an operation can accept.
enum class Domain { Float, Integer, Bool, Other };
} // namespace

static Domain domainOf(mlir::Value value, bool isUnsigned) {
  Type element = getElementTypeOrSelf(value.getType());
  if (isUnsigned)
    return Domain::Other;
  if (element.isF32())
    return Domain::Float;
  if (element.isInteger(1))
    return Domain::Bool;
  if (element.isIndex() || element.isInteger(32) || element.isInteger(64))
    return Domain::Integer;
  return Domain::Other;
}

/// Lists the element types that unary() or binary() accepts for `op`, for
/// example "f32, i32 or i64".
static std::string listTypes(std::string_view op) {
  SmallVector<llvm::StringRef> types;
  auto add = [&](std::string_view name, Domain domain) {
    if (name != op)
      return;
    if (domain == Domain::Float)
      types.push_back("f32");
    else if (domain == Domain::Bool)
      types.push_back("bool");
    else
      types.append({"index", "i32", "i64"});
  };
#define MLAFIX_UNARY(NAME, DOMAIN, OP) add(NAME, Domain::DOMAIN);
#define MLAFIX_BINARY(NAME, DOMAIN, OP) add(NAME, Domain::DOMAIN);
#define MLAFIX_FUNCTION(NAME, OP, SUMMARY) MLAFIX_UNARY(NAME, Float, OP)
#include "mlafix/Functions.def"
  add("neg", Domain::Integer);
  add("not", Domain::Bool);
  add("mod", Domain::Integer);
  if (types.empty())
    return "a known operation";
  std::string last = types.pop_back_val().str();
  return types.empty() ? last : llvm::join(types, ", ") + " or " + last;
}

/// Returns the end of a message: the cast that a Python kernel needs so that
/// both operands have one number type. Returns "" if no cast helps.
static std::string hintOfConversion(const ValueType &left,
                                    const ValueType &right) {
  auto isNumber = [](const ValueType &type) {
    return Impl::isArithmetic(type) &&
           llvm::is_contained({"f32", "i32", "i64", "index"}, type.dtype);
  };
  if (left.dtype == right.dtype)
    return "";
  for (auto [one, other] : {std::pair(&left, &right), std::pair(&right, &left)})
    if (one->dtype == "bool" && isNumber(*other))
      return "; " + other->dtype + "(…) makes 1 of true and 0 of false";
  if (!isNumber(left) || !isNumber(right))
    return "";
  bool hasFloat = left.dtype == "f32" || right.dtype == "f32";
  const ValueType &kept = left.kind == Kind::Row ? left : right;
  std::string to = hasFloat                 ? "f32"
                   : kept.kind == Kind::Row ? kept.dtype
                                            : "i64";
  return "; " + to + "(…) converts";
}

/// Returns true if a row along `groups` has one element for each group of a row
/// along `dim`.
static bool isOfGroups(DimAttr groups, DimAttr dim) {
  return dim.isProduct() && dim.getGroups() == groups;
}

/// Returns true if one operation can combine rows `a` and `b`: their dims are
/// equal, or one row has an element for each group of the other.
static bool canMeet(mlir::Value a, mlir::Value b) {
  DimAttr left = getTileDim(a.getType()), right = getTileDim(b.getType());
  return left == right || isOfGroups(left, right) || isOfGroups(right, left);
}

/// Broadcasts `value` to the dim of the row `other`. `value` may be a scalar,
/// or a row with one element for each group of that dim. Returns any other
/// `value` unchanged.
static mlir::Value broadcastTo(Impl &impl, mlir::Value value, mlir::Value other,
                               const SourceLocation &location) {
  if (!isRowTile(other.getType()))
    return value;
  DimAttr dim = getTileDim(other.getType());
  Type row = getRowTileType(dim, getElementTypeOrSelf(value.getType()));
  if (!isRowTile(value.getType()))
    return impl.make<SplatOp>(location, row, value);
  if (isOfGroups(getTileDim(value.getType()), dim))
    return impl.make<BroadcastOp>(location, row, value);
  return value;
}

/// Broadcasts two operands to one type and sets `a` and `b` to the results. A
/// scalar becomes a row. A row with one element for each group becomes a row
/// with that element in all members of the group. Reports an error and returns
/// false if the types do not match.
static bool matchOperands(Impl &impl, std::string_view op,
                          KernelBuilder::Value lhs, KernelBuilder::Value rhs,
                          mlir::Value &a, mlir::Value &b,
                          const SourceLocation &location) {
  if (!impl.checkUnfinished(location) ||
      !impl.checkVisible({lhs, rhs}, "operands", location))
    return false;
  ValueType left = impl.type(lhs), right = impl.type(rhs);
  bool fits = Impl::isArithmetic(left) && Impl::isArithmetic(right) &&
              left.dtype == right.dtype &&
              (left.kind != Kind::Row || right.kind != Kind::Row ||
               canMeet(impl.get(lhs), impl.get(rhs)));
  if (!fits)
    return impl.fail(location) << "expected scalars or rows of one type for '"
                               << op << "', got " << left.str() << " and "
                               << right.str() << hintOfConversion(left, right);
  mlir::Value x = impl.get(lhs), y = impl.get(rhs);
  b = broadcastTo(impl, y, x, location);
  a = broadcastTo(impl, x, y, location);
  return a && b;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

KernelBuilder::Value KernelBuilder::constant(double value,
                                             const SourceLocation &location) {
  if (!impl->checkUnfinished(location))
    return {};
  return impl->wrap(impl->make<arith::ConstantOp>(
      location, impl->builder.getFloatAttr(impl->builder.getF32Type(), value)));
}

KernelBuilder::Value KernelBuilder::constant(std::int64_t value,
                                             std::string_view dtype,
                                             const SourceLocation &location) {
  if (!impl->checkUnfinished(location))
    return {};
  Builder &b = impl->builder;
  bool isBool = dtype == "bool", isU8 = dtype == "u8";
  Type type = llvm::StringSwitch<Type>(dtype)
                  .Case("i32", b.getI32Type())
                  .Case("i64", b.getI64Type())
                  .Cases({"i8", "u8"}, b.getI8Type())
                  .Case("index", b.getIndexType())
                  .Case("bool", b.getI1Type())
                  .Default({});
  if (!type)
    return impl->fail(location)
           << "expected i8, u8, i32, i64, index or bool for an integer, got '"
           << dtype << "'";
  int64_t width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  int64_t least = isBool || isU8 ? 0 : llvm::minIntN(width),
          most = isBool ? 1
                 : isU8 ? 255
                        : llvm::maxIntN(width);
  if (value < least || value > most) {
    Failure error = impl->fail(location);
    error << "expected an integer that is in the range of " << dtype << ", "
          << least << " to " << most << ", got " << value;
    if (type.isInteger(32))
      error << "; i64(…) is one of 64 bits, and i32(i64(…)) its low bits";
    return {};
  }
  IntegerAttr attribute =
      isBool
          ? cast<IntegerAttr>(b.getBoolAttr(value != 0))
          : IntegerAttr::get(type, isU8 ? static_cast<int8_t>(value) : value);
  return impl->wrap(
      impl->make<arith::ConstantOp>(location, TypedAttr(attribute)), isU8);
}

//===----------------------------------------------------------------------===//
// Unary
//===----------------------------------------------------------------------===//

KernelBuilder::Value KernelBuilder::unary(std::string_view op, Value operand,
                                          const SourceLocation &location) {
  if (!impl->checkUnfinished(location) ||
      !impl->checkVisible(operand, "operand", location))
    return {};
  mlir::Value x = impl->get(operand);
  Domain domain = Impl::isArithmetic(impl->type(operand))
                      ? domainOf(x, impl->isUnsigned(operand))
                      : Domain::Other;
#define MLAFIX_UNARY(NAME, DOMAIN, OP)                                         \
  if (op == NAME && domain == Domain::DOMAIN)                                  \
    return impl->wrap(impl->make<OP>(location, x));
#define MLAFIX_FUNCTION(NAME, OP, SUMMARY) MLAFIX_UNARY(NAME, Float, OP)
#include "mlafix/Functions.def"
  if (op == "neg" && domain == Domain::Integer)
    return impl->wrap(impl->make<arith::SubIOp>(
        location, impl->constantLike(x.getType(), 0, location), x));
  if (op == "not" && domain == Domain::Bool)
    return impl->wrap(impl->make<arith::XOrIOp>(
        location, x, impl->constantLike(x.getType(), 1, location)));
  return impl->failType(op, listTypes(op), operand, location);
}

//===----------------------------------------------------------------------===//
// Binary
//===----------------------------------------------------------------------===//

/// Creates a - b * floor(a / b). It is the remainder of truncated division,
/// plus one divisor if the remainder's sign differs from the divisor's.
static mlir::Value floorRemainder(Impl &impl, mlir::Value a, mlir::Value b,
                                  const SourceLocation &location) {
  using P = arith::CmpIPredicate;
  mlir::Value zero = impl.constantLike(a.getType(), 0, location);
  auto is = [&](P predicate, mlir::Value x) -> mlir::Value {
    return impl.make<arith::CmpIOp>(location, predicate, x, zero);
  };
  mlir::Value remainder = impl.make<arith::RemSIOp>(location, a, b);
  mlir::Value signs = impl.make<arith::XOrIOp>(location, remainder, b);
  mlir::Value isOff = impl.make<arith::AndIOp>(location, is(P::ne, remainder),
                                               is(P::slt, signs));
  mlir::Value next = impl.make<arith::AddIOp>(location, remainder, b);
  return impl.make<arith::SelectOp>(location, isOff, next, remainder);
}

KernelBuilder::Value KernelBuilder::binary(std::string_view op, Value lhs,
                                           Value rhs,
                                           const SourceLocation &location) {
  mlir::Value a, b;
  if (!matchOperands(*impl, op, lhs, rhs, a, b, location))
    return {};
  Domain domain = domainOf(a, impl->isUnsigned(lhs));
#define MLAFIX_BINARY(NAME, DOMAIN, OP)                                        \
  if (op == NAME && domain == Domain::DOMAIN)                                  \
    return impl->wrap(impl->make<OP>(location, a, b));
#include "mlafix/Functions.def"
  if (op == "mod" && domain == Domain::Integer)
    return impl->wrap(floorRemainder(*impl, a, b, location));
  return impl->failType(op, listTypes(op), lhs, location);
}

KernelBuilder::Value KernelBuilder::fma(Value a, Value b, Value c,
                                        const SourceLocation &location) {
  mlir::Value x, y, z, again;
  if (!matchOperands(*impl, "fma", a, b, x, y, location))
    return {};
  Value product = impl->wrap(x);
  if (!matchOperands(*impl, "fma", product, c, x, z, location))
    return {};
  // `x` now has the type to which all operands are broadcast. Broadcast `y` to
  // this type, too.
  if (!matchOperands(*impl, "fma", b, impl->wrap(x), y, again, location))
    return {};
  if (domainOf(x, impl->isUnsigned(a)) != Domain::Float)
    return impl->failType("fma", "f32", a, location);
  return impl->wrap(impl->make<math::FmaOp>(location, x, y, z));
}

KernelBuilder::Value KernelBuilder::compare(std::string_view op, Value lhs,
                                            Value rhs,
                                            const SourceLocation &location) {
  mlir::Value a, b;
  if (!matchOperands(*impl, op, lhs, rhs, a, b, location))
    return {};
  using I = arith::CmpIPredicate;
  using F = arith::CmpFPredicate;
  struct Entry {
    const char *name;
    I isSigned, isUnsigned;
    F isFloat;
  };
  static constexpr Entry table[] = {
      {"eq", I::eq, I::eq, F::OEQ},   {"ne", I::ne, I::ne, F::UNE},
      {"lt", I::slt, I::ult, F::OLT}, {"le", I::sle, I::ule, F::OLE},
      {"gt", I::sgt, I::ugt, F::OGT}, {"ge", I::sge, I::uge, F::OGE},
  };
  const Entry *entry =
      llvm::find_if(table, [&](const Entry &e) { return op == e.name; });
  if (entry == std::end(table))
    return impl->fail(location)
           << "expected eq, ne, lt, le, gt or ge, got '" << op << "'";
  Type element = getElementTypeOrSelf(a.getType());
  if (element.isF32())
    return impl->wrap(
        impl->make<arith::CmpFOp>(location, entry->isFloat, a, b));
  bool isUnsigned = element.isInteger(1) || impl->isUnsigned(lhs);
  return impl->wrap(impl->make<arith::CmpIOp>(
      location, isUnsigned ? entry->isUnsigned : entry->isSigned, a, b));
}

KernelBuilder::Value KernelBuilder::select(Value condition, Value ifTrue,
                                           Value ifFalse,
                                           const SourceLocation &location) {
  if (!impl->checkUnfinished(location) ||
      !impl->checkVisible({condition, ifTrue, ifFalse}, "operands", location))
    return {};
  ValueType on = impl->type(condition), yes = impl->type(ifTrue),
            no = impl->type(ifFalse);
  if (on.dtype != "bool" || !Impl::isArithmetic(on))
    return impl->fail(location)
           << "expected a bool to choose by, got " << on.str();
  mlir::Value which = impl->get(condition), a = impl->get(ifTrue),
              b = impl->get(ifFalse);
  Type joined = Impl::joinTypes(a.getType(), b.getType());
  if (yes.kind == Kind::State && joined && on.kind == Kind::Scalar) {
    Location loc = impl->at(location);
    return impl->wrap(impl->make<arith::SelectOp>(location, which,
                                                  impl->widen(a, joined, loc),
                                                  impl->widen(b, joined, loc)));
  }
  if (!matchOperands(*impl, "select", ifTrue, ifFalse, a, b, location))
    return {};
  if (on.kind == Kind::Row) {
    mlir::Value rows = a;
    a = broadcastTo(*impl, a, which, location);
    b = broadcastTo(*impl, b, which, location);
    which = broadcastTo(*impl, which, rows, location);
    if (!a || !b || !which)
      return {};
  }
  if (on.kind == Kind::Row &&
      getTileDim(a.getType()) != getTileDim(which.getType()))
    return impl->fail(location)
           << "expected a condition and values along one dim to choose from, "
              "got "
           << on.str() << " and " << impl->type(impl->wrap(a)).str();
  return impl->wrap(impl->make<arith::SelectOp>(location, which, a, b),
                    impl->isUnsigned(ifTrue));
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

namespace {
/// Converts a scalar or a row to another element type.
class Cast {
public:
  Cast(Impl &impl, KernelBuilder::Value operand, const SourceLocation &location)
      : impl(impl), location(location), x(impl.get(operand)),
        source(getElementTypeOrSelf(x.getType())),
        widensUnsigned(source.isInteger(1) || impl.isUnsigned(operand)) {}

  KernelBuilder::Value toBool();
  KernelBuilder::Value toFloat(Type element);
  /// Converts to `element`, which is index, i32 or i64.
  KernelBuilder::Value toInteger(Type element);
  /// Rounds f32 values to `element`, a narrower float. The result is f32 again.
  KernelBuilder::Value round(Type element);

private:
  /// Returns the operand's type with `element` as the element type.
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
  // Convert an index through i64, which holds all its values.
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
    // Convert an index to i64 and truncate that. A cast to i32 and one back to
    // index would be folded away, and the truncation with them.
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

KernelBuilder::Value Cast::round(Type element) {
  // Clamp first: casts to fp8 saturate, but upstream's folds do not.
  if (isFp8(element)) {
    const llvm::fltSemantics &fp8 =
        mlir::cast<FloatType>(element).getFloatSemantics();
    bool isPower = isa<Float8E8M0FNUType>(element);
    float most = APFloat::getLargest(fp8).convertToFloat();
    float least = isPower ? 0x1p-127f : -most;
    auto bound = [&](float number) {
      return impl.constantLike(x.getType(), number, location);
    };
    x = impl.make<arith::MinimumFOp>(location, x, bound(most));
    x = impl.make<arith::MaximumFOp>(location, x, bound(least));
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
  if (!element || !Impl::isArithmetic(from))
    return impl->fail(location)
           << "expected a conversion of a scalar or a row to f32, i32, i64, "
              "index or bool, or from f32 to another float of whole bytes, got "
              "one of "
           << from.str() << " to '" << dtype << "'";
  if (from.dtype == dtype)
    return operand;
  // Rows cannot hold an index, which has no size in memory.
  if (element.isIndex() && from.kind == Kind::Row)
    return impl->failType("index", "a scalar", operand, location);
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
    return impl->failType("splat", "a dim and a scalar, not of index or u8,",
                          scalar, location);
  mlir::Value value = impl->get(scalar);
  return impl->wrap(impl->make<SplatOp>(
      location, getRowTileType(impl->dimOf(dim), value.getType()), value));
}

KernelBuilder::Value KernelBuilder::iota(std::string_view dim,
                                         const SourceLocation &location) {
  if (!impl->checkOpen(location))
    return {};
  if (dim.empty())
    return impl->fail(location)
           << "expected the name of a dim for an iota, got none";
  Type row = getRowTileType(impl->dimOf(dim), impl->builder.getI32Type());
  return impl->wrap(impl->make<IotaOp>(location, row));
}

/// Returns the dim of the result of a reduction or scan along `name`. `name`
/// must be the second factor of the row's dim; otherwise reports an error and
/// returns null.
static DimAttr getGroupsAlong(Impl &impl, mlir::Value row,
                              std::string_view name, llvm::StringRef what,
                              const SourceLocation &location) {
  DimAttr dim = getTileDim(row.getType());
  if (dim.isProduct() && dim.getGroup().getText() == name)
    return dim.getGroups();
  Failure error = impl.fail(location);
  if (dim.isProduct())
    error << "expected " << dim.getGroup().str() << ", the second factor of "
          << dim.str() << ", to " << what << " along, got ";
  else
    error << "expected no factor to " << what << " along, since the row's dim "
          << dim.str() << " is no product such as \"(G K)\", got ";
  error << "\"" << name << "\"";
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
  if (!kind || (isIndex && *kind == ReduceKind::add))
    return impl->fail(location)
           << "expected add, max, min, argmax or argmin to reduce by, got '"
           << op << "'";
  mlir::Value value = impl->get(row);
  if (!isRowTile(value.getType()))
    return impl->failType(op, "a row", row, location);
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

KernelBuilder::Values KernelBuilder::topK(Value row, std::int64_t count,
                                          std::string_view along,
                                          const SourceLocation &location) {
  if (!impl->checkOpen(location) || !impl->checkVisible(row, "row", location))
    return {};
  mlir::Value value = impl->get(row);
  if (count < 1 || !isRowTile(value.getType()))
    return impl->fail(location)
           << "expected a row, and a number of elements of at least 1, got "
           << impl->spell(row) << " and " << count;
  Type element = getElementTypeOrSelf(value.getType()),
       index = impl->builder.getI32Type();
  if (!along.empty()) {
    DimAttr groups = getGroupsAlong(*impl, value, along, "reduce", location);
    if (!groups)
      return {};
    element = getRowTileType(groups, element);
    index = getRowTileType(groups, index);
  }
  auto best = impl->make<TopKOp>(location, SmallVector<Type>(count, element),
                                 SmallVector<Type>(count, index), value);
  return best ? impl->wrapAll(best->getResults()) : Values();
}

KernelBuilder::Value KernelBuilder::swap(Value row, std::int64_t block,
                                         const SourceLocation &location) {
  if (!impl->checkOpen(location) || !impl->checkVisible(row, "row", location))
    return {};
  mlir::Value value = impl->get(row);
  if (!isRowTile(value.getType()))
    return impl->failType("swap", "a row", row, location);
  return impl->wrap(impl->make<SwapOp>(location, value, block));
}

KernelBuilder::Value KernelBuilder::scan(std::string_view op, Value row,
                                         std::string_view along,
                                         const SourceLocation &location) {
  if (!impl->checkOpen(location) || !impl->checkVisible(row, "row", location))
    return {};
  std::optional<ReduceKind> kind = symbolizeReduceKind(op);
  if (!kind)
    return impl->fail(location)
           << "expected add, max or min to scan by, got '" << op << "'";
  mlir::Value value = impl->get(row);
  if (!isRowTile(value.getType()))
    return impl->failType("scan", "a row", row, location);
  if (!along.empty() && !getGroupsAlong(*impl, value, along, "scan", location))
    return {};
  return impl->wrap(
      impl->make<ScanOp>(location, *kind, value, /*inGroups=*/!along.empty()));
}
