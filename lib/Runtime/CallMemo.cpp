//===- CallMemo.cpp - What the checks of a call came to -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "CallMemo.h"

#include "Call.h"
#include "Fork.h"
#include "Overlap.h"

#include <algorithm>

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
    // The holder is a thread of the process that forked, perhaps in the middle
    // of a change.
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

/// The sizes, strides and scalars are those of the last call, and pointers are
/// as aligned. Collects the pointers.
bool KnownCall::matches(const mlafix_arg *given, mlafix_device device,
                        uint64_t *pointers) const {
  const int64_t *number = numbers;
  for (uint32_t i = 0; i < numArgs; ++i) {
    const Argument &was = args[i];
    pointers[i] = 0;
    if (given[i].struct_size != sizeof(mlafix_arg) || given[i].kind != was.kind)
      return false;
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
    if (!tensor || tensor->struct_size < sizeof(mlafix_tensor) ||
        tensor->dtype != was.dtype || tensor->ndim != was.ndim ||
        tensor->device.type != device.type ||
        tensor->device.ordinal != device.ordinal || !tensor->data ||
        !tensor->sizes || (!tensor->strides && !was.contiguous))
      return false;
    pointers[i] = reinterpret_cast<uintptr_t>(tensor->data);
    if ((pointers[i] ^ was.bits) & lowBits)
      return false;
    for (uint32_t dim = 0; dim < was.ndim; ++dim, number += 2)
      if (tensor->sizes[dim] != number[0] ||
          (tensor->strides && tensor->strides[dim] != number[1]))
        return false;
  }
  return true;
}

/// No tensor that is written overlaps another one, except for aliases.
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
    if (!pointers[a] || !args[a].written)
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
  plan.variant = variant;
  plan.index = index;
  plan.numParams = numParams;
  plan.grid = grid;
  plan.threads = threads;
  plan.rows = rows;
  plan.rowBytes = rowBytes;
  for (uint32_t i = 0; i < numParams; ++i)
    plan.slots[i] = pointerOf[i] < 0 ? slots[i] : pointers[pointerOf[i]];
  return true;
}

bool KnownCall::addTensor(const Call &call, uint32_t index) {
  const ArgDesc &desc = call.desc().args[index];
  const CallArg &arg = call.args[index];
  Argument &kept = args[index];
  kept.given = arg.hasShape;
  kept.optional = desc.optional;
  if (!arg.hasShape)
    return true;
  // A tensor without elements is never accessed, and would need special cases
  // everywhere.
  ByteSpan span;
  if (!arg.present || arg.empty || numNumbers + 2 * desc.ndim() > maxNumbers ||
      !makeByteSpan(arg.data, desc.ndim(), arg.sizes, arg.strides,
                    desc.elementBytes, desc.isWritten(), span))
    return false;
  kept.dtype = desc.dtype;
  kept.ndim = desc.ndim();
  kept.written = desc.isWritten();
  kept.bits = reinterpret_cast<uintptr_t>(arg.data);
  kept.extent = span.extent;
  lowBits |= desc.elementBytes - 1;
  kept.contiguous = true;
  int64_t stride = 1;
  for (uint32_t dim = desc.ndim(); dim-- > 0;) {
    kept.contiguous &= arg.strides[dim] == stride;
    if (__builtin_mul_overflow(stride, arg.sizes[dim], &stride))
      kept.contiguous = false;
  }
  for (uint32_t dim = 0; dim < desc.ndim(); ++dim) {
    numbers[numNumbers++] = arg.sizes[dim];
    numbers[numNumbers++] = arg.strides[dim];
  }
  return true;
}

/// What guards require of pointers. Those of all code versions, since the ones
/// of an earlier version must fail again.
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

/// Whether the first argument of the guard is each of the others.
bool KnownCall::addPairs(const Call &call, const Guard &guard) {
  const CallArg &first = call.args[guard.first];
  for (uint32_t i = 0; i < numArgs; ++i) {
    // An omitted tensor is omitted in every call that is recalled.
    if (i == guard.first || !(guard.args >> i & 1) || !first.present ||
        !call.args[i].present)
      continue;
    if (numPairs == maxPairs)
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
  if (call.numTables > 0 || desc.args.size() > maxArgs ||
      plan.numParams > maxParams || (call.flags & MLAFIX_LAUNCH_DEEP_CHECKS))
    return false;
  numArgs = static_cast<uint32_t>(desc.args.size());
  numNumbers = numPairs = 0;
  lowBits = 0;
  for (uint32_t i = 0; i < numArgs; ++i) {
    args[i] = Argument();
    args[i].kind = desc.args[i].kind;
    if (!desc.args[i].isTensor())
      args[i].bits = call.args[i].scalar;
    else if (!addTensor(call, i))
      return false;
  }
  for (auto [a, b] : desc.aliases)
    if (mayCoincide(call, a, b)) {
      args[a].mayCoincide |= uint64_t(1) << b;
      args[b].mayCoincide |= uint64_t(1) << a;
    }
  if (!addGuards(call, code))
    return false;
  variant = plan.variant;
  index = plan.index;
  numParams = plan.numParams;
  grid = plan.grid;
  threads = plan.threads;
  rows = plan.rows;
  rowBytes = plan.rowBytes;
  std::copy_n(plan.slots, numParams, slots);
  for (uint32_t i = 0; i < numParams; ++i) {
    const Param &param = variant->params[i];
    pointerOf[i] = param.kind == ParamKind::Pointer
                       ? static_cast<int8_t>(param.arg)
                       : int8_t(-1);
  }
  return true;
}

bool CallMemo::recall(const mlafix_arg *args, uint32_t numArgs,
                      mlafix_device device, uint32_t flags, Plan &plan) {
  // Neither MLAFIX_LAUNCH_ASSUME_DISJOINT nor MLAFIX_LAUNCH_NO_DEPENDENT
  // changes a plan; other flags require more checks, or are unknown.
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
