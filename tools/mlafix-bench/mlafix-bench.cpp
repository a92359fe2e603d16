//===- mlafix-bench.cpp - Kernels against the machine's stream roof -------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Report.h"
#include "StandardOutput.h"
#include "StreamPtx.h"
#include "cuda/Driver.h"

#include <cstdio>
#include <map>
#include <regex>
#include <set>
#include <stdexcept>
#include <unistd.h>

using namespace mlafix::bench;

namespace {

struct Options {
  std::string units; ///< "": bench-units beside the program's folder
  mlafix_device device = {MLAFIX_CPU, 0};
  std::regex cases;
  bool isFiltered = false; ///< true if --case was given
  std::string baselines, json;
  int64_t rotate = -1; ///< in MiB; -1: three times the cache size
  int rounds = 0;      ///< 0: --rounds was not given
  bool list = false, listUnits = false;
  bool streamPtx = false, dependentStreamPtx = false;
  bool help = false, quick = false;

  Settings settings() const {
    Settings settings;
    settings.rounds = rounds ? rounds : quick ? 9 : 31;
    settings.replayMicros = quick ? 300 : 1000;
    settings.hasBaselines = !baselines.empty();
    return settings;
  }
};

const char *const usage =
    R"(mlafix-bench [options]   times the kernels against the machine's own stream roof

  --device DEVICE   cpu (default) or cuda:N
  --units DIR       folder of the compiled kernels, one KERNEL.mlafix each
                    (default: bench-units beside the folder of mlafix-bench)
  --case REGEX      only cases whose name holds a match of REGEX
  --rivals FILE     cubin, fatbin or PTX of baselines to measure in the same run
                    (benchmarks/rivals.cu is ours, benchmarks/README.md says how
                    to bring others); cuda:N only
  --json FILE       write the results (docs/Benchmark.md describes them)
  --rounds N        replays of each implementation that count (default 31)
  --rotate MIB      memory that the buffers of a case cover at least, so that no
                    cache holds them (default: three times the last cache)
  --quick           fewer and shorter replays
  --list            list the cases and measure nothing
  --list-units      list the kernels and specialisations that the cases use
  --stream-ptx      print the stream kernels that make a GPU's roof
  --dependent-stream-ptx
                    print those of the roof with dependent launch
  --help            this text

Exits with 1 where a kernel of ours gave a wrong result or nothing could be
measured, with 2 where the command line is wrong.
)";

int64_t parseNumber(const std::string &option, const std::string &text,
                    int64_t least, int64_t most) {
  bool isNumber = !text.empty() && text.size() <= 9 &&
                  text.find_first_not_of("0123456789") == text.npos;
  int64_t value = isNumber ? std::stoll(text) : -1;
  if (value < least || value > most)
    throw std::runtime_error(option + ": expected a number from " +
                             std::to_string(least) + " to " +
                             std::to_string(most) + ", got \"" + text + "\"");
  return value;
}

std::regex parseCases(const std::string &text) {
  try {
    return std::regex(text);
  } catch (const std::regex_error &) {
    throw std::runtime_error("--case: expected a regular expression, got \"" +
                             text + "\"");
  }
}

/// Parses the command line. Throws std::runtime_error for invalid options.
Options parseOptions(int argc, const char *const *argv) {
  Options options;
  const std::map<std::string, bool *> flags = {
      {"--list", &options.list},
      {"--list-units", &options.listUnits},
      {"--stream-ptx", &options.streamPtx},
      {"--dependent-stream-ptx", &options.dependentStreamPtx},
      {"--help", &options.help},
      {"--quick", &options.quick}};
  const std::map<std::string, std::string *> texts = {
      {"--device", nullptr},     {"--units", &options.units},
      {"--case", nullptr},       {"--rivals", &options.baselines},
      {"--json", &options.json}, {"--rounds", nullptr},
      {"--rotate", nullptr}};
  for (int i = 1; i < argc; ++i) {
    std::string option = argv[i];
    if (auto flag = flags.find(option); flag != flags.end()) {
      *flag->second = true;
      continue;
    }
    size_t equals = option.find('=');
    std::string name = option.substr(0, equals), value;
    auto text = texts.find(name);
    if (text == texts.end())
      throw std::runtime_error("expected an option that --help lists, got \"" +
                               option + "\"");
    if (equals != option.npos)
      value = option.substr(equals + 1);
    else if (i + 1 < argc)
      value = argv[++i];
    if (value.empty())
      throw std::runtime_error(name + ": expected a value, got none");
    if (text->second) {
      *text->second = value;
    } else if (name == "--device") {
      options.device = mlafix::tools::parseDevice(value);
    } else if (name == "--rounds") {
      options.rounds = int(parseNumber(name, value, 1, 10000));
    } else if (name == "--rotate") {
      options.rotate = parseNumber(name, value, 1, 1 << 20);
    } else {
      options.cases = parseCases(value);
      options.isFiltered = true;
    }
  }
  return options;
}

} // namespace

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
  info.settings = options.settings();
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
