//===- Unit.cpp - writes unit files ---------------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/Unit.h"

#include "mlafix/UnitLimits.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace mlafix::target;
using namespace mlafix;

//===----------------------------------------------------------------------===//
// Code versions
//===----------------------------------------------------------------------===//

static json::Object describe(GuardAttr guard) {
  const GuardSpec &spec = guard.getSpec();
  json::Object object{{"kind", spec.name}};
  if (spec.args == GuardArgs::Dim) {
    object["arg"] = guard.getArgs().front();
    object["dim"] = guard.getDim();
  } else if (spec.args != GuardArgs::None) {
    object["args"] = json::Array(guard.getArgs());
  }
  if (spec.hasNumber())
    object[spec.number] = guard.getNumber();
  return object;
}

static json::Object describe(ParamAttr param) {
  const ParamSpec &spec = param.getSpec();
  json::Object object{{"kind", spec.name}};
  if (spec.hasArg())
    object["arg"] = param.getArg();
  if (spec.hasDim())
    object["dim"] = param.getDim();
  if (spec.hasRanks())
    object["ranks"] = param.getRanks();
  return object;
}

static json::Object describe(ExtentAttr extent) {
  if (extent.isConstant())
    return json::Object{{"value", extent.getValue()}};
  json::Object object{{"arg", extent.getArg()}};
  if (extent.isSize())
    object["dim"] = extent.getDim();
  if (extent.getPer() > 1)
    object["per"] = extent.getPer();
  return object;
}

template <typename AttrTy>
static json::Array describeAll(ArrayRef<AttrTy> attributes) {
  json::Array array;
  for (AttrTy attribute : attributes)
    array.push_back(describe(attribute));
  return array;
}

static json::Object describe(GridGeometryAttr grid) {
  json::Object object{{"kind", geometry::rows},
                      {"extents", describeAll(grid.getExtents())},
                      {"rows_per_block", grid.getRowsPerBlock()},
                      {"threads", grid.getThreads()}};
  if (grid.getLeastThreads() < grid.getThreads())
    object["least_threads"] = grid.getLeastThreads();
  if (grid.getCluster() > 1)
    object["cluster"] = grid.getCluster();
  if (grid.getParts())
    object["parts"] = describe(grid.getParts());
  return object;
}

static json::Object describe(RaggedGeometryAttr ragged) {
  return json::Object{{"kind", geometry::ragged},
                      {"rows", describe(ragged.getRows())},
                      {"inner", describeAll(ragged.getInner())},
                      {"rows_per_block", ragged.getRowsPerBlock()},
                      {"threads", ragged.getThreads()},
                      {"blocks_per_sm", ragged.getBlocksPerSm()}};
}

static json::Object describe(GroupsGeometryAttr groups) {
  json::Object shared{{"most", groups.getMost()},
                      {"chunk", groups.getChunk()},
                      {"least_threads", groups.getLeastThreads()},
                      {"threads_per_sm", groups.getThreadsPerSm()},
                      {"pieces", describe(groups.getPieces())}};
  return json::Object{{"kind", geometry::groups},
                      {"extents", describeAll(groups.getExtents())},
                      {"lanes", groups.getLanes()},
                      {"threads", groups.getThreads()},
                      {"groups", std::move(shared)}};
}

/// Describes the geometry for CPUs. The runtime distributes the rows over
/// threads, so fields that have no meaning for CPUs are 1.
static json::Object describe(CpuGeometryAttr cpu) {
  json::Object object{{"rows_per_block", cpu.getRowsPerBlock()},
                      {"threads", 1}};
  if (!cpu.getIsRagged()) {
    object["kind"] = geometry::rows;
    object["extents"] = describeAll(cpu.getExtents());
    return object;
  }
  object["kind"] = geometry::ragged;
  object["rows"] = describe(cpu.getExtents().front());
  object["inner"] = describeAll(cpu.getExtents().drop_front());
  object["blocks_per_sm"] = 1;
  return object;
}

static json::Object describe(LayoutAttr layout) {
  json::Object object{{"lanes", layout.getLanes()},
                      {"packs", layout.getPacks()},
                      {"pack", layout.getPack()},
                      {"rows", layout.getRows()}};
  if (layout.isGrouped())
    object["groups"] = layout.getGroups();
  if (layout.isClustered())
    object["blocks"] = layout.getBlocks();
  if (layout.isInParts())
    object["parts"] = layout.getParts();
  return object;
}

