//===- Dim.cpp - dims of rows and their factors ---------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Dim.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlafix;

//===----------------------------------------------------------------------===//
// #mlafix.dim
//===----------------------------------------------------------------------===//

DimAttr DimAttr::get(MLIRContext *context, StringRef name) {
  return get(context, StringAttr::get(context, name), /*inner=*/{},
             /*perGroup=*/false);
}

DimAttr DimAttr::get(MLIRContext *context, int64_t size) {
  return get(context, IntegerAttr::get(IntegerType::get(context, 64), size),
             Attribute(), false);
}

DimAttr DimAttr::getProduct(DimAttr groups, DimAttr group) {
  return get(groups.getContext(), groups.getValue(), group.getValue(), false);
}

DimAttr DimAttr::getGroups() const {
  return get(getContext(), getValue(), Attribute(), false);
}

DimAttr DimAttr::getGroup() const {
  return get(getContext(), getInner(), Attribute(), false);
}

DimAttr DimAttr::getEachGroup() const {
  return get(getContext(), getValue(), getInner(), true);
}

bool DimAttr::isBound() const {
  return isa<IntegerAttr>(getValue()) &&
         (!getInner() || isa<IntegerAttr>(getInner()));
}

int64_t DimAttr::getSize() const {
  auto size = dyn_cast<IntegerAttr>(getValue());
  if (!size)
    return ShapedType::kDynamic;
  if (!isProduct())
    return size.getInt();
  auto group = dyn_cast<IntegerAttr>(getInner());
  return group ? size.getInt() * group.getInt() : ShapedType::kDynamic;
}

StringRef DimAttr::getName() const {
  auto name = dyn_cast<StringAttr>(getValue());
  return name && !getInner() ? name.getValue() : StringRef();
}

SmallVector<StringRef, 2> DimAttr::getNames() const {
  SmallVector<StringRef, 2> names;
  for (Attribute factor : {getValue(), getInner()})
    if (auto name = dyn_cast_if_present<StringAttr>(factor))
      names.push_back(name.getValue());
  return names;
}

DimAttr
DimAttr::bind(function_ref<std::optional<int64_t>(StringRef)> sizeOf) const {
  auto bindFactor = [&](Attribute factor) -> Attribute {
    auto name = dyn_cast_if_present<StringAttr>(factor);
    std::optional<int64_t> size = name ? sizeOf(name.getValue()) : std::nullopt;
    return size ? IntegerAttr::get(IntegerType::get(getContext(), 64), *size)
                : factor;
  };
  return get(getContext(), bindFactor(getValue()), bindFactor(getInner()),
             getPerGroup());
}

int64_t DimAttr::getPack(int64_t most) const {
  if (isPerGroup())
    return 1;
  int64_t whole = isProduct() ? getGroup().getSize() : getSize();
  return std::min(most, whole & -whole);
}

int64_t DimAttr::getGroupPacks(int64_t most) const {
  DimAttr group = getGroup();
  return llvm::PowerOf2Ceil(group.getSize() / group.getPack(most));
}

int64_t DimAttr::getPacks(int64_t most) const {
  if (getInner())
    return getGroups().getSize() * getGroupPacks(most);
  return getSize() / getPack(most);
}

static std::string spellFactor(Attribute factor) {
  if (auto size = dyn_cast<IntegerAttr>(factor))
    return std::to_string(size.getInt());
  return cast<StringAttr>(factor).str();
}

std::string DimAttr::getText() const {
  std::string text = spellFactor(getValue());
  if (!getInner())
    return text;
  return isProduct() ? "(" + text + " " + spellFactor(getInner()) + ")"
                     : text + " per " + spellFactor(getInner());
}

std::string DimAttr::str() const {
  return isBound() ? getText() : "\"" + getText() + "\"";
}

static LogicalResult verifyFactor(function_ref<InFlightDiagnostic()> emitError,
                                  Attribute value) {
  if (auto size = dyn_cast_if_present<IntegerAttr>(value)) {
    if (size.getInt() >= 1)
      return success();
    return emitError() << "expected a dim of at least 1, got " << size.getInt();
  }
  auto name = dyn_cast_if_present<StringAttr>(value);
  if (!name || name.getValue().empty())
    return emitError() << "expected a dim's name or size, got "
                       << (name ? "an empty name" : "another attribute");
  return success();
}

