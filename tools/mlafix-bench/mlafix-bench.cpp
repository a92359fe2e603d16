//===- mlafix-bench.cpp - Kernels against the machine's stream roof -------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "Report.h"
#include "StandardOutput.h"
#include "StreamPtx.h"

#include <cstdio>
#include <set>
#include <stdexcept>
#include <unistd.h>

using namespace mlafix::bench;

/// Returns the path of the folder bench-units beside this program's folder.
static std::string defaultUnits() {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  std::string program(path, length < 0 ? 0 : length);
  for (int i = 0; i < 2; ++i)
    program.resize(program.find_last_of('/') == program.npos
                       ? 0
                       : program.find_last_of('/'));
  return program + "/bench-units";
}

static void listUnits(const std::vector<Case> &cases) {
  std::set<std::string> lines;
  for (const Case &work : cases)
    for (const Implementation &implementation : work.implementations)
      for (const Launch &launch : implementation.launches)
        if (!implementation.isBaseline)
          lines.insert(launch.function +
                       (launch.bindings.empty() ? "" : " " + launch.bindings));
  for (const std::string &line : lines)
    std::puts(line.c_str());
}

/// Shows the current case on the terminal, unless the terminal shows the table.
static void showProgress(size_t index, size_t count, const std::string &name) {
  if (isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO))
    std::fprintf(stderr, "\r\033[K[%zu/%zu] %s", index, count, name.c_str());
}

static int run(const Options &options, const std::vector<Case> &cases) {
  std::unique_ptr<Machine> machine = openMachine(options.device);
  if (!options.baselines.empty())
    machine->loadBaselines(options.baselines);
  std::string folder = options.units.empty() ? defaultUnits() : options.units;
  if (access(folder.c_str(), F_OK) != 0)
    throw std::runtime_error(
        "--units: expected a folder of units, found no \"" + folder + "\"");
  Units units(folder);
  RunInfo info;
  info.device = options.device.type == MLAFIX_CPU
                    ? "cpu"
                    : "cuda:" + std::to_string(options.device.ordinal);
  info.machine = machine->name();
  info.cacheBytes = machine->cacheBytes();
  info.settings = options.settings;
  info.settings.rotate =
      options.rotate < 0 ? 3 * info.cacheBytes : options.rotate << 20;
  printTableHead(info);
  Meter meter(*machine, units, info.settings);
  std::vector<CaseResult> results;
  size_t measured = 0, wrong = 0;
  for (const Case &work : cases) {
    showProgress(results.size() + 1, cases.size(), work.name);
    results.push_back(meter.measure(work));
    const CaseResult &result = results.back();
    printCase(result);
    measured += result.leftOut.empty();
    for (const ImplementationResult &implementation : result.implementations)
      wrong += !implementation.isBaseline && !implementation.wrong.empty();
  }
  showProgress(cases.size(), cases.size(), "done\n");
  std::vector<HostResult> host;
  if (!options.isFiltered || std::regex_search("host", options.cases))
    host = measureHost(*machine, units, info.settings);
  printHost(host);
  if (!options.json.empty())
    writeJson(options.json, info, results, host);
  if (wrong || (!measured && host.empty())) {
    std::fprintf(stderr, "mlafix-bench: error: %s\n",
                 wrong ? "expected right results of every kernel, got the "
                         "wrong ones above"
                       : "expected a case that can be measured, got only ones "
                         "that were skipped");
    return 1;
  }
  return 0;
}

/// Executes the command line. Returns the exit status.
static int start(const Options &options) {
  if (options.help) {
    std::fputs(usage, stdout);
    return 0;
  }
  if (options.streamPtx) {
    std::fputs(streamModule().c_str(), stdout);
    return 0;
  }
  if (options.dependentStreamPtx) {
    std::fputs(dependentStreamModule().c_str(), stdout);
    return 0;
  }
  std::vector<Case> cases;
  for (Case &work : allCases())
    if (!options.isFiltered || std::regex_search(work.name, options.cases))
      cases.push_back(std::move(work));
  if (options.list || options.listUnits) {
    if (options.listUnits)
      listUnits(cases);
    for (const Case &work : cases)
      if (options.list)
        std::puts(work.name.c_str());
    return 0;
  }
  if (cases.empty() && !std::regex_search("host", options.cases))
    throw std::runtime_error("--case: expected to match a case that --list "
                             "shows, got no match");
  return run(options, cases);
}

int main(int argc, char **argv) {
  Options options;
  try {
    options = parseOptions(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "mlafix-bench: error: %s\n", error.what());
    return 2;
  }
  try {
    return mlafix::finishOutput("mlafix-bench", start(options));
  } catch (const std::bad_alloc &) {
    std::fputs("mlafix-bench: error: out of memory\n", stderr);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "mlafix-bench: error: %s\n", error.what());
  }
  return 1;
}
