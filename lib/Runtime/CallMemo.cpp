//===- CallMemo.cpp - Remembers checked calls and their plans -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "CallMemo.h"

#include "Bytes.h"
#include "Fork.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

using namespace mlafix::runtime;
using mlafix::GuardPointers;
using mlafix::ParamKind;

class CallMemo::TryLock {
public:
  explicit TryLock(CallMemo &memo) : memo(memo) {
    unsigned mine = forkGeneration() + 1, holder = 0;
    owns = memo.holder.compare_exchange_strong(holder, mine,
                                               std::memory_order_acquire);
    if (owns || holder == mine)
      return;
    // A thread of the parent process held the lock when this process was
    // forked. It may have been changing a known call, so forget them all.
    owns = memo.holder.compare_exchange_strong(holder, mine,
                                               std::memory_order_acquire);
    for (KnownCall &call : memo.known)
      if (owns)
        call.forget();
  }
  ~TryLock() {
    if (owns)
      memo.holder.store(0, std::memory_order_release);
  }
  explicit operator bool() const { return owns; }

private:
  CallMemo &memo;
  bool owns;
};

/// Returns true if `tensor` differs from the known tensor `was` at most in its
/// data pointer. The known sizes and strides start at `number`.
bool KnownCall::matchesTensor(const Argument &was, const mlafix_tensor *tensor,
                              mlafix_device device,
                              const int64_t *number) const {
  if (!tensor || tensor->struct_size < sizeof(mlafix_tensor) ||
      tensor->dtype != was.dtype || tensor->ndim != was.ndim ||
      tensor->device.type != device.type ||
      tensor->device.ordinal != device.ordinal || !tensor->sizes ||
      (!tensor->strides && !was.contiguous))
    return false;
  for (uint32_t dim = 0; dim < was.ndim; ++dim, number += 2)
    if (tensor->sizes[dim] != number[0] ||
        (tensor->strides && tensor->strides[dim] != number[1]))
      return false;
  return true;
}

/// Returns true if an argument of several tensors has the same addresses and
/// the same group as in the known call.
bool KnownCall::matchesMany(const Argument &was, const mlafix_peers *peers,
                            mlafix_device device, const int64_t *number) const {
  return peers && peers->struct_size >= sizeof(mlafix_peers) &&
         peers->ranks == was.ranks && peers->data &&
         std::memcmp(peers->data, slots + was.table,
                     was.ranks * sizeof(uint64_t)) == 0 &&
         matchesTensor(was, peers->each, device, number) &&
         (group < 0 || was.kind == MLAFIX_ARG_LIST ||
          matchesGroup(peers->group));
}

/// Returns true if `given` is the group of the known call and no rank has
/// failed to launch.
bool KnownCall::matchesGroup(const mlafix_group *given) const {
  GroupSlots was;
  if (!isGroup(given) || !given->workspaces)
    return false;
  const size_t fixed = offsetof(GroupSlots, workspaces);
  std::memcpy(&was, slots + group, fixed);
  return given->rank == was.rank && given->ranks == was.ranks &&
         slotsOf(*given) == blockSlots && given->timeout_ns == was.timeoutNs &&
         given->failure == was.failure &&
         std::memcmp(given->workspaces,
                     slots + group + fixed / sizeof(uint64_t),
                     was.ranks * sizeof(uint64_t)) == 0 &&
         mlafix_group_check(given) == MLAFIX_OK;
}

/// Returns true if all sizes, strides and scalars equal those of the known
/// call, and all pointers have the same alignment. Writes the new data pointers
/// to `pointers`.
bool KnownCall::matches(const mlafix_arg *given, mlafix_device device,
                        uint64_t *pointers) const {
  const int64_t *number = numbers;
  for (uint32_t i = 0; i < numArgs; ++i) {
    const Argument &was = args[i];
    pointers[i] = 0;
    if (given[i].struct_size != sizeof(mlafix_arg) || given[i].kind != was.kind)
      return false;
    if (isMany(was.kind)) {
      if (!matchesMany(was, given[i].value.peers, device, number))
        return false;
      number += 2 * was.ndim;
      continue;
    }
    if (was.kind != MLAFIX_ARG_TENSOR) {
      if (scalarSlot(given[i]) != was.bits)
        return false;
      continue;
    }
    const mlafix_tensor *tensor = given[i].value.tensor;
    if (!was.given) {
      if (tensor && (tensor->struct_size < sizeof(mlafix_tensor) ||
                     tensor->data || !was.optional))
        return false;
      continue;
    }
    if (!matchesTensor(was, tensor, device, number) || !tensor->data)
      return false;
    pointers[i] = reinterpret_cast<uintptr_t>(tensor->data);
    if ((pointers[i] ^ was.bits) & lowBits)
      return false;
    number += 2 * was.ndim;
  }
  return true;
}

