//===- LocalMemory.h - Whose memory a launch reads --------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_LOCALMEMORY_H
#define MLAFIX_RUNTIME_LOCALMEMORY_H

#include "Call.h"
#include "CudaDriver.h"

namespace mlafix::runtime {

/// Returns true if all tensors that a planned launch reads are in its device's
/// own memory. The parameter of kind Local has this value. Memory unknown to
/// the driver counts as the device's. Driver answers are cached for an eighth
/// of a second, so the answer may be stale if memory was freed and mapped
/// again. A stale answer only changes whether the kernel prefetches, not its
/// results.
bool readsLocalMemory(const CudaDriver &driver, const Plan &plan,
                      int32_t ordinal);

/// Drops the cached answers. Tests that replace the driver call it.
void forgetOwnersForTesting();

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_LOCALMEMORY_H
