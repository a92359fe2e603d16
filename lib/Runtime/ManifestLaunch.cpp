//===- ManifestLaunch.cpp - Guards, parameters and geometry, from JSON ----===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "ManifestParts.h"

#include <algorithm>

using namespace mlafix;
using namespace mlafix::runtime;

namespace {

uint32_t argIndex(const Value &value, const KernelDesc &kernel) {
  return static_cast<uint32_t>(
      value.integer(0, static_cast<int64_t>(kernel.args.size()) - 1));
}

uint32_t dimIndex(const Value &value, const ArgDesc &arg) {
  return static_cast<uint32_t>(
      value.integer(0, static_cast<int64_t>(arg.dims.size()) - 1));
}

/// The tensors that the guard is about, in its field "args".
void parseGuardArgs(const Value &args, const KernelDesc &kernel, Guard &guard) {
  const GuardSpec &spec = guard.spec();
  size_t count = 0;
  args.each(MLAFIX_MAX_ARGS, [&](const Value &arg) {
    uint32_t index = tensorIndex(arg, kernel);
    if (count++ == 0)
      guard.first = index;
    guard.args |= uint64_t(1) << index;
    if (spec.args != GuardArgs::Alike)
      return;
    if (kernel.args[guard.first].optional)
      arg.error("a first tensor that is not optional");
    if (kernel.args[index].ndim() != kernel.args[guard.first].ndim())
      arg.error("tensors of one rank");
  });
  if (count < spec.leastArgs() || count > spec.mostArgs())
    args.error(spec.argsText());
}

Guard parseGuard(const Value &value, const KernelDesc &kernel) {
  const GuardSpec *spec = mlafix::findGuard(value.at("kind").string());
  if (!spec)
    value.at("kind").error("a guard that this library knows (the unit may "
                           "come from a newer mlafix)");
  Guard guard{};
  guard.kind = spec->kind;
  if (spec->args == GuardArgs::Dim) {
    guard.first = tensorIndex(value.at("arg"), kernel);
    guard.args = uint64_t(1) << guard.first;
    guard.dim = dimIndex(value.at("dim"), kernel.args[guard.first]);
  } else if (spec->args != GuardArgs::None) {
    parseGuardArgs(value.at("args"), kernel, guard);
  }
  if (spec->hasNumber()) {
    Value number = value.at(spec->number);
    guard.number = number.integer(INT64_MIN, INT64_MAX);
    if (!spec->takes(guard.number))
      number.error(spec->rangeText());
  }
  return guard;
}

/// Bytes of a scalar in the GPU's parameters.
uint32_t scalarBytes(int32_t kind) {
  if (kind == MLAFIX_ARG_BOOL)
    return 1;
  return kind == MLAFIX_ARG_I32 || kind == MLAFIX_ARG_F32 ? 4 : 8;
}

/// Of a parameter with a value of each rank or of each tensor of a list: as
/// many as any launch has.
void parseRanks(const Value &value, const KernelDesc &kernel, Param &param) {
  int64_t ranks = value.at("ranks").integer(1, MLAFIX_MAX_RANKS);
  bool isGroup = specOf(param.kind).of == ParamOf::Group;
  for (const ArgDesc &arg : kernel.args)
    if ((isGroup ? arg.isPeers() : &arg == &kernel.args[param.arg]) &&
        ranks < arg.most)
      value.at("ranks").error("at least as many as \"" + arg.name +
                              "\" may have");
  param.slots = static_cast<uint32_t>(
      specOf(param.kind).slots(static_cast<size_t>(ranks)));
  param.bytes = 8 * param.slots;
}

Param parseParam(const Value &value, const KernelDesc &kernel) {
  const ParamSpec *spec = mlafix::findParam(value.at("kind").string());
  if (!spec)
    value.at("kind").error("a parameter that this library knows (the unit may "
                           "come from a newer mlafix)");
  Param param{};
  param.kind = spec->kind;
  switch (spec->of) {
  case ParamOf::Launch:
    param.bytes = 4;
    break;
  case ParamOf::Scalar:
    param.arg = argIndex(value.at("arg"), kernel);
    if (kernel.args[param.arg].isTensor())
      value.at("arg").error("the index of a scalar");
    param.bytes = scalarBytes(kernel.args[param.arg].kind);
    break;
  case ParamOf::Tensor:
  case ParamOf::TensorDim:
    param.arg = tensorIndex(value.at("arg"), kernel);
    if (spec->hasDim())
      param.dim = dimIndex(value.at("dim"), kernel.args[param.arg]);
    break;
  case ParamOf::Peers:
    param.arg = tensorIndex(value.at("arg"), kernel);
    if (!kernel.args[param.arg].isMany())
      value.at("arg").error("an argument of several tensors");
    break;
  case ParamOf::Group:
    if (!kernel.collective)
      value.at("kind").error("a parameter of a kernel that is not collective");
  }
  if (spec->hasRanks())
    parseRanks(value, kernel, param);
  return param;
}

Extent parseExtent(const Value &value, const KernelDesc &kernel) {
  Extent extent{};
  if (value.has("value")) {
    extent.kind = Extent::Constant;
    extent.value = value.at("value").integer(0, INT64_MAX);
    return extent;
  }
  extent.arg = argIndex(value.at("arg"), kernel);
  const ArgDesc &arg = kernel.args[extent.arg];
  if (arg.isTensor()) {
    extent.kind = Extent::TensorSize;
    extent.dim = dimIndex(value.at("dim"), arg);
    if (arg.optional)
      value.error("an extent of an argument that is not optional");
  } else {
    extent.kind = Extent::ScalarValue;
    if (arg.kind != MLAFIX_ARG_I64 && arg.kind != MLAFIX_ARG_I32)
      value.error("an extent that is an integer");
  }
  return extent;
}

void parseGroups(const Value &geometryValue, const KernelDesc &kernel,
                 Geometry &geometry) {
  geometry.lanes = geometryValue.at("lanes").integer(1, INT32_MAX);
  geometry.threads = geometryValue.at("threads").integer(1, limits::threads);
  Value value = geometryValue.at("groups");
  Groups &groups = geometry.groups;
  auto powerOfTwo = [&](const char *name, int64_t most) {
    int64_t number = value.at(name).integer(1, most);
    if (number & (number - 1))
      value.at(name).error("a power of two");
    return number;
  };
  groups.most = powerOfTwo("most", limits::groups);
  groups.chunk = value.at("chunk").integer(1, limits::rowsPerBlock);
  groups.leastThreads =
      powerOfTwo("least_threads", limits::threads / groups.most);
  groups.threadsPerSm =
      value.at("threads_per_sm").integer(1, limits::threadsPerSm);
  groups.pieces = parseExtent(value.at("pieces"), kernel);
  if (geometry.threads <
      std::max(limits::leastGroupedBlock, groups.most * groups.leastThreads))
    geometryValue.at("threads").error("threads for all groups");
}

Geometry parseGeometry(const Value &value, const KernelDesc &kernel,
                       bool isCpu) {
  Geometry geometry;
  std::string kind = value.at("kind").string();
  auto append = [&](const Value &extent) {
    geometry.extents.push_back(parseExtent(extent, kernel));
  };
  if (kind == mlafix::geometry::rows) {
    geometry.kind = Geometry::Rows;
    value.at("extents").each(limits::extents, append);
  } else if (kind == mlafix::geometry::ragged) {
    geometry.kind = Geometry::Ragged;
    append(value.at("rows"));
    value.at("inner").each(limits::extents, append);
  } else if (kind == mlafix::geometry::groups && !isCpu) {
    geometry.kind = Geometry::Groups;
    value.at("extents").each(limits::extents, append);
    parseGroups(value, kernel, geometry);
    return geometry;
  } else {
    value.at("kind").error("a geometry that this library knows (the unit may "
                           "come from a newer mlafix)");
  }
  if (!isCpu || value.has("rows_per_block"))
    geometry.rowsPerBlock =
        value.at("rows_per_block").integer(1, limits::rowsPerBlock);
  // The CPU's grid is cut up by the runtime itself.
  if (isCpu)
    return geometry;
  geometry.threads = value.at("threads").integer(1, limits::threads);
  geometry.leastThreads = geometry.threads;
  if (geometry.kind == Geometry::Rows && value.has("least_threads"))
    geometry.leastThreads =
        value.at("least_threads").integer(1, geometry.threads);
  if (geometry.kind == Geometry::Ragged)
    geometry.blocksPerSm =
        value.at("blocks_per_sm").integer(1, limits::blocksPerSm);
  return geometry;
}

} // namespace

