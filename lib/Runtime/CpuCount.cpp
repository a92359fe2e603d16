//===- CpuCount.cpp - How many threads the process may use ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Environment.h"
#include "Status.h"
#include "ThreadPool.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <string>
#include <thread>

using namespace mlafix::runtime;

namespace {

int affinityThreads() {
  // A machine with more processors than cpu_set_t holds needs a larger mask.
  for (int processors = 1024; processors <= 1 << 18; processors *= 4) {
    cpu_set_t *mask = CPU_ALLOC(processors);
    if (!mask)
      break;
    size_t bytes = CPU_ALLOC_SIZE(processors);
    CPU_ZERO_S(bytes, mask);
    int count =
        sched_getaffinity(0, bytes, mask) == 0 ? CPU_COUNT_S(bytes, mask) : 0;
    CPU_FREE(mask);
    if (count > 0)
      return count;
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

/// Returns how many threads may run all the time if the process may use `quota`
/// us of CPU time per `period` us, rounded up. Returns 0 if there is no limit.
int quotaThreads(double quota, double period) {
  if (quota <= 0 || period <= 0)
    return 0;
  return std::max(1, static_cast<int>(quota / period + 0.999));
}

/// Returns the smallest number of threads that the quotas of a cgroup v2 group
/// and its parents allow. Returns 0 if there is no limit.
int quotaV2(const std::string &mount, std::string group) {
  int least = 0;
  for (;;) {
    double quota = 0, period = 0; // "max 100000" means no limit
    std::string line = readLine(mount + group + "/cpu.max");
    if (std::sscanf(line.c_str(), "%lf %lf", &quota, &period) == 2)
      if (int threads = quotaThreads(quota, period))
        least = least ? std::min(least, threads) : threads;
    size_t slash = group.rfind('/');
    if (group.empty() || slash == group.npos)
      return least;
    group.resize(slash);
  }
}

int quotaV1(const std::string &group) {
  // A container often does not mount the group's own path, so also try the root
  // of the hierarchy.
  for (const std::string &path :
       {"/sys/fs/cgroup/cpu" + group, std::string("/sys/fs/cgroup/cpu")}) {
    double quota = std::atof(readLine(path + "/cpu.cfs_quota_us").c_str());
    double period = std::atof(readLine(path + "/cpu.cfs_period_us").c_str());
    if (int threads = quotaThreads(quota, period))
      return threads;
  }
  return 0;
}

int cgroupThreads() {
  int least = 0;
  for (const std::string &line : readLines("/proc/self/cgroup")) {
    // A line is "0::/user.slice" (version 2) or "4:cpu,cpuacct:/docker/..."
    // (version 1).
    size_t first = line.find(':');
    size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string group = line.substr(second + 1);
    int threads = 0;
    if (controllers.empty())
      threads = quotaV2("/sys/fs/cgroup", group);
    else if (("," + controllers + ",").find(",cpu,") != line.npos)
      threads = quotaV1(group);
    if (threads)
      least = least ? std::min(least, threads) : threads;
  }
  return least;
}

} // namespace

int mlafix::runtime::usableThreads() {
  if (environment().numThreads > 0)
    return environment().numThreads;
  int threads = affinityThreads();
  if (int quota = cgroupThreads())
    threads = std::min(threads, quota);
  return std::clamp(threads, 1, 1024);
}

extern "C" int32_t mlafix_cpu_threads(void) noexcept {
  int32_t threads = 1;
  guarded([&] {
    threads = usableThreads();
    return MLAFIX_OK;
  });
  return threads;
}
