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

/// Bytes that the caches of the last level hold that this process' threads
/// reach, or what the environment says instead. What the operating system says
/// is read from its files the first time.
int64_t lastCacheBytes();

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_CPUCACHE_H
