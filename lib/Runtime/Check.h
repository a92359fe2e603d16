//===- Check.h - What the checks of a call share ----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_CHECK_H
#define MLAFIX_RUNTIME_CHECK_H

#include "Call.h"
#include "Status.h"

/// Fails with what is wrong with the argument that DESC describes.
#define WRONG(DESC, FORMAT, ...)                                               \
  fail(MLAFIX_INVALID_ARGUMENT, "argument \"%s\": " FORMAT,                    \
       (DESC).name.c_str(), __VA_ARGS__)

namespace mlafix::runtime {

/// Reads a tensor.
mlafix_status readTensor(const ArgDesc &desc, const mlafix_tensor *tensor,
                         mlafix_device device, CallArg &arg);

/// Nothing that is written lies on anything else, unless it may (N11), nor on
/// itself.
mlafix_status checkOverlaps(const Call &call);

/// Whether what the kernel assumes of sizes and scalars holds; the call's
/// arguments have been read.
mlafix_status checkConditions(const Call &call);

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_CHECK_H
