//===- CpuCache.cpp - What the caches of the CPU hold ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Environment.h"

#include "Fork.h"
#include "Status.h"
#include "ThreadPool.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <unistd.h>

using namespace mlafix::runtime;

namespace {

/// Returns the number of processors in a list such as "0-3,8".
int64_t countProcessors(const std::string &list) {
  int64_t count = 0;
  for (size_t begin = 0, end; begin < list.size(); begin = end + 1) {
    end = std::min(list.find(',', begin), list.size());
    std::string range = list.substr(begin, end - begin);
    size_t dash = range.find('-');
    count += dash == range.npos ? 1
                                : std::atoll(range.c_str() + dash + 1) -
                                      std::atoll(range.c_str()) + 1;
  }
  return count;
}

/// Returns the total bytes of the last-level caches that the process's threads
/// use, or 0 if Linux does not report them. Assumes that all processors are
/// like the first one. Does not use CPUID, which may report the caches of the
/// whole socket in a virtual machine.
int64_t askKernel() {
  int64_t level = 0, bytes = 0, sharing = 0;
  for (int index = 0; index < 16; ++index) {
    std::string cache = "/sys/devices/system/cpu/cpu0/cache/index" +
                        std::to_string(index) + "/";
    std::string size = readLine(cache + "size"); // for example "32768K"
    if (size.empty())
      break;
    int64_t mine = std::atoll(readLine(cache + "level").c_str());
    if (mine <= level)
      continue;
    level = mine;
    bytes = std::atoll(size.c_str()) << (size.back() == 'M' ? 20 : 10);
    sharing = countProcessors(readLine(cache + "shared_cpu_list"));
  }
  if (level < 2 || sharing < 1)
    return 0;
  // Threads beyond the number of processors use no further caches, so do not
  // count them.
  int64_t processors = std::max(std::thread::hardware_concurrency(), 1u);
  int64_t threads = std::clamp<int64_t>(usableThreads(), 1, processors);
  return bytes * ((threads - 1) / sharing + 1);
}

/// Returns the size that askKernel() reports. If that is 0, returns the size
/// that sysconf() reports. If that is not positive either, returns 32 MB.
int64_t askSystem() {
  if (int64_t bytes = askKernel())
    return bytes;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  for (int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (long bytes = sysconf(level); bytes > 0)
      return bytes;
#endif
  return int64_t(32) << 20;
}

Lazy<int64_t> systemBytes;

} // namespace

int64_t mlafix::runtime::lastCacheBytes() {
  if (environment().cpuCacheBytes >= 0)
    return environment().cpuCacheBytes;
  return systemBytes.get(askSystem);
}

extern "C" int64_t mlafix_cpu_cache_bytes(void) noexcept {
  int64_t bytes = 0;
  guarded([&] {
    bytes = lastCacheBytes();
    return MLAFIX_OK;
  });
  return bytes;
}
