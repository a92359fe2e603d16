//===- Peers.cpp - arguments of several tensors ---------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Bytes.h"
#include "Status.h"

#include <algorithm>

using namespace mlafix::runtime;

namespace {

/// Returns the word that stands for one tensor of the argument in messages.
const char *ofWhat(const ArgDesc &desc) {
  return desc.isPeers() ? "rank" : "tensor";
}

/// The alignment of a workspace in bytes. It keeps the flags of different ranks
/// in different cache lines.
constexpr uintptr_t workspaceAlignment = 128;

mlafix_status checkFailure(const uint64_t *failure, uint32_t ranks) {
  // Load the code atomically, since the device may write it at any time.
  uint64_t code = failure ? __atomic_load_n(failure, __ATOMIC_ACQUIRE) : 0;
  if (code == 0)
    return MLAFIX_OK;
  return fail(MLAFIX_RANK_ERROR,
              "expected all %u ranks of the group to launch, got no launch of "
              "rank %llu before the time-out",
              ranks, static_cast<unsigned long long>(code - 1));
}

mlafix_status readGroup(const ArgDesc &desc, const mlafix_peers &peers,
                        Call &call) {
  const mlafix_group *group = peers.group;
  if (!isGroup(group) || !group->workspaces)
    return WRONG(desc, "expected a mlafix_group with workspaces, got %s",
                 !group           ? "null"
                 : isGroup(group) ? "one without workspaces"
                                  : "one of an unknown version");
  if (group->ranks != peers.ranks || group->rank >= group->ranks)
    return WRONG(desc,
                 "expected a group of %u ranks, one per tensor, and a rank "
                 "below that, got %u ranks and rank %u",
                 peers.ranks, group->ranks, group->rank);
  for (uint32_t r = 0; r < group->ranks; ++r) {
    auto bits = reinterpret_cast<uintptr_t>(group->workspaces[r]);
    if (!bits || bits % workspaceAlignment)
      return WRONG(desc,
                   "expected the workspace of rank %u at an address that is a "
                   "multiple of %zu, got %p",
                   r, size_t(workspaceAlignment), group->workspaces[r]);
  }
  GroupSlots &slots = call.group;
  if (call.hasGroup) {
    bool isSame =
        call.blockSlots == slotsOf(*group) && slots.rank == group->rank &&
        slots.ranks == group->ranks &&
        std::equal(group->workspaces, group->workspaces + group->ranks,
                   slots.workspaces);
    if (!isSame)
      return WRONG(desc, "expected the group of the other arguments, got %s",
                   "another one");
    return MLAFIX_OK;
  }
  slots = {group->rank, group->ranks, group->timeout_ns, group->failure, {}};
  std::copy_n(group->workspaces, group->ranks, slots.workspaces);
  call.blockSlots = slotsOf(*group);
  call.hasGroup = true;
  return MLAFIX_OK;
}

/// Computes the layout of the first tensor of an argument. The other tensors'
/// layouts differ only in their base address.
mlafix_status layoutOf(const Call &call, uint32_t index, ByteLayout &layout) {
  const ArgDesc &desc = call.desc().args[index];
  const CallArg &given = call.args[index];
  if (makeByteLayout(desc, given, layout))
    return MLAFIX_OK;
  return WRONG(desc, "expected tensors that fit the address space, got %s",
               "sizes and strides that lead out of it");
}

mlafix_status checkOnePointer(const Call &call, uint32_t index,
                              uint32_t which) {
  const ArgDesc &arg = call.desc().args[index];
  void *data = call.tables[call.args[index].table][which];
  if (!data && !call.args[index].empty)
    return WRONG(arg, "expected a data pointer of %s %u, got null", ofWhat(arg),
                 which);
  if (reinterpret_cast<uintptr_t>(data) & (arg.elementBytes - 1))
    return WRONG(arg,
                 "expected a data pointer of %s %u that is a multiple of %u, "
                 "the size of a %s, got %p",
                 ofWhat(arg), which, arg.elementBytes, arg.dtypeName.c_str(),
                 data);
  return MLAFIX_OK;
}

/// Checks that no tensor of argument `many` overlaps tensor `which` of argument
/// `other`. If both are the same argument, checks only the tensors after
/// `which`. The caller has made sure that one of the two is written.
mlafix_status checkApart(const Call &call, uint32_t other, uint32_t which,
                         uint32_t many) {
  const ArgDesc &to = call.desc().args[other], &from = call.desc().args[many];
  const CallArg &target = call.args[other], &source = call.args[many];
  ByteLayout a, alike;
  MLAFIX_TRY(layoutOf(call, many, alike));
  makeByteLayout(to, target, a);
  if (to.isMany())
    a.base += reinterpret_cast<uintptr_t>(call.tables[target.table][which]) -
              reinterpret_cast<uintptr_t>(target.data);
  for (uint32_t r = other == many ? which + 1 : 0;
       r < source.sizes[0] && !a.empty && !alike.empty; ++r) {
    ByteLayout b = alike;
    b.base += reinterpret_cast<uintptr_t>(call.tables[source.table][r]) -
              reinterpret_cast<uintptr_t>(source.data);
    Relation relation = overlap(a, b);
    if (relation == Relation::Overlap ||
        (relation == Relation::Unknown &&
         !(call.flags & MLAFIX_LAUNCH_ASSUME_DISJOINT)))
      return WRONG(to,
                   "expected memory apart from that of argument \"%s\" of %s "
                   "%u, got %s",
                   from.name.c_str(), ofWhat(from), r,
                   relation == Relation::Overlap
                       ? "an overlap"
                       : "interleaved tensors that cannot be told apart by "
                         "their sizes and strides (pass "
                         "MLAFIX_LAUNCH_ASSUME_DISJOINT if they are disjoint)");
  }
  return MLAFIX_OK;
}

/// Returns what is wrong with `peers`, the tensors of an argument, for a
/// message. Returns null if nothing is wrong.
const char *missingOf(const mlafix_peers *peers) {
  if (!peers)
    return "null";
  if (peers->struct_size < sizeof(mlafix_peers))
    return "one whose struct_size is too small";
  if (!peers->data)
    return "one without 'data'";
  if (!peers->each)
    return "one without 'each'";
  if (peers->each->struct_size < sizeof(mlafix_tensor))
    return "one whose 'each' has a struct_size that is too small";
  return nullptr;
}

} // namespace

