//===- ManifestParts.h - Parsers of parts of a manifest ---------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_MANIFESTPARTS_H
#define MLAFIX_RUNTIME_MANIFESTPARTS_H

#include "ManifestValue.h"

namespace mlafix::runtime {

// Each throws a ManifestError where the value is wrong.

/// An element of "args", the next one of `kernel`, to which it adds the names
/// of its dims.
ArgDesc parseArg(const Value &value, KernelDesc &kernel);

/// Finds the dims that the bounds of scalars name.
void resolveBounds(KernelDesc &kernel);

/// An element of "checks" of `kernel`, whose arguments are known.
LaunchCheck parseLaunchCheck(const Value &value, const KernelDesc &kernel);

/// The index of a tensor of `kernel` that is not absent.
uint32_t tensorIndex(const Value &value, const KernelDesc &kernel);

/// An element of "variants" of `code`, whose images are known.
CodeVersion parseCodeVersion(const Value &value, const KernelDesc &kernel,
                             const TargetCode &code);

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_MANIFESTPARTS_H
