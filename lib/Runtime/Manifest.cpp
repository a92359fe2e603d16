//===- Manifest.cpp - The manifest of a unit, from JSON -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Only this file and ManifestJson.cpp use the JSON library, through
// ManifestValue.h. The parsers throw a ManifestError that contains the path to
// the wrong value. parseManifest() catches it.
//
//===----------------------------------------------------------------------===//

#include "Manifest.h"

#include "ManifestValue.h"
#include "Status.h"

#include <algorithm>
#include <set>

using namespace mlafix::runtime;
using namespace mlafix;
using nlohmann::json;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

namespace {

int32_t dimId(KernelDesc &kernel, const std::string &name) {
  if (name.empty())
    return -1;
  auto &names = kernel.dimNames;
  auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    found = names.insert(names.end(), name);
  return static_cast<int32_t>(found - names.begin());
}

void parseTensor(const Value &value, KernelDesc &kernel, ArgDesc &arg,
                 int32_t kind) {
  arg.kind = kind;
  const DTypeInfo *dtype = findDType(arg.dtypeName);
  if (!dtype)
    value.at("dtype").error("a dtype of a tensor that this library knows");
  arg.dtype = dtype->dtype;
  arg.elementBytes = dtype->bytes;
  arg.perByte = dtype->perByte;
  value.at("dims").each(MLAFIX_MAX_DIMS, [&](const Value &dim) {
    arg.dims.push_back(dim.string());
    arg.dimIds[arg.numDims++] = dimId(kernel, arg.dims.back());
  });
  // -1 means any size or stride: no kernel requires a stride of -1.
  auto readNumbers = [&](const Value &list, const char *what, int64_t *out) {
    uint32_t count = 0;
    list.each(MLAFIX_MAX_DIMS, [&](const Value &number) {
      out[count++] = number.integer(-1, INT64_MAX);
    });
    if (count != arg.numDims)
      list.error(std::to_string(arg.numDims) + what + ", one per dim");
  };
  readNumbers(value.at("shape"), " sizes", arg.shape);
  readNumbers(value.at("strides"), " strides", arg.strides);
  arg.access = value.at("access").choose<int32_t>(
      {{"read", MLAFIX_READ},
       {"write", MLAFIX_WRITE},
       {"update", MLAFIX_UPDATE},
       {"absent", MLAFIX_ABSENT}},
      "\"read\", \"write\", \"update\" or \"absent\"");
  if (value.has("swizzle")) {
    std::string tiles = value.at("swizzle").string();
    arg.tileRows = tiles == "128x4" ? 128 : tiles == "8x4" ? 8 : 0;
    if (!arg.isSwizzled() || arg.numDims < 2 || arg.perByte > 1 || arg.isMany())
      value.at("swizzle").error("\"128x4\" or \"8x4\", of one tensor with rows "
                                "and columns (the unit may come from a newer "
                                "mlafix)");
  }
  if (arg.perByte > 1 && arg.numDims == 0)
    value.at("dims").error("a dim at least of elements that share a byte");
  arg.optional = value.has("optional") && value.at("optional").boolean();
  if (arg.isAbsent() && !arg.optional)
    value.at("access").error("an optional argument where it is \"absent\"");
  auto binding = std::find_if(
      kernel.bindings.begin(), kernel.bindings.end(),
      [&](const auto &candidate) { return candidate.first == arg.name; });
  arg.boundPresent =
      binding != kernel.bindings.end() && binding->second == "present";
}

void parseMany(const Value &value, KernelDesc &kernel, ArgDesc &arg,
               mlafix_arg_kind kind) {
  parseTensor(value, kernel, arg, kind);
  int64_t most = MLAFIX_MAX_RANKS;
  if (!arg.isPeers())
    most = value.at("most").integer(1, most);
  bool isSent = arg.isPeers() && arg.access == MLAFIX_UPDATE;
  if ((arg.access != MLAFIX_READ && !isSent) || arg.optional)
    value.at("access").error("\"read\", or \"update\" of peers, of tensors "
                             "that are not optional");
  if (arg.numDims < 2 || arg.shape[0] > most)
    value.at("dims").error("the number of tensors, at most " +
                           std::to_string(most) + ", and the dims of each");
  arg.most = static_cast<uint32_t>(arg.shape[0] < 0 ? most : arg.shape[0]);
  auto others = std::count_if(kernel.args.begin(), kernel.args.end(),
                              [](const ArgDesc &a) { return a.isMany(); });
  if (static_cast<size_t>(others) >= limits::peers)
    value.at("kind").error("at most " + std::to_string(limits::peers) +
                           " arguments of several tensors");
  kernel.collective |= arg.isPeers();
  kernel.exchanges |= isSent;
}

void parseScalar(const Value &value, ArgDesc &arg) {
  arg.kind = value.at("dtype").choose<int32_t>(
      {{"index", MLAFIX_ARG_I64},
       {"i64", MLAFIX_ARG_I64},
       {"i32", MLAFIX_ARG_I32},
       {"f32", MLAFIX_ARG_F32},
       {"bool", MLAFIX_ARG_BOOL}},
      "\"index\", \"i64\", \"i32\", \"f32\" or \"bool\"");
  if (!value.has("at_most"))
    return;
  if (arg.kind != MLAFIX_ARG_I64 && arg.kind != MLAFIX_ARG_I32)
    value.at("at_most").error("at_most only on an integer");
  arg.atMost = value.at("at_most").name();
}

} // namespace

