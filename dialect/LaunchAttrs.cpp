//===- LaunchAttrs.cpp - what a launch must know of a variant -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Mlafix.h"

#include "mlafix/UnitLimits.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlafix;

using EmitError = function_ref<InFlightDiagnostic()>;

/// Parses `, name = value`.
static ParseResult parseField(AsmParser &parser, StringRef name,
                              int64_t &value) {
  return failure(parser.parseComma() || parser.parseKeyword(name) ||
                 parser.parseEqual() || parser.parseInteger(value));
}

/// Parses a keyword and returns the entry of `table` with that name. `what`
/// says for messages what the entries are.
template <typename Spec, size_t count>
static const Spec *parseKind(AsmParser &parser, const Spec (&table)[count],
                             StringRef what) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (failed(parser.parseOptionalKeyword(&keyword)))
    keyword = "none";
  for (const Spec &spec : table)
    if (keyword == spec.name)
      return &spec;
  auto names =
      llvm::map_range(table, [](const Spec &spec) { return spec.name; });
  parser.emitError(loc) << "expected the kind of a " << what << " ("
                        << llvm::join(names, ", ") << "), got " << keyword;
  return nullptr;
}

/// Reports an error unless `value` is from `least` to `most`.
static LogicalResult verifyRange(EmitError emitError, StringRef name,
                                 int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most)
    return success();
  return emitError() << "expected " << name << " from " << least << " to "
                     << most << ", got " << value;
}

static LogicalResult verifyArg(EmitError emitError, int64_t arg) {
  return verifyRange(emitError, "arg", arg, 0, MLAFIX_MAX_ARGS - 1);
}

static LogicalResult verifyDim(EmitError emitError, int64_t dim) {
  return verifyRange(emitError, "dim", dim, 0, MLAFIX_MAX_DIMS - 1);
}

//===----------------------------------------------------------------------===//
// #mlafix.guard
//===----------------------------------------------------------------------===//

Attribute GuardAttr::parse(AsmParser &parser, Type) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  const GuardSpec *spec = parseKind(parser, kGuards, "guard");
  if (!spec)
    return {};
  SmallVector<int64_t> args;
  int64_t dim = 0, number = 0;
  auto parseArg = [&] { return parser.parseInteger(args.emplace_back()); };
  if (spec->args == GuardArgs::Dim) {
    if (parseField(parser, "arg", args.emplace_back()) ||
        parseField(parser, "dim", dim))
      return {};
  } else if (spec->args != GuardArgs::None) {
    if (parser.parseComma() || parser.parseKeyword("args") ||
        parser.parseEqual() ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseArg))
      return {};
  }
  if ((spec->hasNumber() && parseField(parser, spec->number, number)) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<GuardAttr>(loc, parser.getContext(), spec->kind,
                                      ArrayRef<int64_t>(args), dim, number);
}

void GuardAttr::print(AsmPrinter &printer) const {
  const GuardSpec &spec = getSpec();
  printer << '<' << spec.name;
  if (spec.args == GuardArgs::Dim) {
    printer << ", arg = " << getArgs().front() << ", dim = " << getDim();
  } else if (spec.args != GuardArgs::None) {
    printer << ", args = [";
    llvm::interleaveComma(getArgs(), printer);
    printer << ']';
  }
  if (spec.hasNumber())
    printer << ", " << spec.number << " = " << getNumber();
  printer << '>';
}

LogicalResult GuardAttr::verify(EmitError emitError, GuardKind kind,
                                ArrayRef<int64_t> args, int64_t dim,
                                int64_t number) {
  const GuardSpec &spec = specOf(kind);
  if (args.size() < spec.leastArgs() || args.size() > spec.mostArgs())
    return emitError() << "expected " << spec.argsText() << " for guard '"
                       << spec.name << "', got " << args.size();
  for (auto [position, arg] : llvm::enumerate(args)) {
    if (failed(verifyArg(emitError, arg)))
      return failure();
    if (llvm::is_contained(args.take_front(position), arg))
      return emitError() << "expected different arguments for guard '"
                         << spec.name << "', got " << arg << " twice";
  }
  if (failed(verifyDim(emitError, dim)))
    return failure();
  if (spec.hasNumber() && !spec.takes(number))
    return emitError() << "expected " << spec.rangeText() << " for '"
                       << spec.number << "' of guard '" << spec.name
                       << "', got " << number;
  return success();
}

//===----------------------------------------------------------------------===//
// #mlafix.param
//===----------------------------------------------------------------------===//

Attribute ParamAttr::parse(AsmParser &parser, Type) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  const ParamSpec *spec = parseKind(parser, kParams, "parameter");
  if (!spec)
    return {};
  int64_t arg = 0, dim = 0, ranks = 0;
  if ((spec->hasArg() && parseField(parser, "arg", arg)) ||
      (spec->hasDim() && parseField(parser, "dim", dim)) ||
      (spec->hasRanks() && parseField(parser, "ranks", ranks)) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<ParamAttr>(loc, parser.getContext(), spec->kind, arg,
                                      dim, ranks);
}

