//===- MlafixDialect.cpp - the dialect, its attributes and types ----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Guards.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlafix;

static FailureOr<DimAttr> parseDim(AsmParser &parser);
static void printDim(AsmPrinter &printer, DimAttr dim);

#include "dialect/MlafixDialect.cpp.inc"
#include "dialect/MlafixEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/MlafixAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/MlafixTypes.cpp.inc"

void MlafixDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/MlafixAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/MlafixTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/MlafixOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// #mlafix.layout
//===----------------------------------------------------------------------===//

int64_t LayoutAttr::packsFor(DimAttr dim) const {
  if (sharesGroups(dim))
    return dim.getSize();
  int64_t packs = llvm::divideCeil(dim.getPacks(getPack()), getLanes());
  return isInParts() ? std::min(packs, getPacks()) : packs;
}

int64_t LayoutAttr::partsFor(DimAttr dim) const {
  return llvm::divideCeil(dim.getPacks(getPack()), getLanes() * getPacks());
}

bool LayoutAttr::sharesGroups(DimAttr dim) const {
  return dim.isPerGroup() && dim.getGroupPacks(getPack()) % getLanes() == 0;
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t lanes, int64_t packs, int64_t pack,
                                 int64_t rows, int64_t groups, int64_t blocks,
                                 int64_t parts) {
  if (blocks < 1 || blocks > limits::clusterBlocks ||
      !llvm::isPowerOf2_64(blocks))
    return emitError() << "expected a power of two of blocks, at most "
                       << limits::clusterBlocks << ", got " << blocks;
  // The lanes of a row with several lane groups may be in several blocks, so
  // the size of a block does not limit the number of lanes.
  int64_t mostLanes = groups > 1 ? INT32_MAX : limits::threads * blocks;
  if (lanes < 1 || lanes > mostLanes)
    return emitError() << "expected 1 to " << mostLanes << " lanes, got "
                       << lanes;
  if (groups < 1 || groups > 32 || !llvm::isPowerOf2_64(groups))
    return emitError() << "expected a power of two of lane groups, at most 32, "
                          "got "
                       << groups;
  if (pack < 1 || !llvm::isPowerOf2_64(pack))
    return emitError() << "expected a power of two of elements in a pack, got "
                       << pack;
  if (packs < 1 || rows < 1)
    return emitError() << "expected at least one pack and one row, got packs = "
                       << packs << ", rows = " << rows;
  // Lanes of a row in several warps synchronise through block-wide barriers, so
  // the block can have only one row.
  if (lanes > 32 && rows != 1)
    return emitError() << "expected one row in a block whose rows cross warps, "
                          "got rows = "
                       << rows;
  if (blocks > 1 && (groups > 1 || lanes % (blocks * limits::warpThreads) != 0))
    return emitError() << "expected whole warps of lanes and one lane group "
                          "where blocks share a row, got lanes = "
                       << lanes << ", groups = " << groups
                       << ", blocks = " << blocks;
  if (parts < 1 || parts > INT32_MAX)
    return emitError() << "expected 1 to " << INT32_MAX
                       << " parts of a row, got " << parts;
  if (parts > 1 && (rows != 1 || groups > 1 || blocks > 1))
    return emitError()
           << "expected one row, one lane group and no cluster where "
              "a row has parts, got rows = "
           << rows << ", groups = " << groups << ", blocks = " << blocks;
  if (groups == 1 && lanes * rows > limits::threads * blocks)
    return emitError()
           << "expected at most 1024 threads in a block, got lanes * rows = "
           << lanes * rows;
  return success();
}

//===----------------------------------------------------------------------===//
// #mlafix.base
//===----------------------------------------------------------------------===//

BaseAttr BaseAttr::get(MLIRContext *context, LogBase base) {
  return get(context, base == LogBase::E ? "e" : "2");
}

BaseAttr BaseAttr::get(MLIRContext *context, StringRef value) {
  return Base::get(context, StringAttr::get(context, value));
}

std::optional<LogBase> BaseAttr::getBase() const {
  if (getValue().getValue() == "e")
    return LogBase::E;
  if (getValue().getValue() == "2")
    return LogBase::Two;
  return std::nullopt;
}

StringRef BaseAttr::getName() const {
  return getBase() ? StringRef() : getValue().getValue();
}