bool KnownCall::isApartFromTables(const ByteSpan &span) const {
  for (uint32_t i = 0; i < numArgs; ++i)
    for (uint32_t r = 0; isMany(args[i].kind) && r < args[i].ranks; ++r)
      if (!span.isApartFrom({slots[args[i].table + r], args[i].extent}))
        return false;
  return true;
}

/// Returns true if no written tensor overlaps another tensor, except where the
/// kernel permits an alias, and if the comparisons of pointers in guards have
/// the same results as in the known call.
bool KnownCall::areApart(const uint64_t *pointers) const {
  for (uint32_t p = 0; p < numPairs; ++p)
    if ((pointers[pairs[p].a] == pointers[pairs[p].b]) != pairs[p].equal)
      return false;
  ByteSpan spans[maxArgs];
  for (uint32_t i = 0; i < numArgs; ++i) {
    spans[i] = {0, 0};
    if (!pointers[i])
      continue;
    spans[i] = {pointers[i], args[i].extent};
    if (spans[i].base > UINT64_MAX - spans[i].extent)
      return false;
  }
  for (uint32_t a = 0; a < numArgs; ++a) {
    if (!pointers[a] || !(args[a].written || exchanges))
      continue;
    if (numTables > 0 && !isApartFromTables(spans[a]))
      return false;
    if (!args[a].written)
      continue;
    for (uint32_t b = 0; b < numArgs; ++b)
      if (pointers[b] && a != b && !spans[a].isApartFrom(spans[b]) &&
          !(pointers[a] == pointers[b] && (args[a].mayCoincide >> b & 1)))
        return false;
  }
  return true;
}

bool KnownCall::recall(const mlafix_arg *given, uint32_t count,
                       mlafix_device device, Plan &plan) const {
  uint64_t pointers[maxArgs];
  if (!valid || count != numArgs || !matches(given, device, pointers) ||
      !areApart(pointers))
    return false;
  static_cast<PlannedGrid &>(plan) = planned;
  for (uint32_t i = 0; i < numSlots; ++i)
    plan.slots[i] = pointerOf[i] < 0 ? slots[i] : pointers[pointerOf[i]];
  return true;
}

/// Records a tensor argument. If it is several tensors, records the first one
/// and skips the dim that counts the tensors.
bool KnownCall::addTensor(const Call &call, uint32_t index, uint32_t firstDim) {
  const ArgDesc &desc = call.desc().args[index];
  const CallArg &arg = call.args[index];
  Argument &kept = args[index];
  kept.given = arg.hasShape;
  kept.optional = desc.optional;
  if (!arg.hasShape)
    return true;
  // Do not remember calls with an empty tensor. It is never accessed, so every
  // check would need a special case.
  ByteSpan span;
  uint32_t ndim = desc.ndim() - firstDim;
  const int64_t *sizes = arg.sizes + firstDim,
                *strides = arg.strides + firstDim;
  if (!arg.present || arg.empty || numNumbers + 2 * ndim > maxNumbers ||
      !makeByteSpan(desc, arg, desc.isWritten(), span))
    return false;
  kept.dtype = desc.dtype;
  kept.ndim = ndim;
  kept.written = desc.isWritten();
  kept.bits = reinterpret_cast<uintptr_t>(arg.data);
  kept.extent = span.extent;
  lowBits |= desc.elementBytes - 1;
  kept.contiguous = isContiguous(desc, arg);
  for (uint32_t dim = 0; dim < ndim; ++dim) {
    numbers[numNumbers++] = sizes[dim];
    numbers[numNumbers++] = strides[dim];
  }
  return true;
}

/// Finds the slots that hold the addresses of arguments of several tensors, and
/// those of the group. Returns false if such an argument or the group has no
/// parameter, or if a tensor's span exceeds the address space.
bool KnownCall::addTables(const Call &call, const CodeVersion &version) {
  uint32_t slot = 0;
  numTables = 0;
  group = -1;
  blockSlots = call.blockSlots;
  exchanges = call.desc().exchanges;
  for (const Param &param : version.params) {
    if (param.kind == ParamKind::Group)
      group = static_cast<int32_t>(slot);
    if (param.kind == ParamKind::Peers) {
      Argument &kept = args[param.arg];
      kept.ranks = static_cast<uint32_t>(call.args[param.arg].sizes[0]);
      kept.table = slot;
      for (uint32_t r = 0; r < kept.ranks; ++r)
        if (slots[slot + r] > UINT64_MAX - kept.extent)
          return false;
      ++numTables;
    }
    slot += param.slots;
  }
  return numTables == call.numTables && (group >= 0 || !call.hasGroup);
}

