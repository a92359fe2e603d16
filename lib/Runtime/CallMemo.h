//===- CallMemo.h - Remembers checked calls and their plans -----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The layers of a model repeat a call with the same sizes, strides and scalars
// but different memory. Checks and plans that depend only on sizes, strides and
// scalars stay valid. A repeated call has to check only its pointers: their
// alignment, their equality, and the overlap of written tensors with others.
//
// An argument of several tensors (peers or a list) is an exception: a call is
// recognised only if these tensors have the same addresses as before. Otherwise
// the call is checked and planned anew.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_CALLMEMO_H
#define MLAFIX_RUNTIME_CALLMEMO_H

#include "Call.h"

#include <atomic>

namespace mlafix::runtime {

struct ByteSpan;

/// A call that passed every check, and its plan.
class KnownCall {
public:
  /// Remembers a call and its plan, if calls of this kind can be recalled.
  void set(const Call &call, const TargetCode &code, const Plan &plan) {
    valid = remember(call, code, plan);
  }
  void forget() { valid = false; }

  /// Fills in `plan` and returns true if the known plan is valid for `args`.
  /// `args` may differ from the known call's arguments only in pointers, and
  /// only if the new pointers change neither the result of a check nor the
  /// choice of the plan. `args` has `numArgs` entries.
  bool recall(const mlafix_arg *args, uint32_t numArgs, mlafix_device device,
              Plan &plan) const;

private:
  // Calls that exceed these limits are not remembered. Every kernel of the
  // library stays within them.
  static constexpr uint32_t maxArgs = 24, maxNumbers = 128, maxSlots = 64,
                            maxPairs = 32;

  struct Argument {
    int32_t kind;
    int32_t dtype;
    uint32_t ndim; ///< for a tensor: number of dims in `numbers`
    /// For several tensors: the number of addresses, which start at
    /// `slots[table]`.
    uint32_t ranks;
    uint32_t table;
    bool given;      ///< true if a tensor is not omitted
    bool optional;   ///< true if a null pointer omits the tensor
    bool contiguous; ///< true if strides may be omitted
    bool written;
    uint64_t bits;   ///< a tensor's pointer, or a scalar's parameter slot
    uint64_t extent; ///< bytes from the pointer to the tensor's end
    /// A bit set of the arguments that may have the same pointer as this one.
    uint64_t mayCoincide;
  };
  /// Two arguments whose pointers a guard compares, and the result.
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
  uint64_t lowBits; ///< mask of the pointer bits that a guard tests
  Argument args[maxArgs];
  int64_t numbers[maxNumbers]; ///< pairs of size and stride, tensor by tensor
  Pair pairs[maxPairs];

  // The remembered plan.
  PlannedGrid planned;
  uint32_t numSlots;
  uint64_t slots[maxSlots];
  int8_t pointerOf[maxSlots]; ///< argument number of a pointer slot, else -1
  int32_t group;              ///< first slot of the Group parameter, or -1
  uint64_t blockSlots;        ///< Call::blockSlots of the known call
  bool exchanges;             ///< true if the kernel also writes peers' tensors
};

/// Remembers the last few calls of a kernel on one device. Thread-safe.
class CallMemo {
public:
  /// Fills in `plan` and returns true if a known plan is valid for this call.
  /// If it returns false, the call may still be valid.
  bool recall(const mlafix_arg *args, uint32_t numArgs, mlafix_device device,
              uint32_t flags, Plan &plan);

  /// Remembers a checked call and its plan.
  void keep(const Call &call, const TargetCode &code, const Plan &plan);

private:
  class TryLock;
  static constexpr unsigned numKnown = 4;

  /// Returns false for most calls while calls rarely repeat, because comparing
  /// and storing all of them would cost more than the few repetitions save.
  bool isWorthIt() const {
    constexpr unsigned patience = 2 * numKnown, seldom = 32;
    return misses <= patience || misses % seldom == 0;
  }

  /// A lock that is held while some numbers are compared or copied. No thread
  /// waits for it: a thread that does not get the lock at once goes on without
  /// the memo. The value is 0 if the lock is free, else 1 + the fork generation
  /// of the holder's process.
  std::atomic<unsigned> holder{0};
  unsigned latest = 0; ///< index into `known` of the latest call
  unsigned misses = 0; ///< number of calls since one was recalled
  KnownCall known[numKnown];
};

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_CALLMEMO_H