/// Parses an element of "args", the next argument of `kernel`. Adds the names
/// of its dims to the kernel.
static ArgDesc parseArg(const Value &value, KernelDesc &kernel) {
  ArgDesc arg;
  arg.name = value.at("name").name();
  for (const ArgDesc &other : kernel.args)
    if (other.name == arg.name)
      value.at("name").error("a name that no other argument has");
  arg.dtypeName = value.at("dtype").string();
  std::string kind = value.at("kind").string();
  if (kind == "tensor")
    parseTensor(value, kernel, arg, MLAFIX_ARG_TENSOR);
  else if (kind == "peers")
    parseMany(value, kernel, arg, MLAFIX_ARG_PEERS);
  else if (kind == "list")
    parseMany(value, kernel, arg, MLAFIX_ARG_LIST);
  else if (kind == "scalar")
    parseScalar(value, arg);
  else
    value.at("kind").error("\"tensor\", \"peers\", \"list\" or \"scalar\" (the "
                           "unit may come from a newer mlafix)");
  return arg;
}

/// For each scalar with "at_most": finds the dim whose size bounds the scalar.
/// An argument that is not optional must have this dim, so that the size is
/// always known.
static void resolveBounds(KernelDesc &kernel) {
  for (ArgDesc &arg : kernel.args) {
    if (arg.atMost.empty())
      continue;
    for (const ArgDesc &other : kernel.args)
      if (!other.optional)
        for (size_t i = 0; i < other.dims.size(); ++i)
          if (other.dims[i] == arg.atMost)
            arg.atMostId = other.dimIds[i];
    if (arg.atMostId < 0)
      throw ManifestError{"argument \"" + arg.name +
                          "\": expected at_most to name a dim of an argument "
                          "that is not optional, got \"" +
                          arg.atMost + "\""};
  }
}

//===----------------------------------------------------------------------===//
// Checks of a launch
//===----------------------------------------------------------------------===//

namespace {

struct StepSpec {
  CheckStepKind kind;
  const char *name;
  uint32_t operands;
};

constexpr StepSpec stepSpecs[] = {
    {CheckStepKind::Constant, "constant", 0},
    {CheckStepKind::Size, "size", 0},
    {CheckStepKind::Scalar, "scalar", 0},
#define MLAFIX_CHECK_STEP(KIND, NAME, OPERANDS, VALUE)                         \
  {CheckStepKind::KIND, NAME, OPERANDS},
#include "mlafix/CheckSteps.def"
};

uint32_t argIndex(const Value &value, const KernelDesc &kernel) {
  return static_cast<uint32_t>(
      value.integer(0, static_cast<int64_t>(kernel.args.size()) - 1));
}

uint32_t dimIndex(const Value &value, const ArgDesc &arg) {
  return static_cast<uint32_t>(
      value.integer(0, static_cast<int64_t>(arg.dims.size()) - 1));
}

/// Parses a step that reads a size, a scalar or a constant.
void parseLeaf(const Value &value, const KernelDesc &kernel, CheckStep &step) {
  if (step.kind == CheckStepKind::Constant) {
    step.value = value.at("value").integer(INT64_MIN, INT64_MAX);
    return;
  }
  step.arg = argIndex(value.at("arg"), kernel);
  const ArgDesc &arg = kernel.args[step.arg];
  if (step.kind == CheckStepKind::Size) {
    if (!arg.isTensor() || arg.ndim() == 0)
      value.at("arg").error("a tensor with dims");
    step.dim = dimIndex(value.at("dim"), arg);
  } else if (arg.isTensor() || arg.kind == MLAFIX_ARG_F32) {
    value.at("arg").error("an integer scalar");
  }
}

CheckStep parseStep(const Value &value, const KernelDesc &kernel,
                    int64_t position) {
  CheckStep step;
  std::string name = value.at("op").string();
  auto spec =
      std::find_if(std::begin(stepSpecs), std::end(stepSpecs),
                   [&](const StepSpec &known) { return name == known.name; });
  if (spec == std::end(stepSpecs))
    value.at("op").error("a step that this library knows");
  step.kind = spec->kind;
  if (spec->operands == 0) {
    parseLeaf(value, kernel, step);
    return step;
  }
  uint32_t count = 0;
  value.at("of").each(spec->operands, [&](const Value &operand) {
    step.of[count++] = static_cast<uint32_t>(operand.integer(0, position - 1));
  });
  if (count != spec->operands)
    value.at("of").error(std::to_string(spec->operands) + " steps");
  return step;
}

} // namespace

