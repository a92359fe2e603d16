//===- KnownNumbers.h - who decides a kernel's numbers ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Decides which sizes and numbers of a kernel are known at compile time. The
// spelling of a name is not enough: bound to "any", an upper-case name is left
// to the launch.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_KNOWNNUMBERS_H
#define MLAFIX_DIALECT_KNOWNNUMBERS_H

#include "dialect/Mlafix.h"

namespace mlafix {

enum class Decider {
  /// The type: a literal such as `96`, or a bound name.
  Type,
  /// mlafix-specialize, which has not run yet: an upper-case name. It will be
  /// bound to at least 1, and verifiers will see the number.
  Specialization,
  /// Each launch, for an upper-case name bound to "any". Such a dim may have
  /// size 0.
  LaunchOfOpenName,
  /// Each launch: a lower-case name (with or without a bound), an unnamed dim,
  /// or an integer argument. The number in the tensor of an `or_tensor`
  /// argument is not checked, so that counts as an ordinary tensor.
  Launch,
};

/// A number as far as it is known before the launch: what decides it, and its
/// range.
struct KnownNumber {
  Decider decider;
  int64_t least = 0;
  /// The upper bound; nullopt if only the type bounds it.
  std::optional<int64_t> most = std::nullopt;
  /// The dim whose size is the upper bound; empty if there is none.
  llvm::StringRef atMost = {};

  /// True if each launch decides it, not the compilation.
  bool isOfLaunch() const {
    return decider == Decider::Launch || decider == Decider::LaunchOfOpenName;
  }
  /// True for a compile-time name that has no number yet.
  bool isOpenName() const {
    return decider == Decider::Specialization ||
           decider == Decider::LaunchOfOpenName;
  }
};

/// The size of the arguments' dims called `dim`: a name, or a product "(G K)"
/// with at least one unbound name.
KnownNumber getKnownSize(KernelOp kernel, llvm::StringRef dim);
/// The size of a dim of an argument.
KnownNumber getKnownSize(KernelOp kernel, unsigned argument, unsigned dim);
/// The range of an integer argument, including `mlafix.at_most`.
KnownNumber getKnownScalar(KernelOp kernel, unsigned argument);

} // namespace mlafix

#endif // MLAFIX_DIALECT_KNOWNNUMBERS_H