void ParamAttr::print(AsmPrinter &printer) const {
  const ParamSpec &spec = getSpec();
  printer << '<' << spec.name;
  if (spec.hasArg())
    printer << ", arg = " << getArg();
  if (spec.hasDim())
    printer << ", dim = " << getDim();
  if (spec.hasRanks())
    printer << ", ranks = " << getRanks();
  printer << '>';
}

LogicalResult ParamAttr::verify(EmitError emitError, ParamKind kind,
                                int64_t arg, int64_t dim, int64_t ranks) {
  if (specOf(kind).hasRanks() && (ranks < 1 || ranks > MLAFIX_MAX_RANKS))
    return emitError() << "expected 'ranks' from 1 to " << int(MLAFIX_MAX_RANKS)
                       << ", got " << ranks;
  return failure(failed(verifyArg(emitError, arg)) ||
                 failed(verifyDim(emitError, dim)));
}

//===----------------------------------------------------------------------===//
// #mlafix.extent
//===----------------------------------------------------------------------===//

/// extent ::= `<` `value` `=` integer `>`
///          | `<` `arg` `=` integer (`,` `dim` `=` integer
///            (`,` `per` `=` integer)?)? `>`
Attribute ExtentAttr::parse(AsmParser &parser, Type) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  int64_t arg = -1, dim = -1, value = -1, per = 1;
  if (parser.parseLess())
    return {};
  bool isConstant = succeeded(parser.parseOptionalKeyword("value"));
  if (!isConstant && parser.parseKeyword("arg"))
    return {};
  // Reject negative numbers here, since -1 stands for a missing number.
  int64_t &number = isConstant ? value : arg;
  if (parser.parseEqual() || parser.parseInteger(number))
    return {};
  bool isSize = !isConstant && succeeded(parser.parseOptionalComma());
  if (isSize && (parser.parseKeyword("dim") || parser.parseEqual() ||
                 parser.parseInteger(dim)))
    return {};
  if (isSize && succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("per") || parser.parseEqual() ||
       parser.parseInteger(per)))
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  if ((isConstant &&
       failed(verifyRange(emitError, "value", value, 0, INT64_MAX))) ||
      (!isConstant && failed(verifyArg(emitError, arg))) ||
      (isSize && failed(verifyDim(emitError, dim))) ||
      failed(verifyRange(emitError, "per", per, 1, INT32_MAX)) ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), arg, dim, value, per);
}

void ExtentAttr::print(AsmPrinter &printer) const {
  if (isConstant()) {
    printer << "<value = " << getValue() << '>';
    return;
  }
  printer << "<arg = " << getArg();
  if (isSize())
    printer << ", dim = " << getDim();
  if (getPer() > 1)
    printer << ", per = " << getPer();
  printer << '>';
}

LogicalResult ExtentAttr::verify(EmitError emitError, int64_t arg, int64_t dim,
                                 int64_t value, int64_t per) {
  assert((arg >= 0) != (value >= 0) && "expected either arg or value");
  assert((dim < 0 || arg >= 0) && "expected arg beside dim");
  if (failed(verifyRange(emitError, "per", per, 1, INT32_MAX)))
    return failure();
  assert((per == 1 || dim >= 0) && "expected dim beside per");
  if (value >= 0)
    return success();
  return failure(failed(verifyArg(emitError, arg)) ||
                 (dim >= 0 && failed(verifyDim(emitError, dim))));
}

//===----------------------------------------------------------------------===//
// Geometries
//===----------------------------------------------------------------------===//

static LogicalResult verifyExtents(EmitError emitError,
                                   ArrayRef<ExtentAttr> extents) {
  if (extents.size() <= limits::extents)
    return success();
  return emitError() << "expected at most " << limits::extents
                     << " extents, got " << extents.size();
}

static LogicalResult verifyRowsPerBlock(EmitError emitError, int64_t rows) {
  return verifyRange(emitError, "rows_per_block", rows, 1,
                     limits::rowsPerBlock);
}

static LogicalResult verifyThreads(EmitError emitError, int64_t threads) {
  return verifyRange(emitError, "threads", threads, 1, limits::threads);
}

static LogicalResult verifyPowerOfTwo(EmitError emitError, StringRef name,
                                      int64_t value, int64_t most) {
  if (value >= 1 && value <= most && llvm::isPowerOf2_64(value))
    return success();
  return emitError() << "expected a power of two from 1 to " << most << " for "
                     << name << ", got " << value;
}

