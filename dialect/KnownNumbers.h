//===- KnownNumbers.h - who decides a kernel's numbers ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Tells which sizes and numbers of a kernel are known at compile time. An
// upper-case name does not say that a size is known then: if the name is bound
// to "any", only the launch knows the size.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_KNOWNNUMBERS_H
#define MLAFIX_DIALECT_KNOWNNUMBERS_H

#include "dialect/Mlafix.h"

namespace mlafix {

enum class Decider {
  /// The type fixes the number: the dim is a literal such as `96`, or its name
  /// is bound to a number.
  Type,
  /// mlafix-specialize will fix the number, which has an upper-case name. The
  /// number will be at least 1, and verifiers will run again after that.
  Specialization,
  /// Each launch decides, since an upper-case name is bound to "any". The size
  /// may be 0.
  LaunchOfOpenName,
  /// Each launch decides. This holds for a lower-case name (with or without a
  /// bound), a dim without a name, and an integer argument. It also holds for
  /// the tensor of an `or_tensor` argument, whose number no launch checks.
  Launch,
};

/// A number as far as it is known before the launch: what decides it, and its
/// range.
struct KnownNumber {
  Decider decider;
  int64_t least = 0;
  /// The upper bound, or nullopt if only the number's type bounds it.
  std::optional<int64_t> most = std::nullopt;
  /// The name of a dim whose size is the upper bound, or "".
  llvm::StringRef atMost = {};

  /// Returns true if each launch decides the number, not the compilation.
  bool isOfLaunch() const {
    return decider == Decider::Launch || decider == Decider::LaunchOfOpenName;
  }
  /// Returns true if the number has a compile-time name, but no value yet.
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