mlafix_status mlafix::runtime::readMany(const ArgDesc &desc,
                                        const mlafix_peers *peers,
                                        mlafix_device device, Call &call,
                                        CallArg &out) {
  if (const char *missing = missingOf(peers))
    return WRONG(desc,
                 "expected a mlafix_peers with a tensor of each %s, got %s",
                 desc.isPeers() ? "rank" : "place of a list", missing);
  uint32_t most = desc.isPeers() ? uint32_t(MLAFIX_MAX_RANKS) : desc.most;
  if (peers->ranks < 1 || peers->ranks > most)
    return WRONG(desc, "expected 1 to %u %ss, got %u", most, ofWhat(desc),
                 peers->ranks);
  mlafix_tensor all = *peers->each;
  if (all.ndim + 1 != desc.ndim())
    return WRONG(desc, "expected %u dims of each %s, got %u", desc.ndim() - 1,
                 desc.isPeers() ? "rank's tensor" : "tensor", all.ndim);
  if (!all.sizes)
    return WRONG(desc, "expected %u sizes, got null", all.ndim);
  int64_t sizes[MLAFIX_MAX_DIMS], strides[MLAFIX_MAX_DIMS];
  sizes[0] = peers->ranks;
  strides[0] = 0;
  std::copy_n(all.sizes, all.ndim, sizes + 1);
  if (all.strides) {
    std::copy_n(all.strides, all.ndim, strides + 1);
    all.strides = strides;
  }
  all.ndim += 1;
  all.sizes = sizes;
  all.data = peers->data[0];
  MLAFIX_TRY(readTensor(desc, &all, device, out));
  out.strides[0] = 0;
  if (desc.isPeers() && device.type == MLAFIX_CUDA)
    MLAFIX_TRY(readGroup(desc, *peers, call));
  // There is a table left: parseMany() limits the number of such arguments.
  out.table = static_cast<uint8_t>(call.numTables++);
  std::copy_n(peers->data, peers->ranks, call.tables[out.table]);
  return MLAFIX_OK;
}

mlafix_status mlafix::runtime::checkManyPointers(const Call &call) {
  const std::vector<ArgDesc> &args = call.desc().args;
  for (uint32_t i = 0; i < args.size() && call.numTables > 0; ++i) {
    if (!args[i].isMany())
      continue;
    for (uint32_t r = 0; r < call.args[i].sizes[0]; ++r)
      MLAFIX_TRY(checkOnePointer(call, i, r));
    for (uint32_t other = 0; other < args.size(); ++other) {
      if (!args[other].isTensor() || !call.args[other].present ||
          !(args[other].isWritten() || args[i].isWritten()))
        continue;
      if (args[other].isMany() &&
          other < i) // checked when `i` had the value of `other`
        continue;
      uint32_t count = args[other].isMany() ? call.args[other].sizes[0] : 1;
      for (uint32_t which = 0; which < count; ++which)
        MLAFIX_TRY(checkApart(call, other, which, i));
    }
  }
  return MLAFIX_OK;
}

mlafix_status mlafix::runtime::checkGroup(const Call &call) {
  return call.hasGroup ? checkFailure(call.group.failure, call.group.ranks)
                       : MLAFIX_OK;
}

extern "C" mlafix_status
mlafix_group_check(const mlafix_group *group) noexcept {
  if (!isGroup(group))
    return fail(MLAFIX_INVALID_ARGUMENT,
                "argument \"group\": expected a mlafix_group, got %s",
                group ? "one of an unknown version" : "null");
  return checkFailure(group->failure, group->ranks);
}
