//===- Plan.cpp - code version, grid, parameters --------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "Environment.h"
#include "Status.h"
#include "Unit.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace mlafix::runtime;
using mlafix::GroupedGrid;
using mlafix::GuardKind;
using mlafix::ParamKind;

//===----------------------------------------------------------------------===//
// Guards
//===----------------------------------------------------------------------===//

/// Returns the total bytes of a tensor's elements. Returns 0 for a scalar and
/// for an omitted tensor.
static double elementBytes(const ArgDesc &desc, const CallArg &arg) {
  if (!desc.isTensor() || !arg.present)
    return 0;
  double bytes = desc.elementBytes;
  bytes /= desc.perByte;
  for (uint32_t d = 0; d < desc.ndim(); ++d)
    bytes *= static_cast<double>(arg.sizes[d]);
  return bytes;
}

namespace {

/// Returns true if `holds(a)` is true for each argument index `a` in the bit
/// set `args`.
template <typename Holds> bool allOf(uint64_t args, Holds holds) {
  for (; args != 0; args &= args - 1)
    if (!holds(static_cast<uint32_t>(__builtin_ctzll(args))))
      return false;
  return true;
}

bool isAligned(const Call &call, uint32_t index, uint64_t bytes) {
  const ArgDesc &desc = call.desc().args[index];
  const CallArg &arg = call.args[index];
  // The product of a stride and an element's size may overflow. Its low bits
  // are right nevertheless, and only these matter, since `bytes` is a power of
  // two.
  uint64_t bits = reinterpret_cast<uintptr_t>(arg.data);
  if (!arg.hasShape)
    return true; // an omitted tensor is never accessed
  if (desc.isMany())
    for (int64_t r = 0; r < arg.sizes[0]; ++r)
      bits |= reinterpret_cast<uintptr_t>(call.tables[arg.table][r]);
  for (uint32_t i = 0; i + 1 < desc.ndim(); ++i)
    if (arg.sizes[i] > 1)
      bits |= static_cast<uint64_t>(arg.strides[i]) * desc.elementBytes;
  return (bits & (bytes - 1)) == 0;
}

// Each kind of guard in Guards.def has one of the following functions. It
// returns true if the guard holds.

bool holdsAlign(const Call &call, const Guard &guard, int64_t) {
  return allOf(guard.args, [&](uint32_t a) {
    return isAligned(call, a, static_cast<uint64_t>(guard.number));
  });
}

bool holdsDistinct(const Call &call, const Guard &guard, int64_t) {
  // A null pointer means an omitted or empty tensor, which is never accessed.
  const void *first = call.args[guard.first].data;
  return allOf(guard.args & ~(uint64_t(1) << guard.first), [&](uint32_t a) {
    return !first || call.args[a].data != first;
  });
}

/// Returns true if equal indices give equal offsets in both tensors.
bool hasSameStrides(const CallArg &a, const CallArg &b, uint32_t ndim) {
  if (!b.hasShape)
    return true; // an omitted tensor is never accessed
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

double bytesOf(const Call &call, const Guard &guard) {
  double bytes = 0;
  allOf(guard.args, [&](uint32_t a) {
    bytes += elementBytes(call.desc().args[a], call.args[a]);
    return true;
  });
  return bytes;
}

/// Returns true if the tensors have more bytes than half of the last-level
/// cache. The end of the tensors would then evict their beginning from the
/// cache. glibc's memcpy() uses the same limit.
bool holdsBeyondCache(const Call &call, const Guard &guard, int64_t) {
  return 2 * bytesOf(call, guard) > static_cast<double>(lastCacheBytes());
}

bool holdsMaxRows(const Call &, const Guard &guard, int64_t rows) {
  return rows <= guard.number;
}

bool holdsStride(const Call &call, const Guard &guard, int64_t) {
  const CallArg &arg = call.args[guard.first];
  return !arg.hasShape || arg.sizes[guard.dim] <= 1 ||
         arg.strides[guard.dim] == guard.number;
}

bool holdsPacked(const Call &call, const Guard &guard, int64_t) {
  const CallArg &arg = call.args[guard.first];
  int64_t stride = 0;
  return !arg.hasShape || arg.sizes[guard.dim] <= 1 ||
         (!__builtin_mul_overflow(arg.sizes[guard.dim + 1], guard.number,
                                  &stride) &&
          arg.strides[guard.dim] == stride);
}

bool holdsMultiple(const Call &call, const Guard &guard, int64_t) {
  const CallArg &arg = call.args[guard.first];
  return !arg.hasShape || arg.sizes[guard.dim] % guard.number == 0;
}

bool holdsAtMost(const Call &call, const Guard &guard, int64_t) {
  const CallArg &arg = call.args[guard.first];
  return !arg.hasShape || arg.sizes[guard.dim] <= guard.number;
}

// The following functions, one for each kind of guard, describe for a message
// the value of the call that failed the guard.

/// Formats numbers as a list, for example "[4096, 128, 1]".
std::string listOf(const int64_t *numbers, uint32_t count) {
  std::string text = "[";
  for (uint32_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::to_string(numbers[i]);
  return text + "]";
}

std::string quoted(const Call &call, uint32_t index) {
  return '"' + call.desc().args[index].name + '"';
}

std::string gotAlign(const Call &call, const Guard &guard, int64_t) {
  std::string text;
  allOf(guard.args, [&](uint32_t a) {
    uint64_t bytes = static_cast<uint64_t>(guard.number);
    if (isAligned(call, a, bytes))
      return true;
    do
      bytes /= 2;
    while (!isAligned(call, a, bytes));
    text = quoted(call, a) + " at multiples of " + std::to_string(bytes);
    return false;
  });
  return text;
}

std::string gotDistinct(const Call &, const Guard &, int64_t) {
  return "one address";
}

std::string gotSameStrides(const Call &call, const Guard &guard, int64_t) {
  std::string text;
  allOf(guard.args, [&](uint32_t a) {
    const CallArg &arg = call.args[a];
    if (arg.hasShape)
      text += (text.empty() ? "" : ", ") +
              listOf(arg.strides, call.desc().args[a].ndim()) + " of " +
              quoted(call, a);
    return true;
  });
  return text;
}

std::string gotBeyondCache(const Call &call, const Guard &guard, int64_t) {
  return std::to_string(static_cast<uint64_t>(bytesOf(call, guard))) +
         " bytes, and a cache of " + std::to_string(lastCacheBytes());
}

std::string gotMaxRows(const Call &, const Guard &, int64_t rows) {
  return std::to_string(rows);
}

std::string gotStride(const Call &call, const Guard &guard, int64_t) {
  return std::to_string(call.args[guard.first].strides[guard.dim]);
}

std::string gotPacked(const Call &call, const Guard &guard, int64_t) {
  const CallArg &arg = call.args[guard.first];
  return "stride " + std::to_string(arg.strides[guard.dim]) + " and size " +
         std::to_string(arg.sizes[guard.dim + 1]);
}

std::string gotMultiple(const Call &call, const Guard &guard, int64_t) {
  return std::to_string(call.args[guard.first].sizes[guard.dim]);
}

std::string gotAtMost(const Call &call, const Guard &guard, int64_t rows) {
  return gotMultiple(call, guard, rows);
}

/// Returns `text` with every occurrence of `name` replaced by `value`.
std::string replace(std::string text, const std::string &name,
                    const std::string &value) {
  for (size_t at = 0; (at = text.find(name, at)) != text.npos;
       at += value.size())
    text.replace(at, name.size(), value);
  return text;
}

} // namespace

/// Returns true if the guard holds for a call whose grid has `rows` rows.
static bool holds(const Call &call, const Guard &guard, int64_t rows) {
  switch (guard.kind) {
#define MLAFIX_GUARD(KIND, NAME, ARGS, NUMBER, RANGE, POINTERS, HOLDS)         \
  case GuardKind::KIND:                                                        \
    return holds##KIND(call, guard, rows);
#include "mlafix/Guards.def"
  }
  return false;
}

/// Describes what the call has instead of what the guard requires, as messages
/// have it after "got".
static std::string got(const Call &call, const Guard &guard, int64_t rows) {
  switch (guard.kind) {
#define MLAFIX_GUARD(KIND, NAME, ARGS, NUMBER, RANGE, POINTERS, HOLDS)         \
  case GuardKind::KIND:                                                        \
    return got##KIND(call, guard, rows);
#include "mlafix/Guards.def"
  }
  return "";
}

/// Returns the guard's requirement, as messages have it after "expected".
static std::string describe(const KernelDesc &kernel, const Guard &guard) {
  std::string args;
  allOf(guard.args, [&](uint32_t a) {
    args += (args.empty() ? "\"" : ", \"") + kernel.args[a].name + "\"";
    return true;
  });
  std::string text =
      replace(guard.spec().holds, "{number}", std::to_string(guard.number));
  text = replace(text, "{dim}", std::to_string(guard.dim));
  // Replace {args} last, since the argument names may contain the other
  // placeholders.
  return replace(text, "{args}", args);
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

namespace {

/// The number of rows of a grid, without its inner extents (`outer`) and with
/// them (`total`).
struct Rows {
  int64_t outer = 0; ///< equal to `total` unless the geometry is Ragged
  int64_t total = 0;
};

mlafix_status extentValue(const Call &call, const Extent &extent,
                          int64_t &value) {
  const CallArg &arg = call.args[extent.arg];
  switch (extent.kind) {
  case Extent::Constant:
    value = extent.value;
    return MLAFIX_OK;
  case Extent::TensorSize:
    value = arg.sizes[extent.dim];
    if (extent.per > 1)
      value = value == 0 ? 1 : (value - 1) / extent.per + 1;
    return MLAFIX_OK;
  case Extent::ScalarValue:
    break;
  }
  value = integerOf(call, extent.arg);
  if (value < 0)
    return fail(MLAFIX_INVALID_ARGUMENT,
                "argument \"%s\": expected a value of at least 0, since it is "
                "an extent of the grid, got %lld",
                call.desc().args[extent.arg].name.c_str(),
                static_cast<long long>(value));
  return MLAFIX_OK;
}

mlafix_status countRows(const Call &call, const Geometry &geometry,
                        Rows &rows) {
  int64_t extents[limits::extents + 1] = {};
  bool none = false;
  size_t count = geometry.extents.size();
  for (size_t i = 0; i < count; ++i) {
    MLAFIX_TRY(extentValue(call, geometry.extents[i], extents[i]));
    none |= extents[i] == 0;
  }
  rows = Rows();
  if (none)
    return MLAFIX_OK;
  rows.total = 1;
  for (size_t i = 0; i < count; ++i)
    if (__builtin_mul_overflow(rows.total, extents[i], &rows.total))
      return fail(MLAFIX_INVALID_ARGUMENT,
                  "expected a grid of fewer than 2^63 rows, got more");
  rows.outer = geometry.kind == Geometry::Ragged ? extents[0] : rows.total;
  return MLAFIX_OK;
}

/// Writes the values of a parameter that has one slot per rank or per tensor of
/// a list. Fills unused slots with 0.
void writeTable(const Call &call, const Param &param, uint64_t *slots) {
  const CallArg &arg = call.args[param.arg];
  bool isGroup = param.kind == ParamKind::Group;
  auto ranks = isGroup ? call.group.ranks : static_cast<size_t>(arg.sizes[0]);
  const void *values =
      isGroup ? static_cast<const void *>(&call.group) : call.tables[arg.table];
  size_t used = specOf(param.kind).slots(ranks);
  std::memcpy(slots, values, used * sizeof(uint64_t));
  std::fill(slots + used, slots + param.slots, 0);
}

/// Returns the number of cache lines of a tensor to prefetch. Returns 0 if the
/// last dim is not contiguous, if the tensor is larger than limits::tableBytes,
/// or if prefetching would gain nothing:
///   - Integer tensors usually hold row numbers, and all other loads wait for
///     these. Prefetching gains unless the tensor is a single line, which all
///     blocks load together anyway.
///   - Float tensors are loaded along with rows. Prefetching gains only if they
///     have several lines and each multiprocessor has few blocks.
///
/// A kernel's results do not depend on this number.
uint64_t countLines(const ArgDesc &desc, const CallArg &arg, bool isSmallGrid) {
  const uint32_t rank = desc.numDims;
  if (!arg.present || !arg.hasShape || arg.empty || rank == 0 ||
      arg.strides[rank - 1] != 1)
    return 0;
  const int64_t most = limits::tableBytes / desc.elementBytes;
  int64_t elements = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    int64_t steps = arg.sizes[i] - 1, reach = 0;
    if (arg.strides[i] < 0 ||
        __builtin_mul_overflow(steps, arg.strides[i], &reach) || reach >= most)
      return 0;
    elements += reach;
  }
  if (elements > most)
    return 0;
  int64_t lines =
      (elements * desc.elementBytes - 1) / limits::tableLineBytes + 1;
  constexpr int64_t kLeastLines = 2, kLeastFloatLines = 8;
  bool isInteger = desc.dtype == MLAFIX_I32 || desc.dtype == MLAFIX_I64;
  bool gains = isInteger ? lines >= kLeastLines
                         : isSmallGrid && lines >= kLeastFloatLines;
  return gains ? static_cast<uint64_t>(lines) : 0;
}

/// Returns a multiplier that divides numbers below 2^31 by `size`. The lower
/// half is m = ceil(2^(31 + e) / size), the upper half is e = ceil(log2(size)).
/// With m size = 2^(31 + e) + r and r < size <= 2^e, x m / 2^(31 + e) exceeds
/// x / size by less than 1 / size, so both have the same integer part (Granlund
/// and Montgomery, "Division by invariant integers using multiplication", PLDI
/// 1994). Returns 0 for a size that no launch has.
uint64_t reciprocalOf(int64_t size) {
  if (size < 1 || size > INT32_MAX)
    return 0;
  auto divisor = static_cast<uint64_t>(size);
  uint64_t exponent = size == 1 ? 0 : 64 - __builtin_clzll(divisor - 1);
  uint64_t power = uint64_t(1) << (31 + exponent);
  return (power + divisor - 1) / divisor | exponent << 32;
}

uint64_t slotValue(const Call &call, const Param &param, const Plan &plan,
                   int64_t multiprocessors) {
  const CallArg &arg = call.args[param.arg];
  switch (param.kind) {
  case ParamKind::Peers:
  case ParamKind::Group:
    break; // writeTable() writes these
  case ParamKind::Local:
    return 1; // readsLocalMemory() decides at the launch
  case ParamKind::GroupThreads:
    return plan.groupThreads;
  case ParamKind::Pointer:
    return reinterpret_cast<uintptr_t>(arg.data);
  case ParamKind::Size:
    return arg.hasShape ? static_cast<uint64_t>(arg.sizes[param.dim]) : 0;
  case ParamKind::Stride:
    return arg.hasShape ? static_cast<uint64_t>(arg.strides[param.dim]) : 0;
  case ParamKind::Reciprocal:
    return arg.hasShape ? reciprocalOf(arg.sizes[param.dim]) : 0;
  case ParamKind::Lines:
    return countLines(call.desc().args[param.arg], arg,
                      plan.grid <= 2 * multiprocessors);
  case ParamKind::Scalar:
    break;
  }
  return arg.scalar;
}

mlafix_status setBlocks(const Call &call, int64_t blocks, Plan &plan) {
  if (call.desc().exchanges && static_cast<uint64_t>(blocks) > call.blockSlots)
    return fail(MLAFIX_INVALID_ARGUMENT,
                "expected a grid of at most %llu blocks, for which the group "
                "has slots, got %lld; make the group with more slots",
                static_cast<unsigned long long>(call.blockSlots),
                static_cast<long long>(blocks));
  if (blocks > INT32_MAX)
    return fail(MLAFIX_INVALID_ARGUMENT,
                "expected a grid of at most %d blocks, got %lld", INT32_MAX,
                static_cast<long long>(blocks));
  plan.grid = static_cast<uint32_t>(blocks);
  return MLAFIX_OK;
}

mlafix_status computeGroups(const Call &call, const Geometry &geometry,
                            const Rows &rows, int64_t multiprocessors,
                            Plan &plan) {
  const Groups &of = geometry.groups;
  int64_t lanes = 0;
  if (__builtin_mul_overflow(rows.total, geometry.lanes, &lanes))
    return setBlocks(call, INT64_MAX, plan);
  int64_t pieces = 0;
  if (of.pieces.kind == Extent::ScalarValue)
    // A negative value is an empty range, no error.
    pieces = integerOf(call, of.pieces.arg);
  else
    MLAFIX_TRY(extentValue(call, of.pieces, pieces));
  GroupedGrid grid =
      shareLanes(of, lanes, pieces, geometry.threads, multiprocessors);
  plan.groupThreads = static_cast<uint32_t>(grid.groupThreads);
  plan.threads = static_cast<uint32_t>(grid.groupThreads * grid.groups);
  return setBlocks(call, grid.blocks, plan);
}

mlafix_status computeGrid(const Call &call, const Geometry &geometry,
                          const Rows &rows, int64_t multiprocessors,
                          Plan &plan) {
  if (geometry.kind == Geometry::Groups)
    return computeGroups(call, geometry, rows, multiprocessors, plan);
  // Halve the blocks, but not below leastThreads, while each multiprocessor
  // gets few blocks. Small blocks balance the end of a grid better.
  constexpr int64_t kBlocksPerMultiprocessor = 32;
  int64_t threads = geometry.threads, rowsPerBlock = geometry.rowsPerBlock;
  int64_t blocks = (rows.total - 1) / rowsPerBlock + 1;
  while (threads / 2 >= geometry.leastThreads && rowsPerBlock % 2 == 0 &&
         blocks < kBlocksPerMultiprocessor * multiprocessors) {
    threads /= 2;
    rowsPerBlock /= 2;
    blocks = (rows.total - 1) / rowsPerBlock + 1;
  }
  plan.threads = static_cast<uint32_t>(threads);
  if (geometry.kind == Geometry::Ragged)
    blocks =
        std::clamp<int64_t>(geometry.blocksPerSm * multiprocessors, 1, blocks);
  int64_t ofRow = geometry.cluster;
  if (geometry.parts)
    MLAFIX_TRY(extentValue(call, *geometry.parts, ofRow));
  if (__builtin_mul_overflow(blocks, ofRow, &blocks))
    blocks = INT64_MAX;
  return setBlocks(call, blocks, plan);
}

/// Returns the first guard of a code version that fails, or null if all hold.
const Guard *firstFailed(const Call &call, const CodeVersion &variant,
                         int64_t rows) {
  auto failed = std::find_if_not(
      variant.guards.begin(), variant.guards.end(),
      [&](const Guard &guard) { return holds(call, guard, rows); });
  return failed == variant.guards.end() ? nullptr : &*failed;
}

/// Returns approximately how many bytes a row touches: the bytes of all tensors
/// divided by the number of rows.
int64_t estimateRowBytes(const Call &call, int64_t rows) {
  double bytes = 0;
  for (size_t i = 0; i < call.desc().args.size(); ++i)
    bytes += elementBytes(call.desc().args[i], call.args[i]);
  return std::max<int64_t>(1, static_cast<int64_t>(std::min(
                                  bytes / static_cast<double>(rows), 1e15)));
}

} // namespace

mlafix_status mlafix::runtime::planLaunch(const Call &call,
                                          const TargetCode &code,
                                          int64_t multiprocessors, Plan &plan) {
  const Guard *lastFailed = nullptr;
  for (uint32_t v = 0; v < code.variants.size(); ++v) {
    const CodeVersion &variant = code.variants[v];
    Rows rows;
    MLAFIX_TRY(countRows(call, variant.geometry, rows));
    if (const Guard *failed = firstFailed(call, variant, rows.total)) {
      lastFailed = failed;
      continue;
    }
    plan.variant = &variant;
    plan.index = v;
    // A rank without rows must still launch, to synchronise with the other
    // ranks.
    if (call.desc().collective && !code.isCpu() && rows.outer == 0)
      rows.outer = rows.total = 1;
    plan.rows = rows.outer;
    plan.grid = plan.threads = plan.groupThreads = 0;
    plan.rowBytes = 1;
    if (rows.outer > 0 && code.isCpu())
      plan.rowBytes = estimateRowBytes(call, rows.outer);
    else if (rows.outer > 0)
      MLAFIX_TRY(
          computeGrid(call, variant.geometry, rows, multiprocessors, plan));
    plan.numParams = static_cast<uint32_t>(variant.params.size());
    uint64_t *slot = plan.slots;
    for (const Param &param : variant.params) {
      if (specOf(param.kind).hasRanks())
        writeTable(call, param, slot);
      else
        *slot = slotValue(call, param, plan, multiprocessors);
      slot += param.slots;
    }
    return MLAFIX_OK;
  }
  return fail(
      MLAFIX_INVALID_ARGUMENT,
      "expected a call that satisfies the guards of one of the %zu code "
      "versions for %s, got one that satisfies none; the last one requires %s",
      code.variants.size(), code.target.c_str(),
      describe(call.desc(), *lastFailed).c_str());
}

//===----------------------------------------------------------------------===//
// Explanations of a plan
//===----------------------------------------------------------------------===//

mlafix_status mlafix::runtime::explainVersion(const Call &call,
                                              const CodeVersion &variant,
                                              std::string &refused) {
  Rows rows;
  MLAFIX_TRY(countRows(call, variant.geometry, rows));
  const Guard *failed = firstFailed(call, variant, rows.total);
  refused = failed ? "expected " + describe(call.desc(), *failed) + ", got " +
                         got(call, *failed, rows.total)
                   : "";
  return MLAFIX_OK;
}

Traffic mlafix::runtime::countTraffic(const Call &call) {
  double read = 0, written = 0;
  for (size_t i = 0; i < call.desc().args.size(); ++i) {
    const ArgDesc &desc = call.desc().args[i];
    double bytes = elementBytes(desc, call.args[i]);
    if (desc.access != MLAFIX_WRITE)
      read += bytes;
    if (desc.isWritten())
      written += bytes;
  }
  return {static_cast<uint64_t>(read), static_cast<uint64_t>(written)};
}

mlafix_status mlafix::runtime::logPlan(const Call &call,
                                       const PreparedKernel &prepared,
                                       const Plan &plan) {
  if (!isLogged(MLAFIX_LOG_DEBUG))
    return MLAFIX_OK;
  const char *kernel = call.desc().name.c_str();
  const TargetCode &code = *prepared.code;
  for (uint32_t v = 0; v < plan.index; ++v) {
    std::string refused;
    MLAFIX_TRY(explainVersion(call, code.variants[v], refused));
    log(MLAFIX_LOG_DEBUG, "kernel \"%s\": %s does not take the call: %s",
        kernel, code.variants[v].entry.c_str(), refused.c_str());
  }
  char grid[64] = "", time[96] = "";
  if (!code.isCpu())
    std::snprintf(grid, sizeof(grid), " in %u blocks of %u threads", plan.grid,
                  plan.threads);
  Traffic traffic = countTraffic(call);
  if (auto rate = static_cast<double>(prepared.bandwidth); rate > 0) {
    // Print integers, since a locale may change the decimal point.
    auto ns = static_cast<double>(traffic.read + traffic.written) / rate * 1e9;
    std::snprintf(time, sizeof(time),
                  ", which the memory moves in %.0f ns at %.0f GB/s", ns,
                  rate / 1e9);
  }
  log(MLAFIX_LOG_DEBUG,
      "kernel \"%s\" [%s]: %s, of %zu code versions for %s, takes the call: "
      "%lld rows%s, %llu bytes read, %llu written%s",
      kernel, call.desc().bindingsText.c_str(), plan.variant->entry.c_str(),
      code.variants.size(), code.target.c_str(),
      static_cast<long long>(plan.rows), grid,
      static_cast<unsigned long long>(traffic.read),
      static_cast<unsigned long long>(traffic.written), time);
  return MLAFIX_OK;
}

bool mlafix::runtime::isDependent(const Plan &plan, uint32_t flags) {
  return plan.variant->dependentLaunch &&
         !(flags & MLAFIX_LAUNCH_NO_DEPENDENT) &&
         !environment().noDependentLaunch;
}