LogicalResult BaseAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               StringAttr value) {
  StringRef text = value.getValue();
  if (text == "e" || text == "2" || isConstantName(text))
    return success();
  return emitError() << "expected base e, 2 or an upper-case name in quotes, "
                        "got \""
                     << text << "\"";
}

/// Parses base ::= `e` | `2` | string
static FailureOr<BaseAttr> parseBase(AsmParser &parser) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  auto emitError = [&] { return parser.emitError(loc); };
  std::string text;
  // `2` is not a keyword, so it is parsed as an integer.
  int64_t number;
  OptionalParseResult integer = parser.parseOptionalInteger(number);
  if (integer.has_value()) {
    if (failed(*integer))
      return failure();
    text = std::to_string(number);
  } else if (failed(parser.parseOptionalString(&text))) {
    StringRef keyword;
    if (failed(parser.parseOptionalKeyword(&keyword)) || keyword != "e") {
      emitError() << "expected base e or 2" << (keyword.empty() ? "" : ", got ")
                  << keyword;
      return failure();
    }
    text = "e";
  } else if (text == "e" || text == "2") {
    emitError() << "expected base " << text << " without quotes, got \"" << text
                << "\"";
    return failure();
  }
  auto value = parser.getBuilder().getStringAttr(text);
  if (failed(BaseAttr::verify(emitError, value)))
    return failure();
  return BaseAttr::get(parser.getContext(), text);
}

Attribute BaseAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<BaseAttr> base = parseBase(parser);
  if (failed(base) || parser.parseGreater())
    return {};
  return *base;
}

static void printBase(AsmPrinter &printer, BaseAttr base) {
  if (base.getBase())
    printer << base.getValue().getValue();
  else
    printer.printString(base.getName());
}

void BaseAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printBase(printer, *this);
  printer << '>';
}

//===----------------------------------------------------------------------===//
// !mlafix.state
//===----------------------------------------------------------------------===//

Type StateType::parse(AsmParser &parser) {
  if (parser.parseLess())
    return {};
  FailureOr<DimAttr> dim = parseDim(parser);
  if (failed(dim) || parser.parseComma())
    return {};
  FailureOr<BaseAttr> base = parseBase(parser);
  if (failed(base))
    return {};
  bool sink = succeeded(parser.parseOptionalComma());
  if ((sink && parser.parseKeyword("sink")) || parser.parseGreater())
    return {};
  return StateType::get(parser.getContext(), *dim, *base, sink);
}

void StateType::print(AsmPrinter &printer) const {
  printer << '<';
  printDim(printer, getDim());
  printer << ", ";
  printBase(printer, getBase());
  printer << (getSink() ? ", sink>" : ">");
}

RankedTensorType StateType::getTileType() const {
  return getRowTileType(getDim(), Float32Type::get(getContext()));
}

//===----------------------------------------------------------------------===//
// Row tiles and dtypes
//===----------------------------------------------------------------------===//

bool mlafix::isRowTile(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 1 &&
         isa_and_nonnull<DimAttr>(tensor.getEncoding()) &&
         cast<DimAttr>(tensor.getEncoding()).getSize() == tensor.getDimSize(0);
}

RankedTensorType mlafix::getRowTileType(DimAttr dim, Type elementType) {
  return RankedTensorType::get({dim.getSize()}, elementType, dim);
}

DimAttr mlafix::getTileDim(Type tile) {
  return cast<DimAttr>(cast<RankedTensorType>(tile).getEncoding());
}

bool mlafix::isConstantName(StringRef name) {
  return !name.empty() && llvm::isUpper(name.front());
}

BlockArgument mlafix::getKernelArgument(Value memref) {
  auto argument = dyn_cast<BlockArgument>(memref);
  if (argument && isa_and_nonnull<KernelOp>(argument.getOwner()->getParentOp()))
    return argument;
  return {};
}

KernelOp mlafix::getKernelOf(BlockArgument argument) {
  return cast<KernelOp>(argument.getOwner()->getParentOp());
}

StringAttr mlafix::getDTypeVariable(Value memref) {
  BlockArgument argument = getKernelArgument(memref);
  if (!argument)
    return {};
  KernelOp kernel = getKernelOf(argument);
  return kernel.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                             kDTypeAttr);
}

