//===- Guards.cpp - Whether a call is one for a variant -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Guards.h"

#include "CpuCache.h"

using namespace mlafix::runtime;
using mlafix::GuardKind;

namespace {

/// Whether `holds` does for each argument that `args` has a bit for.
template <typename Holds> bool allOf(uint64_t args, Holds holds) {
  for (; args != 0; args &= args - 1)
    if (!holds(static_cast<uint32_t>(__builtin_ctzll(args))))
      return false;
  return true;
}

bool isAligned(const Call &call, uint32_t index, uint64_t bytes) {
  const ArgDesc &desc = call.desc().args[index];
  const CallArg &arg = call.args[index];
  // Bytes is a power of two, so that wrapping products keep their low bits.
  uint64_t bits = reinterpret_cast<uintptr_t>(arg.data);
  if (!arg.hasShape)
    return true; // omitted: never accessed
  if (desc.isMany())
    for (int64_t r = 0; r < arg.sizes[0]; ++r)
      bits |= reinterpret_cast<uintptr_t>(call.tables[arg.table][r]);
  for (uint32_t i = 0; i + 1 < desc.ndim(); ++i)
    if (arg.sizes[i] > 1)
      bits |= static_cast<uint64_t>(arg.strides[i]) * desc.elementBytes;
  return (bits & (bytes - 1)) == 0;
}

// Each kind of Guards.def has a function of its name.

bool holdsAlign(const Call &call, const Guard &guard, int64_t) {
  return allOf(guard.args, [&](uint32_t a) {
    return isAligned(call, a, static_cast<uint64_t>(guard.number));
  });
}

bool holdsDistinct(const Call &call, const Guard &guard, int64_t) {
  // Null is an omitted argument, or an empty one: never accessed.
  const void *first = call.args[guard.first].data;
  return allOf(guard.args & ~(uint64_t(1) << guard.first), [&](uint32_t a) {
    return !first || call.args[a].data != first;
  });
}

/// Whether elements of the two tensors that have the same indices are as far
/// apart.
bool hasSameStrides(const CallArg &a, const CallArg &b, uint32_t ndim) {
  if (!b.hasShape)
    return true; // omitted: never accessed
  for (uint32_t i = 0; i < ndim; ++i)
    if (b.sizes[i] > 1 && a.strides[i] != b.strides[i])
      return false;
  return true;
}

bool holdsSameStrides(const Call &call, const Guard &guard, int64_t) {
  return allOf(guard.args, [&](uint32_t a) {
    return hasSameStrides(call.args[guard.first], call.args[a],
                          call.desc().args[a].ndim());
  });
}

/// Whether so many bytes evict what was accessed first from the last cache,
/// which is shared: from half of its size on, as in memcpy.
bool holdsBeyondCache(const Call &call, const Guard &guard, int64_t) {
  double bytes = 0;
  allOf(guard.args, [&](uint32_t a) {
    bytes += elementBytes(call.desc().args[a], call.args[a]);
    return true;
  });
  return 2 * bytes > static_cast<double>(lastCacheBytes());
}

bool holdsMaxRows(const Call &, const Guard &guard, int64_t rows) {
  return rows <= guard.number;
}

bool holdsStride(const Call &call, const Guard &guard, int64_t) {
  const CallArg &arg = call.args[guard.first];
  return !arg.hasShape || arg.sizes[guard.dim] <= 1 ||
         arg.strides[guard.dim] == guard.number;
}

/// `text` with each `name` replaced.
std::string replace(std::string text, const std::string &name,
                    const std::string &value) {
  for (size_t at = 0; (at = text.find(name, at)) != text.npos;
       at += value.size())
    text.replace(at, name.size(), value);
  return text;
}

} // namespace

double mlafix::runtime::elementBytes(const ArgDesc &desc, const CallArg &arg) {
  if (!desc.isTensor() || !arg.present)
    return 0;
  double bytes = desc.elementBytes;
  bytes /= desc.perByte;
  for (uint32_t d = 0; d < desc.ndim(); ++d)
    bytes *= static_cast<double>(arg.sizes[d]);
  return bytes;
}

bool mlafix::runtime::holds(const Call &call, const Guard &guard,
                            int64_t rows) {
  switch (guard.kind) {
#define MLAFIX_GUARD(KIND, NAME, ARGS, NUMBER, RANGE, POINTERS, HOLDS)         \
  case GuardKind::KIND:                                                        \
    return holds##KIND(call, guard, rows);
#include "mlafix/Guards.def"
  }
  return false;
}

std::string mlafix::runtime::describe(const KernelDesc &kernel,
                                      const Guard &guard) {
  std::string args;
  allOf(guard.args, [&](uint32_t a) {
    args += (args.empty() ? "\"" : ", \"") + kernel.args[a].name + "\"";
    return true;
  });
  std::string text =
      replace(guard.spec().holds, "{number}", std::to_string(guard.number));
  text = replace(text, "{dim}", std::to_string(guard.dim));
  // Last, since names are the kernel's.
  return replace(text, "{args}", args);
}
