//===- Table.cpp - Results as a table -------------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include <cstdio>

using namespace mlafix::bench;

static std::string bytesText(int64_t bytes) {
  char text[32];
  if (bytes >= 1'000'000)
    std::snprintf(text, sizeof(text), "%.1f MB", double(bytes) * 1e-6);
  else
    std::snprintf(text, sizeof(text), "%.1f kB", double(bytes) * 1e-3);
  return text;
}

static void printTime(const Summary &time) {
  std::printf("%10.2f  [%.2f - %.2f]", time.median, time.low, time.high);
}

void mlafix::bench::printTableHead(const RunInfo &info) {
  std::printf("%s: %s; %d rounds\n"
              "times are microseconds, median [10th - 90th percentile]; 'x' is "
              "how many times faster ours is\n",
              info.device.c_str(), info.machine.c_str(), info.settings.rounds);
}

static void printRoof(const CaseResult &result, const Roof &roof,
                      const char *how) {
  if (!roof.isMeasured())
    return;
  std::printf("  %-20s", ("roof " + result.roofMix + how).c_str());
  printTime(roof.time);
  std::printf("  %.0f GB/s, %s\n", result.gigabytesPerSecond(roof.time),
              roof.form.c_str());
}

void mlafix::bench::printCase(const CaseResult &result) {
  if (!result.leftOut.empty()) {
    std::printf("%s: skipped: %s\n", result.name.c_str(),
                result.leftOut.c_str());
    std::fflush(stdout);
    return;
  }
  std::printf("%s  (%s, %lld sets)\n", result.name.c_str(),
              bytesText(result.traffic.total()).c_str(),
              static_cast<long long>(result.sets));
  printRoof(result, result.roof, "");
  printRoof(result, result.dependentRoof, ", dependent");
  if (result.emptyMicros > 0)
    std::printf("  %-20s%10.2f\n", "an empty launch", result.emptyMicros);
  for (const ImplementationResult &implementation : result.implementations) {
    std::printf("  %-20s", implementation.name.c_str());
    if (!implementation.wrong.empty()) {
      std::printf(" WRONG: %s\n", implementation.wrong.c_str());
      continue;
    }
    printTime(implementation.time);
    if (result.roof.isMeasured())
      std::printf("  %.0f GB/s, %.1f%% of roof",
                  result.gigabytesPerSecond(implementation.time),
                  CaseResult::percentOf(result.roof, implementation.time));
    if (result.dependentRoof.isMeasured())
      std::printf(
          ", %.1f%% of the dependent one",
          CaseResult::percentOf(result.dependentRoof, implementation.time));
    const ImplementationResult *ours = result.find(implementation.against);
    if (ours && ours->wrong.empty())
      std::printf("  x %.3f of %s",
                  implementation.time.median / ours->time.median,
                  ours->name.c_str());
    std::printf("\n");
  }
  std::fflush(stdout);
}

void mlafix::bench::printHost(const std::vector<HostResult> &results) {
  for (const HostResult &result : results) {
    std::printf("host: %-28s", result.name.c_str());
    printTime(result.time);
    std::printf("\n");
  }
}