DimAttr mlafix::getArgumentDim(Value memref, unsigned position) {
  BlockArgument argument = getKernelArgument(memref);
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (!argument || !type || position >= type.getRank())
    return {};
  KernelOp kernel = getKernelOf(argument);
  ArrayAttr dims = kernel.getArgDims(argument.getArgNumber());
  StringRef name;
  if (dims && position < dims.size())
    name = cast<StringAttr>(dims[position]).getValue();
  MLIRContext *context = memref.getContext();
  if (std::optional<Factors> factors = Factors::of(name))
    return factors->getDim(kernel);
  if (!type.isDynamicDim(position))
    return DimAttr::get(context, type.getDimSize(position));
  if (std::optional<int64_t> most = kernel.getMostOf(name))
    return DimAttr::getBounded(context, name, *most,
                               getGuardedMultiple(kernel, name));
  return name.empty() ? DimAttr() : DimAttr::get(context, name);
}

DimAttr mlafix::getLastDim(Value memref) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  return type && type.getRank() ? getArgumentDim(memref, type.getRank() - 1)
                                : DimAttr();
}

DimAttr mlafix::getProductOf(KernelOp kernel, DimAttr groups) {
  for (BlockArgument argument : kernel.getBody().front().getArguments())
    if (DimAttr dim = getLastDim(argument);
        dim && dim.isProduct() && dim.getGroups() == groups)
      return dim;
  return DimAttr();
}

namespace {
struct DTypeRow {
  StringRef name;
  int64_t bits;
  StringRef mlir;
};
constexpr DTypeRow kDTypes[] = {
#define MLAFIX_DTYPE(ENUM, VALUE, NAME, BITS, MLIR) {NAME, BITS, MLIR},
#include "mlafix/DTypes.def"
};

/// Returns `type` in MLIR's syntax.
std::string spell(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}
} // namespace

StringRef mlafix::getDTypeName(Type type) {
  if (type.isIndex())
    return "index";
  std::string text = spell(type);
  for (const DTypeRow &row : kDTypes)
    if (row.mlir == text)
      return row.name;
  return {};
}

Type mlafix::getDTypeByName(MLIRContext *context, StringRef name) {
  for (const DTypeRow &row : kDTypes)
    if (row.name == name)
      return parseType(row.mlir, context);
  return {};
}

std::string mlafix::listDTypes() {
  std::string list;
  for (const DTypeRow &row : kDTypes)
    list += (list.empty() ? "" : ", ") + row.name.str();
  return list;
}

int64_t mlafix::getDTypeBits(Type type) {
  StringRef name = getDTypeName(type);
  for (const DTypeRow &row : kDTypes)
    if (row.name == name)
      return row.bits;
  return type.isIndex() ? 64 : 0;
}

int64_t mlafix::getDTypeBytes(Type type) {
  return llvm::divideCeil(getDTypeBits(type), 8);
}

bool mlafix::sharesByte(Type type) {
  return isa<Float4E2M1FNType>(getElementTypeOrSelf(type));
}

bool mlafix::isSwizzled(Value memref) {
  BlockArgument argument = getKernelArgument(memref);
  return argument && getKernelOf(argument).getArgAttr(argument.getArgNumber(),
                                                      kSwizzleAttr);
}

int64_t mlafix::getTileRows(StringRef swizzle) {
  return llvm::StringSwitch<int64_t>(swizzle)
      .Case("128x4", 128)
      .Case("8x4", 8)
      .Default(0);
}

int64_t mlafix::getTileRows(Value memref) {
  BlockArgument argument = getKernelArgument(memref);
  KernelOp kernel = getKernelOf(argument);
  return getTileRows(
      cast<StringAttr>(kernel.getArgAttr(argument.getArgNumber(), kSwizzleAttr))
          .getValue());
}

bool mlafix::isFp8(Type type) {
  Type element = getElementTypeOrSelf(type);
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 8;
}

Type mlafix::getComputeType(Type type) {
  if (isa<FloatType>(type))
    return Float32Type::get(type.getContext());
  // arith supports only signless integers.
  if (type.isUnsignedInteger())
    return IntegerType::get(type.getContext(), type.getIntOrFloatBitWidth());
  return type;
}

//===----------------------------------------------------------------------===//
// #mlafix.dim
//===----------------------------------------------------------------------===//

DimAttr DimAttr::get(MLIRContext *context, StringRef name) {
  return get(context, StringAttr::get(context, name), /*inner=*/{},
             /*perGroup=*/false, /*most=*/{}, /*multiple=*/1);
}

DimAttr DimAttr::getBounded(MLIRContext *context, StringRef name, int64_t most,
                            int64_t multiple) {
  return get(context, StringAttr::get(context, name), /*inner=*/{},
             /*perGroup=*/false,
             IntegerAttr::get(IntegerType::get(context, 64), most), multiple);
}