LogicalResult DimAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                              Attribute value, Attribute inner, bool perGroup) {
  if (failed(verifyFactor(emitError, value)))
    return failure();
  if (!inner)
    return perGroup ? emitError() << "expected the dim of a group, got none"
                    : success();
  if (failed(verifyFactor(emitError, inner)))
    return failure();
  auto groups = dyn_cast<IntegerAttr>(value),
       group = dyn_cast<IntegerAttr>(inner);
  int64_t size;
  if (groups && group &&
      __builtin_mul_overflow(groups.getInt(), group.getInt(), &size))
    return emitError() << "expected a product of at most 64 bits, got "
                       << groups.getInt() << " x " << group.getInt();
  return success();
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static FailureOr<Attribute> parseFactor(AsmParser &parser) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  int64_t size = 0;
  OptionalParseResult number = parser.parseOptionalInteger(size);
  if (number.has_value()) {
    if (failed(*number))
      return failure();
    return Attribute(parser.getBuilder().getI64IntegerAttr(size));
  }
  std::string name;
  if (succeeded(parser.parseOptionalString(&name)))
    return Attribute(parser.getBuilder().getStringAttr(name));
  parser.emitError(loc) << "expected a dim: a name in quotes or a size";
  return failure();
}

FailureOr<DimAttr> mlafix::parseDim(AsmParser &parser) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  auto emitError = [&] { return parser.emitError(loc); };
  FailureOr<Attribute> value = parseFactor(parser);
  if (failed(value))
    return failure();
  bool isProduct = succeeded(parser.parseOptionalKeyword("x"));
  bool perGroup = !isProduct && succeeded(parser.parseOptionalKeyword("per"));
  FailureOr<Attribute> inner = Attribute();
  if (isProduct || perGroup)
    inner = parseFactor(parser);
  if (failed(inner) ||
      failed(DimAttr::verify(emitError, *value, *inner, perGroup)))
    return failure();
  return DimAttr::get(parser.getContext(), *value, *inner, perGroup);
}

Attribute DimAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<DimAttr> dim = parseDim(parser);
  if (failed(dim) || parser.parseGreater())
    return {};
  return *dim;
}

void mlafix::printDim(AsmPrinter &printer, DimAttr dim) {
  auto printFactor = [&](Attribute factor) {
    if (auto size = dyn_cast<IntegerAttr>(factor))
      printer << size.getInt();
    else
      printer.printString(cast<StringAttr>(factor).getValue());
  };
  printFactor(dim.getValue());
  if (!dim.getInner())
    return;
  printer << (dim.isProduct() ? " x " : " per ");
  printFactor(dim.getInner());
}

void DimAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printDim(printer, *this);
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Products in the dims of arguments
//===----------------------------------------------------------------------===//

std::optional<Factors> Factors::of(StringRef dim) {
  if (!dim.consume_front("(") || !dim.consume_back(")"))
    return std::nullopt;
  auto [groups, group] = dim.split(' ');
  return Factors{groups, group};
}

bool Factors::has(StringRef dim, StringRef name) {
  std::optional<Factors> factors = of(dim);
  return factors ? factors->groups == name || factors->group == name
                 : dim == name;
}

static bool isFactor(StringRef text) {
  int64_t size;
  if (!text.getAsInteger(10, size))
    return size >= 1 && llvm::isDigit(text.front());
  return !text.empty() && llvm::isUpper(text.front()) &&
         llvm::all_of(text,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

bool Factors::isValid() const { return isFactor(groups) && isFactor(group); }

DimAttr Factors::getDim(KernelOp kernel) const {
  DictionaryAttr bound = kernel.getBindings().value_or(DictionaryAttr());
  return getDim(kernel.getContext())
      .bind([&](StringRef name) -> std::optional<int64_t> {
        auto size = bound ? bound.getAs<IntegerAttr>(name) : IntegerAttr();
        return size ? std::optional(size.getInt()) : std::nullopt;
      });
}

DimAttr Factors::getDim(MLIRContext *context) const {
  auto dimOf = [&](StringRef factor) {
    int64_t size;
    return factor.getAsInteger(10, size) ? DimAttr::get(context, factor)
                                         : DimAttr::get(context, size);
  };
  return DimAttr::getProduct(dimOf(groups), dimOf(group));
}
