//===- KnownNumbers.h - who decides a kernel's numbers ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The one place that tells which sizes and numbers of a kernel are known when
// it is compiled. The spelling of a name does not: "any" leaves one in upper
// case to the launch.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_KNOWNNUMBERS_H
#define MLAFIX_DIALECT_KNOWNNUMBERS_H

#include "dialect/Mlafix.h"

namespace mlafix {

enum class Decider {
  /// The type has the number: `96`, or a name that is bound.
  Type,
  /// mlafix-specialize, which has not run yet: an upper-case name. It binds
  /// the name to 1 or more, and the verifiers see the number.
  Specialization,
  /// Each launch, although the name is in upper case: it is bound to "any".
  /// Such a dim may have the size 0.
  LaunchOfOpenName,
  /// Each launch: a lower-case name, with a bound or without; a dim without a
  /// name; an integer argument. The tensor of an `or_tensor` holds a number
  /// that nobody checks, and is a tensor like any other.
  Launch,
};

/// Describes a number before a launch: who decides it, and its ends.
struct KnownNumber {
  Decider decider;
  int64_t least = 0;
  /// None: there is no bound but that of the number's type.
  std::optional<int64_t> most = std::nullopt;
  /// The dim whose size is the most, where that is not a number; empty: none.
  llvm::StringRef atMost = {};

  /// True if each launch decides, and not what is compiled.
  bool isOfLaunch() const {
    return decider == Decider::Launch || decider == Decider::LaunchOfOpenName;
  }
  /// True if the name is one to compile for, and no number is there for it.
  bool isOpenName() const {
    return decider == Decider::Specialization ||
           decider == Decider::LaunchOfOpenName;
  }
};

/// The size of the dims that arguments call `dim`: a name, or a product of
/// names, "(G K)", of which one at least is not bound.
KnownNumber getKnownSize(KernelOp kernel, llvm::StringRef dim);
/// The size of a dim of an argument.
KnownNumber getKnownSize(KernelOp kernel, unsigned argument, unsigned dim);
/// An integer argument; of one with `mlafix.at_most`, its ends.
KnownNumber getKnownScalar(KernelOp kernel, unsigned argument);

} // namespace mlafix

#endif // MLAFIX_DIALECT_KNOWNNUMBERS_H
