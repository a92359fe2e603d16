//===- Guards.h - Whether a call is one for a variant -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_GUARDS_H
#define MLAFIX_RUNTIME_GUARDS_H

#include "Call.h"

namespace mlafix::runtime {

/// Whether the guard holds for a call whose grid has so many rows.
bool holds(const Call &call, const Guard &guard, int64_t rows);

/// What the guard asks for, as messages say it after "expected".
std::string describe(const KernelDesc &kernel, const Guard &guard);

/// Bytes of a tensor's elements; 0 for a scalar and an omitted tensor.
double elementBytes(const ArgDesc &desc, const CallArg &arg);

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_GUARDS_H