json::Object mlafix::target::toJson(VariantAttr variant) {
  json::Object geometry =
      TypeSwitch<mlir::Attribute, json::Object>(variant.getGeometry())
          .Case<GridGeometryAttr, RaggedGeometryAttr, GroupsGeometryAttr,
                CpuGeometryAttr>([](auto kind) { return describe(kind); });
  return json::Object{{"entry", variant.getEntry().getValue().str()},
                      {"guards", describeAll(variant.getGuards())},
                      {"params", describeAll(variant.getParams())},
                      {"geometry", std::move(geometry)},
                      {"layout", describe(variant.getLayout())},
                      {"dependent_launch", variant.getDependentLaunch()}};
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

static constexpr StringLiteral magic = "MLAFIX\r\n";
static constexpr uint32_t containerVersion = 1;
static constexpr uint32_t abiVersion = 1;
static constexpr size_t headerSize = 64;
static constexpr size_t imageAlignment = 64;
static constexpr size_t checksumOffset = 32;

/// Returns the 64-bit FNV-1a hash of `bytes`.
static uint64_t checksum(StringRef bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char byte : bytes)
    hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

/// Returns the manifest of a file whose first image begins at byte `offset`.
static std::string writeManifest(ArrayRef<UnitKernel> kernels,
                                 uint64_t offset) {
  json::Array entries;
  for (const UnitKernel &kernel : kernels) {
    json::Array codes;
    for (const UnitCode &code : kernel.code) {
      json::Array images;
      for (const UnitImage &image : code.images) {
        json::Object entry{{"format", image.format},
                           {"offset", offset},
                           {"size", image.bytes.size()}};
        if (!image.assembler.empty())
          entry["assembler"] = image.assembler;
        images.push_back(std::move(entry));
        offset = alignTo(offset + image.bytes.size(), imageAlignment);
      }
      codes.push_back(json::Object{{"target", code.target},
                                   {"images", std::move(images)},
                                   {"variants", json::Array(code.variants)}});
    }
    json::Object entry = kernel.signature;
    entry["code"] = std::move(codes);
    entries.push_back(std::move(entry));
  }
  json::Value manifest = json::Object{{"producer", "mlafix " MLAFIX_VERSION},
                                      {"kernels", std::move(entries)}};
  // JSON objects are printed with sorted keys, so equal manifests have equal
  // bytes.
  return formatv("{0}", manifest).str();
}

/// Fails if `count` is more than `most`. `what` names the things counted.
static Error checkCount(size_t count, size_t most, const Twine &what) {
  if (count <= most)
    return Error::success();
  return createStringError("expected at most " + Twine(most) + " " + what +
                           " in a unit, got " + Twine(count));
}

/// Fails unless the runtime accepts each string inside `value`.
static Error checkTexts(const json::Value &value) {
  if (std::optional<StringRef> text = value.getAsString()) {
    if (mlafix::limits::isText({text->data(), text->size()}))
      return Error::success();
    bool isLong = text->size() > mlafix::limits::nameBytes;
    return createStringError(
        "expected texts of at most " + Twine(mlafix::limits::nameBytes) +
        " bytes without control characters in a unit, got " +
        (isLong ? formatv("{0} bytes", text->size()).str()
                : formatv("{0}", value).str()));
  }
  if (const json::Array *array = value.getAsArray())
    for (const json::Value &element : *array)
      if (Error error = checkTexts(element))
        return error;
  if (const json::Object *object = value.getAsObject())
    for (const auto &entry : *object)
      if (Error error = checkTexts(entry.second))
        return error;
  return Error::success();
}

static size_t sizeOf(const json::Array *array) {
  return array ? array->size() : 0;
}

static Error checkCodeVersion(const json::Object &variant) {
  if (Error error =
          checkCount(sizeOf(variant.getArray("params")), MLAFIX_MAX_PARAMS,
                     "parameters of a code version"))
    return error;
  return checkCount(sizeOf(variant.getArray("guards")), mlafix::limits::guards,
                    "guards of a code version");
}

static Error checkCode(const UnitCode &code) {
  if (Error error = checkCount(code.variants.size(), mlafix::limits::variants,
                               "code versions for a target"))
    return error;
  for (const json::Value &variant : code.variants) {
    if (Error error = checkTexts(variant))
      return error;
    if (const json::Object *object = variant.getAsObject())
      if (Error error = checkCodeVersion(*object))
        return error;
  }
  return Error::success();
}

Error mlafix::target::checkLimits(const UnitKernel &kernel) {
  const json::Object &signature = kernel.signature;
  for (const auto &entry : signature)
    if (Error error = checkTexts(entry.second))
      return error;
  const json::Object *bindings = signature.getObject("bindings");
  if (Error error = checkCount(bindings ? bindings->size() : 0,
                               limits::bindings, "bindings of a kernel"))
    return error;
  if (Error error = checkCount(sizeOf(signature.getArray("aliases")),
                               limits::aliases, "aliases of a kernel"))
    return error;
  if (Error error = checkCount(sizeOf(signature.getArray("proofs")),
                               limits::proofs, "proofs of a kernel"))
    return error;
  if (Error error = checkCount(kernel.code.size(), limits::targets,
                               "targets of a kernel"))
    return error;
  for (const UnitCode &code : kernel.code)
    if (Error error = checkCode(code))
      return error;
  return Error::success();
}

Expected<std::string> mlafix::target::writeUnit(ArrayRef<UnitKernel> kernels) {
  if (Error error = checkCount(kernels.size(), limits::kernels, "kernels"))
    return error;
  // The manifest contains the offsets of the images, and these offsets depend
  // on the length of the manifest. Start with the smallest possible offset of
  // the first image, write the manifest, and repeat with the offset at which
  // the manifest ends. Larger offsets never shorten the manifest, so the loop
  // ends.
  uint64_t first = 0, next = headerSize;
  std::string manifest;
  while (next != first) {
    first = next;
    manifest = writeManifest(kernels, first);
    next = alignTo(headerSize + manifest.size(), imageAlignment);
  }

  if (Error error = checkCount(manifest.size(), limits::manifestBytes,
                               "bytes of manifest"))
    return error;

  std::string unit(headerSize, '\0');
  unit += manifest;
  for (const UnitKernel &kernel : kernels)
    for (const UnitCode &code : kernel.code)
      for (const UnitImage &image : code.images) {
        unit.resize(alignTo(unit.size(), imageAlignment), '\0');
        unit += image.bytes;
      }

  if (Error error = checkCount(unit.size(), limits::fileBytes, "bytes"))
    return error;

  std::copy(magic.begin(), magic.end(), unit.begin());
  char *header = unit.data();
  support::endian::write32le(header + 8, containerVersion);
  support::endian::write32le(header + 12, abiVersion);
  support::endian::write64le(header + 16, unit.size());
  support::endian::write64le(header + 24, manifest.size());
  support::endian::write64le(header + checksumOffset, checksum(unit));
  return unit;
}