/// Parses an element of "checks". The kernel's arguments are parsed already.
static LaunchCheck parseLaunchCheck(const Value &value,
                                    const KernelDesc &kernel) {
  LaunchCheck check;
  check.text = value.at("text").name();
  value.at("steps").each(limits::checkSteps, [&](const Value &step) {
    check.steps.push_back(
        parseStep(step, kernel, static_cast<int64_t>(check.steps.size())));
  });
  if (check.steps.empty())
    value.at("steps").error("one step or more");
  return check;
}

//===----------------------------------------------------------------------===//
// Code versions
//===----------------------------------------------------------------------===//

namespace {

/// Parses the index of a tensor argument that is not absent.
uint32_t tensorIndex(const Value &value, const KernelDesc &kernel) {
  uint32_t index = argIndex(value, kernel);
  if (!kernel.args[index].isTensor())
    value.error("the index of a tensor");
  if (kernel.args[index].isAbsent())
    value.error("the index of a tensor that is not absent");
  return index;
}

/// Parses a guard's field "args": the tensors that it tests.
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
    if (guard.kind == mlafix::GuardKind::Packed &&
        guard.dim + 1 == kernel.args[guard.first].ndim())
      value.at("dim").error("a dim before the last one");
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

/// Returns the size in bytes of a scalar parameter of a GPU kernel.
uint32_t scalarBytes(int32_t kind) {
  if (kind == MLAFIX_ARG_BOOL)
    return 1;
  return kind == MLAFIX_ARG_I32 || kind == MLAFIX_ARG_F32 ? 4 : 8;
}

/// Parses "ranks" of a parameter that has one value per rank or per tensor of a
/// list. "ranks" is the largest number of such values in a launch.
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
    if (value.has("per"))
      extent.per = value.at("per").integer(1, INT32_MAX);
    if (arg.optional)
      value.error("an extent of an argument that is not optional");
  } else {
    extent.kind = Extent::ScalarValue;
    if (arg.kind != MLAFIX_ARG_I64 && arg.kind != MLAFIX_ARG_I32)
      value.error("an extent that is an integer");
  }
  return extent;
}

int64_t powerOfTwo(const Value &value, int64_t most) {
  int64_t number = value.integer(1, most);
  if (number & (number - 1))
    value.error("a power of two");
  return number;
}

void parseGroups(const Value &geometryValue, const KernelDesc &kernel,
                 Geometry &geometry) {
  geometry.lanes = geometryValue.at("lanes").integer(1, INT32_MAX);
  geometry.threads = geometryValue.at("threads").integer(1, limits::threads);
  Value value = geometryValue.at("groups");
  Groups &groups = geometry.groups;
  groups.most = powerOfTwo(value.at("most"), limits::groups);
  groups.chunk = value.at("chunk").integer(1, limits::rowsPerBlock);
  groups.leastThreads =
      powerOfTwo(value.at("least_threads"), limits::threads / groups.most);
  groups.threadsPerSm =
      value.at("threads_per_sm").integer(1, limits::threadsPerSm);
  groups.pieces = parseExtent(value.at("pieces"), kernel);
  if (geometry.threads <
      std::max(limits::leastGroupedBlock, groups.most * groups.leastThreads))
    geometryValue.at("threads").error("threads for all groups");
}

