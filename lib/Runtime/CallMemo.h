//===- CallMemo.h - What the checks of a call came to -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The layers of a model make the same call repeatedly, with other memory but
// the same sizes, strides and scalars. Checks and plans that depend only on
// these stay valid. The next call has only to check its pointers: alignment,
// equality, and overlap of written tensors with others. Memory shared by ranks,
// and lists, must stay in place: tables of addresses must be equal.
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

/// A call that passed every check, and its plan.
class KnownCall {
public:
  /// Remembers a call, if calls of its kind can be recalled.
  void set(const Call &call, const TargetCode &code, const Plan &plan) {
    valid = remember(call, code, plan);
  }
  void forget() { valid = false; }

  /// Fills in the plan if `args` differ from the known call only in what
  /// affects neither checks nor the plan. `args` has as many entries as the
  /// kernel has arguments.
  bool recall(const mlafix_arg *args, uint32_t numArgs, mlafix_device device,
              Plan &plan) const;

private:
  // Limits that every kernel of the library meets; larger calls are not kept.
  static constexpr uint32_t maxArgs = 24, maxNumbers = 128, maxSlots = 64,
                            maxPairs = 32;

  struct Argument {
    int32_t kind;
    int32_t dtype;
    uint32_t ndim; ///< tensors: number of sizes and strides in `numbers`
    uint32_t
        ranks; ///< several tensors: number of addresses from `slots[table]` on
    uint32_t table;
    bool given;      ///< tensors: not omitted
    bool optional;   ///< tensors: a null pointer omits them
    bool contiguous; ///< tensors: strides may be omitted
    bool written;
    uint64_t bits;   ///< the pointer, or a scalar as a parameter slot
    uint64_t extent; ///< bytes from the pointer, the lowest address
    /// Bit set of the arguments that may have the same pointer as this one.
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
  uint64_t lowBits; ///< mask of the pointer bits that a check reads
  Argument args[maxArgs];
  int64_t numbers[maxNumbers]; ///< size, stride, size, stride, …
  Pair pairs[maxPairs];

  // The plan. Pointer parameters are stored as argument numbers.
  const CodeVersion *variant;
  uint32_t index, numParams, numSlots, grid, threads;
  int64_t rows, rowBytes;
  uint64_t slots[maxSlots];
  int8_t pointerOf[maxSlots]; ///< argument number, or -1
  int32_t group;              ///< first slot of the group, or -1
  uint64_t blockSlots;        ///< Call::blockSlots
  bool exchanges;             ///< true if peers' tensors are written
};

/// The last few calls of a kernel on one device. Thread-safe.
class CallMemo {
public:
  /// Fills in the plan if the call matches a known one. False does not mean
  /// that the call is invalid.
  bool recall(const mlafix_arg *args, uint32_t numArgs, mlafix_device device,
              uint32_t flags, Plan &plan);

  /// Remembers a checked call and its plan.
  void keep(const Call &call, const TargetCode &code, const Plan &plan);

private:
  class TryLock;
  static constexpr unsigned numKnown = 4;

  /// False for most calls while calls rarely repeat: comparing and storing them
  /// would then cost more than it saves.
  bool isWorthIt() const {
    constexpr unsigned patience = 2 * numKnown, seldom = 32;
    return misses <= patience || misses % seldom == 0;
  }

  /// A spin lock held while a few dozen numbers are compared or copied. A
  /// thread that fails to take it proceeds without the memo. 0: free; otherwise
  /// 1 + the fork generation of the holder's process.
  std::atomic<unsigned> holder{0};
  unsigned latest = 0; ///< index into `known`
  unsigned misses = 0; ///< calls since the last recalled one
  KnownCall known[numKnown];
};

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_CALLMEMO_H
