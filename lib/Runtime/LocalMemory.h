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

/// True if all tensors that a planned launch reads are in its device's memory
/// (the parameter of kind Local). Driver answers are cached for an eighth of a
/// second, so memory that was freed and mapped again may get a stale answer.
/// The kernel then prefetches when it should not, or does not prefetch; results
/// stay the same. Memory unknown to the driver counts as the device's.
bool readsLocalMemory(const CudaDriver &driver, const Plan &plan,
                      int32_t ordinal);

/// Drops the cached answers, for tests that replace the driver.
void forgetOwnersForTesting();

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_LOCALMEMORY_H