/// Records what the guards of all code versions require of pointers, since the
/// guards of versions before the chosen one must fail again.
bool KnownCall::addGuards(const Call &call, const TargetCode &code) {
  for (const CodeVersion &candidate : code.variants)
    for (const Guard &guard : candidate.guards) {
      if (guard.spec().pointers == GuardPointers::LowBits)
        lowBits |= static_cast<uint64_t>(guard.number) - 1;
      else if (guard.spec().pointers == GuardPointers::Equality &&
               !addPairs(call, guard))
        return false;
    }
  return true;
}

/// Records for each other argument of `guard` if its pointer equals that of the
/// guard's first argument. Returns false if there are too many pairs to record.
bool KnownCall::addPairs(const Call &call, const Guard &guard) {
  const CallArg &first = call.args[guard.first];
  for (uint32_t i = 0; i < numArgs; ++i) {
    // A recalled call omits the same tensors, so omitted tensors need no pair.
    if (i == guard.first || !(guard.args >> i & 1) || !first.present ||
        !call.args[i].present)
      continue;
    if (numPairs == maxPairs || call.desc().args[guard.first].isMany() ||
        call.desc().args[i].isMany())
      return false;
    pairs[numPairs++] = {static_cast<uint8_t>(guard.first),
                         static_cast<uint8_t>(i),
                         first.data == call.args[i].data};
  }
  return true;
}

bool KnownCall::remember(const Call &call, const TargetCode &code,
                         const Plan &plan) {
  const KernelDesc &desc = call.desc();
  numSlots = 0;
  for (const Param &param : plan.variant->params)
    numSlots += param.slots;
  if (desc.args.size() > maxArgs || numSlots > maxSlots ||
      (call.flags & MLAFIX_LAUNCH_DEEP_CHECKS))
    return false;
  numArgs = static_cast<uint32_t>(desc.args.size());
  numNumbers = numPairs = 0;
  lowBits = 0;
  for (uint32_t i = 0; i < numArgs; ++i) {
    args[i] = Argument();
    args[i].kind = desc.args[i].kind;
    if (!desc.args[i].isTensor())
      args[i].bits = call.args[i].scalar;
    else if (!addTensor(call, i, desc.args[i].isMany() ? 1 : 0))
      return false;
  }
  for (auto [a, b] : desc.aliases)
    if (mayCoincide(call, a, b)) {
      args[a].mayCoincide |= uint64_t(1) << b;
      args[b].mayCoincide |= uint64_t(1) << a;
    }
  if (!addGuards(call, code))
    return false;
  planned = plan;
  std::copy_n(plan.slots, numSlots, slots);
  std::fill_n(pointerOf, numSlots, int8_t(-1));
  uint32_t slot = 0;
  for (const Param &param : plan.variant->params) {
    if (param.kind == ParamKind::Pointer)
      pointerOf[slot] = static_cast<int8_t>(param.arg);
    slot += param.slots;
  }
  return addTables(call, *plan.variant);
}

bool CallMemo::recall(const mlafix_arg *args, uint32_t numArgs,
                      mlafix_device device, uint32_t flags, Plan &plan) {
  // MLAFIX_LAUNCH_ASSUME_DISJOINT and MLAFIX_LAUNCH_NO_DEPENDENT do not change
  // a plan. Any other flag requires more checks or is unknown.
  constexpr uint32_t harmless =
      MLAFIX_LAUNCH_NO_DEPENDENT | MLAFIX_LAUNCH_ASSUME_DISJOINT;
  if (!args || (flags & ~harmless))
    return false;
  TryLock lock(*this);
  if (!lock)
    return false;
  for (unsigned i = 0; i < numKnown && isWorthIt(); ++i) {
    unsigned candidate = (latest + i) % numKnown;
    if (!known[candidate].recall(args, numArgs, device, plan))
      continue;
    latest = candidate;
    misses = 0;
    return true;
  }
  ++misses;
  return false;
}

void CallMemo::keep(const Call &call, const TargetCode &code,
                    const Plan &plan) {
  TryLock lock(*this);
  if (!lock || !isWorthIt())
    return;
  latest = (latest + numKnown - 1) % numKnown;
  known[latest].set(call, code, plan);
}
