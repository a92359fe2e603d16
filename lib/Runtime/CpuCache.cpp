//===- CpuCache.cpp - What the caches of the CPU hold ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "CpuCache.h"

#include "Environment.h"

#include <unistd.h>

using namespace mlafix::runtime;

/// Some machines do not say, or say 0.
static int64_t askSystem() {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  for (int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (long bytes = sysconf(level); bytes > 0)
      return bytes;
#endif
  return int64_t(32) << 20;
}

int64_t mlafix::runtime::lastCacheBytes() {
  if (environment().cpuCacheBytes >= 0)
    return environment().cpuCacheBytes;
  static const int64_t bytes = askSystem();
  return bytes;
}
