//===- Report.h - Results as a table and as JSON ----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_BENCH_REPORT_H
#define MLAFIX_BENCH_REPORT_H

#include "Measure.h"

namespace mlafix::bench {

/// The description of a run, with which the JSON file begins.
struct RunInfo {
  std::string device; ///< such as "cpu" or "cuda:0"
  std::string machine;
  int64_t cacheBytes = 0;
  Settings settings;
};

/// These functions print a part of the table to standard output, as soon as it
/// is measured.
void printTableHead(const RunInfo &info);
void printCase(const CaseResult &result);
void printHost(const std::vector<HostResult> &results);

/// Writes the results to the file `path` atomically. Throws std::runtime_error
/// on failure.
void writeJson(const std::string &path, const RunInfo &info,
               const std::vector<CaseResult> &cases,
               const std::vector<HostResult> &host);

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_REPORT_H
