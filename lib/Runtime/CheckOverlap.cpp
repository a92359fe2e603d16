//===- CheckOverlap.cpp - What lies on what in memory ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Bytes.h"
#include "Check.h"

using namespace mlafix::runtime;

namespace {

bool mayAlias(const KernelDesc &desc, uint32_t a, uint32_t b) {
  for (const auto &pair : desc.aliases)
    if ((pair.first == a && pair.second == b) ||
        (pair.first == b && pair.second == a))
      return true;
  return false;
}

/// Whether all but the addresses is the same.
bool sameLayout(const Call &call, uint32_t a, uint32_t b) {
  const ArgDesc &descA = call.desc().args[a], &descB = call.desc().args[b];
  const CallArg &argA = call.args[a], &argB = call.args[b];
  if (descA.ndim() != descB.ndim() || descA.elementBytes != descB.elementBytes)
    return false;
  for (uint32_t i = 0; i < descA.ndim(); ++i)
    if (argA.sizes[i] != argB.sizes[i] ||
        (argA.sizes[i] > 1 && argA.strides[i] != argB.strides[i]))
      return false;
  return true;
}

/// Of an argument whose span is known, so that it has a layout.
ByteLayout layoutOf(const Call &call, uint32_t index) {
  const ArgDesc &desc = call.desc().args[index];
  const CallArg &given = call.args[index];
  ByteLayout layout;
  makeByteLayout(desc, given, layout);
  return layout;
}

/// For two whose spans meet.
mlafix_status checkPair(const Call &call, uint32_t a, uint32_t b) {
  const KernelDesc &desc = call.desc();
  bool aliased = mayAlias(desc, a, b);
  if (call.args[a].data == call.args[b].data && mayCoincide(call, a, b))
    return MLAFIX_OK;
  Relation relation = overlap(layoutOf(call, a), layoutOf(call, b));
  if (relation == Relation::Disjoint)
    return MLAFIX_OK;
  if (relation == Relation::Unknown) {
    if (call.flags & MLAFIX_LAUNCH_ASSUME_DISJOINT)
      return MLAFIX_OK;
    return WRONG(
        desc.args[a],
        "expected memory apart from that of argument \"%s\", got "
        "interleaved tensors that cannot be told apart by their sizes "
        "and strides (pass MLAFIX_LAUNCH_ASSUME_DISJOINT if they are disjoint)",
        desc.args[b].name.c_str());
  }
  return WRONG(desc.args[a],
               "expected memory apart from that of argument \"%s\"%s, got an "
               "overlap",
               desc.args[b].name.c_str(),
               aliased ? " (or the same pointer, sizes and strides)" : "");
}

/// The span of a tensor for which makeByteSpan() could not tell.
mlafix_status spanByLayout(const Call &call, uint32_t index, ByteSpan &span) {
  const ArgDesc &arg = call.desc().args[index];
  const CallArg &given = call.args[index];
  ByteLayout layout;
  if (!makeByteLayout(arg, given, layout))
    return WRONG(arg, "expected a tensor that fits the address space, got %s",
                 "sizes and strides that lead out of it");
  span = {layout.base, layout.empty ? 0 : layout.extent};
  if (!arg.isWritten())
    return MLAFIX_OK;
  Relation self = selfOverlap(layout);
  if (self == Relation::Overlap ||
      (self == Relation::Unknown &&
       !(call.flags & MLAFIX_LAUNCH_ASSUME_DISJOINT)))
    return WRONG(arg,
                 "expected each element of a tensor that is written at an "
                 "address of its own, got strides that %s",
                 self == Relation::Overlap ? "let elements overlap"
                                           : "may let elements overlap");
  return MLAFIX_OK;
}

} // namespace

bool mlafix::runtime::mayCoincide(const Call &call, uint32_t a, uint32_t b) {
  const ArgDesc &descA = call.desc().args[a], &descB = call.desc().args[b];
  return descA.isTensor() && descB.isTensor() && mayAlias(call.desc(), a, b) &&
         call.args[a].hasShape && call.args[b].hasShape &&
         sameLayout(call, a, b);
}

mlafix_status mlafix::runtime::checkOverlaps(const Call &call) {
  const KernelDesc &desc = call.desc();
  // Of all tensors that touch memory: which, and which of them are written.
  ByteSpan spans[MLAFIX_MAX_ARGS];
  uint32_t which[MLAFIX_MAX_ARGS];
  uint32_t count = 0;
  for (uint32_t i = 0; i < desc.args.size(); ++i) {
    const ArgDesc &arg = desc.args[i];
    const CallArg &given = call.args[i];
    // Several tensors: checkManyPointers().
    if (!arg.isTensor() || arg.isMany() || !given.present)
      continue;
    ByteSpan &span = spans[count];
    if (!makeByteSpan(arg, given, arg.isWritten(), span))
      MLAFIX_TRY(spanByLayout(call, i, span));
    if (span.extent != 0)
      which[count++] = i;
  }
  for (uint32_t a = 0; a < count; ++a) {
    if (!desc.args[which[a]].isWritten())
      continue;
    for (uint32_t b = 0; b < count; ++b) {
      // A pair of written tensors is looked at once.
      if (spans[a].isApartFrom(spans[b]) || a == b ||
          (b < a && desc.args[which[b]].isWritten()))
        continue;
      MLAFIX_TRY(checkPair(call, which[a], which[b]));
    }
  }
  return MLAFIX_OK;
}

ByteRange mlafix::runtime::byteRange(const ArgDesc &desc, const CallArg &arg) {
  ByteLayout layout;
  if (!arg.present || !makeByteLayout(desc, arg, layout))
    return {0, 0};
  return {layout.base, layout.empty ? 0 : layout.extent};
}
