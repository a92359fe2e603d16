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

/// Returns true if all tensors that a planned launch reads, except peers'
/// tensors, are in the memory of device `ordinal`. The parameter of kind Local
/// has this value. If the driver's query fails for a tensor, that tensor counts
/// as being there. Driver answers are cached for up to an eighth of a second,
/// so the result may be stale if memory was freed and mapped again. A stale
/// result only changes whether the kernel prefetches, not what it computes.
bool readsLocalMemory(const CudaDriver &driver, const Plan &plan,
                      int32_t ordinal);

/// Drops the cached answers. Tests that replace the driver call it.
void forgetOwnersForTesting();

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_LOCALMEMORY_H
