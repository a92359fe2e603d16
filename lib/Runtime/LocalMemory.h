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

/// True if all tensors that a planned launch reads are in memory of its device:
/// the parameter of kind Local. Answers of the driver are remembered for an
/// eighth of a second, so that memory that is freed and mapped again may get
/// the answer of what was there before. Then a kernel prefetches what it had
/// better not, or does not prefetch; results do not depend on it. Memory that
/// the driver cannot be asked about is taken for the device's.
bool readsLocalMemory(const CudaDriver &driver, const Plan &plan,
                      int32_t ordinal);

/// The answers so far are those of a driver that is gone.
void forgetOwnersForTesting();

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_LOCALMEMORY_H
