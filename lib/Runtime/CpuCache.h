//===- CpuCache.h - What the caches of the CPU hold -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_CPUCACHE_H
#define MLAFIX_RUNTIME_CPUCACHE_H

#include <cstdint>

namespace mlafix::runtime {

/// Bytes that the last level of cache holds, or what the environment says
/// instead. What is written to more memory than that is no longer there when it
/// is read.
int64_t lastCacheBytes();

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_CPUCACHE_H
