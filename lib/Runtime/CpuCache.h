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

/// Returns the total bytes of the last-level caches that this process's threads
/// use, or the size that the environment sets instead (Environment.h). The
/// first call reads system files.
int64_t lastCacheBytes();

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_CPUCACHE_H
