//===- VariantJson.cpp - variants as a unit holds them --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/VariantJson.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace llvm;
using namespace mlafix;
using namespace mlafix::target;

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

/// The runtime shares out a CPU's rows itself: fields that say nothing there
/// are 1.
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
