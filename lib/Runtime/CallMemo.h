//===- CallMemo.h - What the checks of a call came to -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A model's layers make the same call one after the other: on other memory, but
// with the same sizes, strides and scalars. What the checks and the plan
// derived from those holds for the next call too; only the pointers are left to
// check: their alignment, which of them are equal, and whether the memory of a
// tensor that is written is apart from the others'. What ranks share stays
// where it is, and so may a list: tables of addresses are equal, too.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_CALLMEMO_H
#define MLAFIX_RUNTIME_CALLMEMO_H

#include "UnitModel.h"

#include <atomic>

namespace mlafix::runtime {

struct ByteSpan;
struct Call;
struct Plan;

/// A call that passed every check, and what was planned for it.
class KnownCall {
public:
  /// Remembers a call, unless it is of a kind that cannot be recalled.
  void set(const Call &call, const TargetCode &code, const Plan &plan) {
    valid = remember(call, code, plan);
  }
  void forget() { valid = false; }

  /// If `args`, as many as the kernel has, differ from those of the call in
  /// nothing that a check or the plan depends on, fills in the plan.
  bool recall(const mlafix_arg *args, uint32_t numArgs, mlafix_device device,
              Plan &plan) const;

private:
  // Every kernel of the library fits; a call that does not is never kept.
  static constexpr uint32_t maxArgs = 24, maxNumbers = 128, maxSlots = 64,
                            maxPairs = 32;

  struct Argument {
    int32_t kind;
    int32_t dtype;
    uint32_t ndim; ///< tensors: so many sizes and strides of `numbers`
    uint32_t
        ranks; ///< several tensors: so many addresses from `slots[table]` on
    uint32_t table;
    bool given;      ///< tensors: not omitted
    bool optional;   ///< tensors: may be omitted by a null pointer
    bool contiguous; ///< tensors: so that strides may be left out
    bool written;
    uint64_t bits;   ///< the pointer, or a scalar as a parameter slot
    uint64_t extent; ///< bytes from the pointer, which is the lowest, on
    /// A bit for each argument that this one may lie on, at the same pointer.
    uint64_t mayCoincide;
  };
  /// Two arguments whose pointers a guard compares.
  struct Pair {
    uint8_t a, b;
    bool equal;
  };

  bool matches(const mlafix_arg *given, mlafix_device device,
               uint64_t *pointers) const;
  bool matchesTensor(const Argument &was, const mlafix_tensor *tensor,
                     mlafix_device device, const int64_t *number) const;
  bool matchesMany(const Argument &was, const mlafix_peers *peers,
                   mlafix_device device, const int64_t *number) const;
  bool matchesGroup(const mlafix_group *given) const;
  bool areApart(const uint64_t *pointers) const;
  bool isApartFromTables(const ByteSpan &span) const;
  bool remember(const Call &call, const TargetCode &code, const Plan &plan);
  bool addTensor(const Call &call, uint32_t index, uint32_t firstDim);
  bool addTables(const Call &call, const CodeVersion &version);
  bool addGuards(const Call &call, const TargetCode &code);
  bool addPairs(const Call &call, const Guard &guard);

  bool valid = false;
  uint32_t numArgs, numNumbers, numPairs, numTables;
  uint64_t lowBits; ///< of a pointer: those that a check looks at
  Argument args[maxArgs];
  int64_t numbers[maxNumbers]; ///< size, stride, size, stride, …
  Pair pairs[maxPairs];

  // The plan; a parameter that is a pointer names its argument.
  const CodeVersion *variant;
  uint32_t index, numParams, numSlots, grid, threads;
  int64_t rows, rowBytes;
  uint64_t slots[maxSlots];
  int8_t pointerOf[maxSlots]; ///< or -1
  int32_t group;              ///< where the slots of the group begin, or -1
  uint64_t blockSlots;        ///< Call::blockSlots
  bool exchanges;             ///< whether the tensors of the tables are written
};

/// The last few calls of one kernel on one device. Thread-safe.
class CallMemo {
public:
  /// Fills in the plan if the call is like a known one. False does not mean
  /// that the call is wrong.
  bool recall(const mlafix_arg *args, uint32_t numArgs, mlafix_device device,
              uint32_t flags, Plan &plan);

  /// Remembers a call that passed the checks and what was planned for it.
  void keep(const Call &call, const TargetCode &code, const Plan &plan);

private:
  class TryLock;
  static constexpr unsigned numKnown = 4;

  /// False for most calls if calls rarely repeat: comparing and remembering
  /// them then costs more than it saves.
  bool isWorthIt() const {
    constexpr unsigned patience = 2 * numKnown, seldom = 32;
    return misses <= patience || misses % seldom == 0;
  }

  /// Held for as long as a few dozen numbers are compared or copied; a thread
  /// that cannot take it proceeds as if nothing were remembered. 0: free; else
  /// one more than the fork generation of the process that took it.
  std::atomic<unsigned> holder{0};
  unsigned latest = 0; ///< of `known`
  unsigned misses = 0; ///< calls since one was recalled
  KnownCall known[numKnown];
};

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_CALLMEMO_H