DimAttr DimAttr::get(MLIRContext *context, int64_t size) {
  return get(context, IntegerAttr::get(IntegerType::get(context, 64), size),
             Attribute(), false, IntegerAttr(), 1);
}

DimAttr DimAttr::getProduct(DimAttr groups, DimAttr group) {
  return get(groups.getContext(), groups.getValue(), group.getValue(), false,
             IntegerAttr(), 1);
}

DimAttr DimAttr::getGroups() const {
  return get(getContext(), getValue(), Attribute(), false, IntegerAttr(), 1);
}

DimAttr DimAttr::getGroup() const {
  return get(getContext(), getInner(), Attribute(), false, IntegerAttr(), 1);
}

DimAttr DimAttr::getEachGroup() const {
  return get(getContext(), getValue(), getInner(), true, IntegerAttr(), 1);
}

bool DimAttr::isBound() const {
  return isa<IntegerAttr>(getValue()) &&
         (!getInner() || isa<IntegerAttr>(getInner()));
}

int64_t DimAttr::getSize() const {
  if (isBounded())
    return getMost().getInt();
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
  Attribute value = bindFactor(getValue());
  bool isOpen = isa<StringAttr>(value);
  return get(getContext(), value, bindFactor(getInner()), getPerGroup(),
             isOpen ? getMost() : IntegerAttr(), isOpen ? getMultiple() : 1);
}

int64_t DimAttr::getPack(int64_t most) const {
  if (isPerGroup())
    return 1;
  if (isBounded())
    return std::min(most, getMultiple());
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
  if (isBounded())
    return text + "<=" + std::to_string(getMost().getInt());
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
                              Attribute value, Attribute inner, bool perGroup,
                              IntegerAttr most, int64_t multiple) {
  if (failed(verifyFactor(emitError, value)))
    return failure();
  if (most && (inner || !isa<StringAttr>(value)))
    return emitError() << "expected the name of a dim to give a bound, got "
                       << (inner ? "two dims" : "a size");
  if (most && most.getInt() < 1)
    return emitError() << "expected a bound of at least 1, got "
                       << most.getInt();
  if (!llvm::isPowerOf2_64(multiple) || multiple > (most ? most.getInt() : 1))
    return emitError() << "expected 'by' to be a power of two, at most "
                       << (most ? most.getInt() : 1) << ", got " << multiple;
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
// Syntax of #mlafix.dim
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

/// Parses a dim:
/// dim ::= factor | factor `x` factor | factor `per` factor
///       | string `most` integer (`by` integer)?
/// factor ::= string | integer
static FailureOr<DimAttr> parseDim(AsmParser &parser) {
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
  IntegerAttr most;
  if (succeeded(parser.parseOptionalKeyword("most"))) {
    int64_t number;
    if (parser.parseInteger(number))
      return failure();
    most = parser.getBuilder().getI64IntegerAttr(number);
  }
  int64_t multiple = 1;
  if (most && succeeded(parser.parseOptionalKeyword("by")) &&
      parser.parseInteger(multiple))
    return failure();
  if (failed(inner) || failed(DimAttr::verify(emitError, *value, *inner,
                                              perGroup, most, multiple)))
    return failure();
  return DimAttr::get(parser.getContext(), *value, *inner, perGroup, most,
                      multiple);
}

Attribute DimAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<DimAttr> dim = parseDim(parser);
  if (failed(dim) || parser.parseGreater())
    return {};
  return *dim;
}

static void printDim(AsmPrinter &printer, DimAttr dim) {
  auto printFactor = [&](Attribute factor) {
    if (auto size = dyn_cast<IntegerAttr>(factor))
      printer << size.getInt();
    else
      printer.printString(cast<StringAttr>(factor).getValue());
  };
  printFactor(dim.getValue());
  if (dim.isBounded())
    printer << " most " << dim.getMost().getInt();
  if (dim.getMultiple() > 1)
    printer << " by " << dim.getMultiple();
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
  return isConstantName(text) && llvm::all_of(text, [](char c) {
           return llvm::isAlnum(c) || c == '_';
         });
}

bool Factors::isValid() const { return isFactor(groups) && isFactor(group); }

DimAttr Factors::getDim(KernelOp kernel) const {
  DictionaryAttr bound = kernel.getBindingsAttr();
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
