//===- Report.cpp - Results as a table and as JSON ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

using namespace mlafix::bench;
using Json = nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

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
    if (!implementation.leftOut.empty()) {
      std::printf(" left out: %s\n", implementation.leftOut.c_str());
      continue;
    }
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
    if (ours && ours->isTimed())
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

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

/// Rounds to four decimal places, which is more precise than any clock here.
static double rounded(double value) { return std::round(value * 1e4) / 1e4; }

static Json toJson(const Summary &time) {
  return {{"p10", rounded(time.low)},
          {"median", rounded(time.median)},
          {"p90", rounded(time.high)}};
}

static Json toJson(const CaseResult &result, const Roof &roof) {
  return {{"mix", result.roofMix},
          {"form", roof.form},
          {"us", toJson(roof.time)},
          {"gbps", rounded(result.gigabytesPerSecond(roof.time))}};
}

static Json toJson(const CaseResult &result) {
  Json json = {
      {"name", result.name},
      {"bytes",
       {{"read", result.traffic.read}, {"written", result.traffic.written}}}};
  if (!result.leftOut.empty()) {
    json["left_out"] = result.leftOut;
    return json;
  }
  json["sets"] = result.sets;
  json["rotated_bytes"] = result.rotated;
  if (result.roof.isMeasured())
    json["roof"] = toJson(result, result.roof);
  if (result.dependentRoof.isMeasured())
    json["roof_dependent"] = toJson(result, result.dependentRoof);
  if (result.emptyMicros > 0)
    json["empty_launch_us"] = rounded(result.emptyMicros);
  json["contenders"] = Json::array();
  for (const ImplementationResult &implementation : result.implementations) {
    Json entry = {{"name", implementation.name},
                  {"rival", implementation.isBaseline},
                  {"dependent", implementation.isDependent},
                  {"launches", implementation.launches}};
    if (!implementation.against.empty())
      entry["against"] = implementation.against;
    if (implementation.threads)
      entry["threads"] = implementation.threads;
    if (!implementation.leftOut.empty()) {
      entry["left_out"] = implementation.leftOut;
    } else if (!implementation.wrong.empty()) {
      entry["wrong"] = implementation.wrong;
    } else {
      entry["us"] = toJson(implementation.time);
      if (result.roof.isMeasured()) {
        entry["gbps"] = rounded(result.gigabytesPerSecond(implementation.time));
        entry["percent_of_roof"] =
            rounded(CaseResult::percentOf(result.roof, implementation.time));
      }
      if (result.dependentRoof.isMeasured())
        entry["percent_of_roof_dependent"] = rounded(
            CaseResult::percentOf(result.dependentRoof, implementation.time));
    }
    json["contenders"].push_back(std::move(entry));
  }
  return json;
}

/// Prints each element of a list on its own line. A diff of stored results then
/// shows which implementation changed.
static void print(std::ostream &os, const Json &json, unsigned indent = 0) {
  const char *separator = "";
  if (json.is_object()) {
    os << '{';
    for (const auto &[name, value] : json.items()) {
      os << separator << Json(name) << ": ";
      print(os, value, indent);
      separator = ", ";
    }
    os << '}';
  } else if (json.is_array() && !json.empty()) {
    os << '[';
    for (const Json &element : json) {
      os << separator << '\n' << std::string(indent + 1, ' ');
      print(os, element, indent + 1);
      separator = ",";
    }
    os << '\n' << std::string(indent, ' ') << ']';
  } else {
    os << json;
  }
}

void mlafix::bench::writeJson(const std::string &path, const RunInfo &info,
                              const std::vector<CaseResult> &cases,
                              const std::vector<HostResult> &host) {
  Json json = {{"schema", 1},
               {"tool", std::string("mlafix-bench ") + mlafix_version()},
               {"device", info.device},
               {"machine", info.machine},
               {"cache_bytes", info.cacheBytes},
               {"rounds", info.settings.rounds},
               {"cases", Json::array()},
               {"host", Json::array()}};
  for (const CaseResult &result : cases)
    json["cases"].push_back(toJson(result));
  for (const HostResult &result : host)
    json["host"].push_back(
        {{"name", result.name}, {"us", toJson(result.time)}});
  std::string whole = path + ".part";
  std::ofstream file(whole, std::ios::binary);
  print(file, json);
  file << '\n';
  file.close();
  if (!file || std::rename(whole.c_str(), path.c_str()) != 0) {
    std::remove(whole.c_str());
    throw std::runtime_error("--json: cannot write \"" + path + "\"");
  }
}
