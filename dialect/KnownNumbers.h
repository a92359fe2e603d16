//===- KnownNumbers.h - what is known of sizes and integers -----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Tells which sizes and integer arguments of a kernel are known at compile
// time, and which only at launch. The size of a dim with an upper-case name may
// be known only at launch, too, since the name may be bound to "any".
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_KNOWNNUMBERS_H
#define MLAFIX_DIALECT_KNOWNNUMBERS_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// The point at which the value of a size, or of an integer argument, is fixed.
enum class Decider {
  /// The argument's type fixes the size: the dim is a literal such as `96`, or
  /// the dim's name is bound to a number.
  Type,
  /// mlafix-specialize will fix the size, since the dim has an unbound
  /// upper-case name. The size will be at least 1. The verifiers will run again
  /// after mlafix-specialize, and then know the size.
  Specialization,
  /// Each launch decides, since an upper-case name is bound to "any". The size
  /// may be 0.
  LaunchOfOpenName,
  /// Each launch decides. This holds for a dim with a lower-case name (with or
  /// without a bound), a dim without a name, and an integer argument. It also
  /// holds for a number that a call passes in a tensor (`or_tensor` in Python).
  /// No launch checks such a number.
  Launch,
};

/// A number as far as it is known before the launch: what decides it, and its
/// range.
struct KnownNumber {
  Decider decider;
  int64_t least = 0;
  /// The upper bound, or nullopt if it is not known before the launch.
  std::optional<int64_t> most = std::nullopt;
  /// If a dim's size is the upper bound and `most` does not have it, the name
  /// of this dim, else "".
  llvm::StringRef atMost = {};

  /// Returns true if the number is known only at launch.
  bool isOfLaunch() const {
    return decider == Decider::Launch || decider == Decider::LaunchOfOpenName;
  }
  /// Returns true if the number is the size of a dim with an upper-case name
  /// that is unbound, or bound to "any".
  bool isOpenName() const {
    return decider == Decider::Specialization ||
           decider == Decider::LaunchOfOpenName;
  }
};

/// Returns what is known about the size of the dims called `dim`. `dim` is a
/// name, or a product "(G K)" with at least one unbound name.
KnownNumber getKnownSize(KernelOp kernel, llvm::StringRef dim);
/// Returns what is known about the size of one dim of an argument.
KnownNumber getKnownSize(KernelOp kernel, unsigned argument, unsigned dim);
/// Returns what is known about an integer argument. `mlafix.at_most` limits its
/// range.
KnownNumber getKnownScalar(KernelOp kernel, unsigned argument);

} // namespace mlafix

#endif // MLAFIX_DIALECT_KNOWNNUMBERS_H