LogicalResult GridGeometryAttr::verify(EmitError emitError,
                                       ArrayRef<ExtentAttr> extents,
                                       int64_t rowsPerBlock, int64_t threads,
                                       int64_t leastThreads, int64_t cluster,
                                       ExtentAttr parts) {
  if (failed(verifyExtents(emitError, extents)) ||
      failed(verifyRowsPerBlock(emitError, rowsPerBlock)) ||
      failed(verifyThreads(emitError, threads)) ||
      failed(
          verifyRange(emitError, "least_threads", leastThreads, 1, threads)) ||
      failed(verifyPowerOfTwo(emitError, "cluster", cluster,
                              limits::clusterBlocks)))
    return failure();
  if ((cluster > 1 || parts) && rowsPerBlock != 1)
    return emitError()
           << "expected 'rows_per_block' to be 1 where several blocks share a "
              "row (a cluster or parts), got "
           << rowsPerBlock;
  if (cluster > 1 && parts)
    return emitError() << "expected a cluster or parts of a row, got both";
  return success();
}

LogicalResult RaggedGeometryAttr::verify(EmitError emitError, ExtentAttr,
                                         ArrayRef<ExtentAttr> inner,
                                         int64_t rowsPerBlock, int64_t threads,
                                         int64_t blocksPerSm, bool) {
  return failure(failed(verifyExtents(emitError, inner)) ||
                 failed(verifyRowsPerBlock(emitError, rowsPerBlock)) ||
                 failed(verifyThreads(emitError, threads)) ||
                 failed(verifyRange(emitError, "blocks_per_sm", blocksPerSm, 1,
                                    limits::blocksPerSm)));
}

LogicalResult GroupsGeometryAttr::verify(EmitError emitError,
                                         ArrayRef<ExtentAttr> extents,
                                         int64_t lanes, int64_t threads,
                                         int64_t most, int64_t chunk,
                                         int64_t leastThreads,
                                         int64_t threadsPerSm, ExtentAttr) {
  if (failed(verifyExtents(emitError, extents)) ||
      failed(verifyRange(emitError, "lanes", lanes, 1, INT32_MAX)) ||
      failed(verifyPowerOfTwo(emitError, "most", most, limits::groups)) ||
      failed(verifyRange(emitError, "chunk", chunk, 1, limits::rowsPerBlock)) ||
      failed(verifyPowerOfTwo(emitError, "least_threads", leastThreads,
                              limits::threads / most)) ||
      failed(verifyRange(emitError, "threads_per_sm", threadsPerSm, 1,
                         limits::threadsPerSm)))
    return failure();
  return verifyRange(emitError, "threads", threads,
                     std::max(limits::leastGroupedBlock, most * leastThreads),
                     limits::threads);
}

Attribute CpuGeometryAttr::parse(AsmParser &parser, Type) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  bool isRagged = succeeded(parser.parseOptionalKeyword("ragged"));
  SmallVector<ExtentAttr> extents;
  int64_t rowsPerBlock;
  auto parseExtent = [&] {
    return parser.parseCustomAttributeWithFallback(extents.emplace_back());
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     parseExtent) ||
      parseField(parser, "rows_per_block", rowsPerBlock) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<CpuGeometryAttr>(loc, parser.getContext(), isRagged,
                                            ArrayRef<ExtentAttr>(extents),
                                            rowsPerBlock);
}

void CpuGeometryAttr::print(AsmPrinter &printer) const {
  printer << (getIsRagged() ? "<ragged [" : "<[");
  llvm::interleaveComma(getExtents(), printer, [&](ExtentAttr extent) {
    printer.printStrippedAttrOrType(extent);
  });
  printer << "], rows_per_block = " << getRowsPerBlock() << '>';
}

LogicalResult CpuGeometryAttr::verify(EmitError emitError, bool isRagged,
                                      ArrayRef<ExtentAttr> extents,
                                      int64_t rowsPerBlock) {
  if (isRagged && extents.empty())
    return emitError() << "expected the rows of a ragged grid as its first "
                          "extent, got no extents";
  return failure(failed(verifyExtents(emitError, isRagged ? extents.drop_front()
                                                          : extents)) ||
                 failed(verifyRowsPerBlock(emitError, rowsPerBlock)));
}

//===----------------------------------------------------------------------===//
// #mlafix.variant
//===----------------------------------------------------------------------===//

LogicalResult VariantAttr::verify(EmitError emitError, StringAttr entry,
                                  ArrayRef<GuardAttr>,
                                  ArrayRef<ParamAttr> params,
                                  Attribute geometry, LayoutAttr,
                                  bool dependentLaunch) {
  if (entry.empty())
    return emitError() << "expected the name of a variant, got an empty one";
  if (!isa_and_nonnull<GridGeometryAttr, RaggedGeometryAttr, GroupsGeometryAttr,
                       CpuGeometryAttr>(geometry))
    return emitError() << "expected a launch geometry, got " << geometry;
  bool hasGroups = isa<GroupsGeometryAttr>(geometry);
  if (!hasGroups && llvm::any_of(params, [](ParamAttr param) {
        return param.getKind() == ParamKind::GroupThreads;
      }))
    return emitError() << "expected a parameter '"
                       << specOf(ParamKind::GroupThreads).name
                       << "' only beside a geometry of lane groups, got "
                       << geometry;
  if (dependentLaunch && isa<CpuGeometryAttr>(geometry))
    return emitError() << "expected 'dependent_launch' on a GPU only, got "
                       << geometry;
  return success();
}
