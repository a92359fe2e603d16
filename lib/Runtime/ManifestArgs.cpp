//===- ManifestArgs.cpp - The arguments of a kernel, from JSON ------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Manifest.h"
#include "ManifestParts.h"

#include <algorithm>

using namespace mlafix::runtime;

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
  uint32_t sizes = 0, strides = 0;
  value.at("shape").each(MLAFIX_MAX_DIMS, [&](const Value &size) {
    arg.shape[sizes++] = size.integer(-1, INT64_MAX);
  });
  value.at("strides").each(MLAFIX_MAX_DIMS, [&](const Value &stride) {
    // -1 is "any": no kernel wants a stride that it cannot tell from that.
    arg.strides[strides++] = stride.integer(-1, INT64_MAX);
  });
  if (sizes != arg.numDims)
    value.at("shape").error(std::to_string(arg.dims.size()) +
                            " sizes, one per dim");
  if (strides != arg.numDims)
    value.at("strides").error(std::to_string(arg.dims.size()) +
                              " strides, one per dim");
  std::string access = value.at("access").string();
  if (access == "read")
    arg.access = MLAFIX_READ;
  else if (access == "write")
    arg.access = MLAFIX_WRITE;
  else if (access == "update")
    arg.access = MLAFIX_UPDATE;
  else if (access == "absent")
    arg.access = MLAFIX_ABSENT;
  else
    value.at("access").error("\"read\", \"write\", \"update\" or \"absent\"");
  arg.isTiled = value.has("swizzle");
  if (arg.isTiled && (value.at("swizzle").string() != "128x4" ||
                      arg.numDims < 2 || arg.perByte > 1 || arg.isMany()))
    value.at("swizzle").error("\"128x4\", of one tensor with rows and columns "
                              "(the unit may come from a newer mlafix)");
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
  if (arg.dtypeName == "index" || arg.dtypeName == "i64")
    arg.kind = MLAFIX_ARG_I64;
  else if (arg.dtypeName == "i32")
    arg.kind = MLAFIX_ARG_I32;
  else if (arg.dtypeName == "f32")
    arg.kind = MLAFIX_ARG_F32;
  else if (arg.dtypeName == "bool")
    arg.kind = MLAFIX_ARG_BOOL;
  else
    value.at("dtype").error("\"index\", \"i64\", \"i32\", \"f32\" or \"bool\"");
  if (!value.has("at_most"))
    return;
  if (arg.kind != MLAFIX_ARG_I64 && arg.kind != MLAFIX_ARG_I32)
    value.at("at_most").error("no bound on a scalar that is no integer");
  arg.atMost = value.at("at_most").name();
}

} // namespace

ArgDesc mlafix::runtime::parseArg(const Value &value, KernelDesc &kernel) {
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

/// A bound must always have a value: some argument that cannot be omitted.
void mlafix::runtime::resolveBounds(KernelDesc &kernel) {
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