uint32_t mlafix::runtime::tensorIndex(const Value &value,
                                      const KernelDesc &kernel) {
  uint32_t index = argIndex(value, kernel);
  if (!kernel.args[index].isTensor())
    value.error("the index of a tensor");
  if (kernel.args[index].isAbsent())
    value.error("the index of a tensor that is not absent");
  return index;
}

CodeVersion mlafix::runtime::parseCodeVersion(const Value &value,
                                              const KernelDesc &kernel,
                                              const TargetCode &code) {
  CodeVersion variant;
  variant.entry = value.at("entry").name();
  value.at("guards").each(limits::guards, [&](const Value &guard) {
    variant.guards.push_back(parseGuard(guard, kernel));
  });
  uint32_t slots = 0;
  value.at("params").each(MLAFIX_MAX_PARAMS, [&](const Value &param) {
    variant.params.push_back(parseParam(param, kernel));
    const Param &added = variant.params.back();
    if (added.kind == ParamKind::Local)
      variant.local = static_cast<int32_t>(variant.params.size() - 1);
    if (added.kind == ParamKind::Group)
      variant.group = static_cast<int32_t>(slots);
    bool isRead = added.kind == ParamKind::Pointer
                      ? kernel.args[added.arg].access != MLAFIX_WRITE
                      : added.kind == ParamKind::Peers &&
                            !kernel.args[added.arg].isPeers();
    for (uint32_t i = 0; isRead && i < added.slots; ++i)
      variant.readSlots.push_back(slots + i);
    slots += added.slots;
    if (slots > limits::slots)
      param.error("parameters of at most " + std::to_string(limits::slots) +
                  " slots");
  });
  variant.geometry = parseGeometry(value.at("geometry"), kernel, code.isCpu());
  for (const Param &param : variant.params)
    if (param.kind == ParamKind::GroupThreads &&
        variant.geometry.kind != Geometry::Groups)
      value.at("params").error("\"group_threads\" only beside a geometry of "
                               "lane groups");
  if (value.has("dependent_launch"))
    variant.dependentLaunch = value.at("dependent_launch").boolean();
  if (code.isCpu()) {
    variant.offset =
        static_cast<uint64_t>(value.at("offset").integer(0, INT64_MAX));
    for (const Image &image : code.images)
      if (variant.offset >= image.size)
        value.at("offset").error("an offset within the image of " +
                                 std::to_string(image.size) + " bytes");
  }
  return variant;
}