void parseParts(const Value &value, const KernelDesc &kernel,
                Geometry &geometry) {
  geometry.parts = parseExtent(value, kernel);
  if (geometry.rowsPerBlock != 1 || geometry.cluster != 1)
    value.error("parts only where \"rows_per_block\" and \"cluster\" are 1");
}

void parseCluster(const Value &value, Geometry &geometry) {
  geometry.cluster = powerOfTwo(value, limits::clusterBlocks);
  if (geometry.cluster > 1 && geometry.rowsPerBlock != 1)
    value.error("a cluster only where \"rows_per_block\" is 1");
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
  // The other fields are for GPUs. On CPUs, the runtime itself distributes the
  // grid over threads.
  if (isCpu)
    return geometry;
  geometry.threads = value.at("threads").integer(1, limits::threads);
  geometry.leastThreads = geometry.threads;
  if (geometry.kind == Geometry::Rows && value.has("least_threads"))
    geometry.leastThreads =
        value.at("least_threads").integer(1, geometry.threads);
  if (geometry.kind == Geometry::Rows && value.has("cluster"))
    parseCluster(value.at("cluster"), geometry);
  if (geometry.kind == Geometry::Rows && value.has("parts"))
    parseParts(value.at("parts"), kernel, geometry);
  if (geometry.kind == Geometry::Ragged)
    geometry.blocksPerSm =
        value.at("blocks_per_sm").integer(1, limits::blocksPerSm);
  return geometry;
}

} // namespace

/// The largest stack in bytes that a unit may ask for. It is more than compiled
/// code needs: the compiler keeps at most 4 MB of rows on the stack.
constexpr int64_t mostStackBytes = 64 << 20;

/// Parses an element of "variants". The images of `code` are parsed already.
static CodeVersion parseCodeVersion(const Value &value,
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
    if (value.has("stack_bytes"))
      variant.stackBytes = static_cast<uint64_t>(
          value.at("stack_bytes").integer(0, mostStackBytes));
  }
  return variant;
}

