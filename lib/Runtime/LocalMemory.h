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
/// tensors, are in the memory of device `ordinal`. (This is not the "local
/// memory" of a CUDA thread.) The kernel's parameter of kind Local has this
/// value. A tensor counts as being on the device if the driver's query fails.
/// Driver answers are cached for up to an eighth of a second, so the result may
/// be stale if memory was freed and mapped again. A stale result only changes
/// whether the kernel prefetches, not what it computes.
bool readsLocalMemory(const CudaDriver &driver, const Plan &plan,
                      int32_t ordinal);

/// Drops the cached answers. For tests that replace the driver.
void forgetOwnersForTesting();

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_LOCALMEMORY_H