namespace {

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

Image parseImage(const Value &value, const TargetCode &code) {
  Image image{};
  image.format = value.at("format").choose<Image::Format>(
      {{"cubin", Image::Cubin}, {"ptx", Image::Ptx}, {"cpu", Image::Cpu}},
      "a format that this library knows (the unit may come from a newer "
      "mlafix)");
  if (code.isCpu() != (image.format == Image::Cpu))
    value.at("format").error(code.isCpu()
                                 ? "\"cpu\" for " + code.target
                                 : "\"cubin\" or \"ptx\" for " + code.target);
  image.offset = static_cast<uint64_t>(
      value.at("offset").integer(0, static_cast<int64_t>(limits::fileBytes)));
  image.size = static_cast<uint64_t>(
      value.at("size").integer(1, static_cast<int64_t>(limits::fileBytes)));
  if (value.has("assembler"))
    image.assembler = value.at("assembler").string();
  return image;
}

/// Returns 90 for "sm_90", and 0 for other kinds of names.
int parseSm(const std::string &target) {
  if (target.size() < 5 || target.size() > 6 ||
      target.compare(0, 3, "sm_") != 0)
    return 0;
  int number = 0;
  for (char c : target.substr(3)) {
    if (c < '0' || c > '9')
      return 0;
    number = number * 10 + (c - '0');
  }
  return number;
}

TargetCode parseCode(const Value &value, const KernelDesc &kernel) {
  TargetCode code;
  code.target = value.at("target").name();
  code.computeCapability = parseSm(code.target);
  code.cpuLevel = cpuLevelOf(code.target);
  if (code.isCpu() && !isCpuTarget(code.target))
    value.at("target").error("\"sm_NN\""
#define MLAFIX_CPU_TARGET(NAME, ARCHITECTURE, LEVEL) ", \"" NAME "\""
#include "mlafix/Targets.def"
                             " (the unit may come from a newer mlafix)");
  for (const TargetCode &other : kernel.code)
    if (other.target == code.target)
      value.at("target").error("a target that no other entry has");
  value.at("images").each(limits::images, [&](const Value &image) {
    code.images.push_back(parseImage(image, code));
  });
  if (code.images.empty())
    value.at("images").error("at least one image");
  if (code.isCpu() && code.images.size() != 1)
    value.at("images").error("one image for a CPU target");
  value.at("variants").each(limits::variants, [&](const Value &variant) {
    code.variants.push_back(parseCodeVersion(variant, kernel, code));
  });
  if (code.variants.empty())
    value.at("variants").error("at least one code version");
  return code;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

std::vector<std::pair<std::string, std::string>>
parseBindings(const Value &value) {
  std::vector<std::pair<std::string, std::string>> bindings;
  value.requireObject();
  if (value.raw().size() > limits::bindings)
    value.error("at most " + std::to_string(limits::bindings) + " bindings");
  // The JSON library keeps keys sorted, so `bindings` is sorted by name.
  for (const auto &item : value.raw().items()) {
    Value binding = value.at(item.key().c_str());
    std::string text =
        item.value().is_number_integer()
            ? std::to_string(binding.integer(INT64_MIN, INT64_MAX))
            : binding.name();
    // '=' and ',' are separators in the text of bindings, "D=128,T=bf16".
    if (!limits::isBindable(item.key()) || !limits::isBindable(text))
      value.error("names and values without '=' and ','");
    bindings.emplace_back(item.key(), text);
  }
  return bindings;
}

ProofDesc parseProof(const Value &value, const KernelDesc &kernel) {
  ProofDesc proof;
  proof.arg = argIndex(value.at("arg"), kernel);
  proof.question = value.at("question").name();
  proof.verdict = value.at("verdict").name();
  if (value.has("reason"))
    proof.reason = value.at("reason").string();
  if (value.has("element"))
    proof.element = value.at("element").string();
  return proof;
}

KernelDesc parseKernel(const Value &value) {
  KernelDesc kernel;
  kernel.name = value.at("name").name();
  if (value.has("bindings"))
    kernel.bindings = parseBindings(value.at("bindings"));
  for (const auto &[name, text] : kernel.bindings)
    kernel.bindingsText +=
        (kernel.bindingsText.empty() ? "" : ",") + name + "=" + text;
  if (value.has("defaults"))
    kernel.defaults = parseBindings(value.at("defaults"));
  value.at("args").each(MLAFIX_MAX_ARGS, [&](const Value &arg) {
    kernel.args.push_back(parseArg(arg, kernel));
  });
  resolveBounds(kernel);
  if (value.has("aliases"))
    value.at("aliases").each(limits::aliases, [&](const Value &pair) {
      std::vector<uint32_t> members;
      pair.each(2, [&](const Value &member) {
        members.push_back(tensorIndex(member, kernel));
      });
      if (members.size() != 2 || members[0] == members[1])
        pair.error("two different arguments");
      kernel.aliases.emplace_back(members[0], members[1]);
    });
  if (value.has("checks"))
    value.at("checks").each(limits::checks, [&](const Value &check) {
      kernel.checks.push_back(parseLaunchCheck(check, kernel));
    });
  if (value.has("proofs"))
    value.at("proofs").each(limits::proofs, [&](const Value &proof) {
      kernel.proofs.push_back(parseProof(proof, kernel));
    });
  value.at("code").each(limits::targets, [&](const Value &code) {
    kernel.code.push_back(parseCode(code, kernel));
  });
  return kernel;
}

} // namespace

mlafix_status mlafix::runtime::parseManifest(const char *text, size_t size,
                                             UnitDesc &unit) {
  try {
    json root = parseJson(text, size);
    Value value(root, "");
    std::set<std::string> seen;
    if (value.has("producer"))
      unit.producer = value.at("producer").string();
    value.at("kernels").each(limits::kernels, [&](const Value &kernel) {
      unit.kernels.push_back(parseKernel(kernel));
      // A lookup could not choose between two kernels with equal names and
      // bindings.
      const KernelDesc &last = unit.kernels.back();
      if (!seen.insert(last.name + " " + last.bindingsText).second)
        kernel.at("name").error("another name, or other bindings, than each "
                                "kernel before it");
    });
  } catch (const ManifestError &error) {
    return fail(MLAFIX_BAD_UNIT, "the unit's manifest is wrong: %s",
                error.message.c_str());
  }
  // The strings no longer move, so pointers to them stay valid.
  for (KernelDesc &kernel : unit.kernels)
    for (ArgDesc &arg : kernel.args)
      for (const std::string &dim : arg.dims)
        arg.dimPointers.push_back(dim.c_str());
  return MLAFIX_OK;
}
