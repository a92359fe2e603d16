//===- Options.cpp - The command line of mlafix-bench ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "cuda/Driver.h"

#include <stdexcept>

using namespace mlafix::bench;

const char *const mlafix::bench::usage =
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

static int64_t parseNumber(const std::string &option, const std::string &text,
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

/// Returns the member that a flag sets, or null if the option has a value.
static bool *findFlag(Options &options, const std::string &option) {
  return option == "--list"                   ? &options.list
         : option == "--list-units"           ? &options.listUnits
         : option == "--stream-ptx"           ? &options.streamPtx
         : option == "--dependent-stream-ptx" ? &options.dependentStreamPtx
         : option == "--help"                 ? &options.help
         : option == "--quick"                ? &options.quick
                                              : nullptr;
}

static void checkName(const std::string &name, const std::string &option) {
  for (const char *known : {"--device", "--units", "--case", "--rivals",
                            "--json", "--rounds", "--rotate"})
    if (name == known)
      return;
  throw std::runtime_error("expected an option that --help lists, got \"" +
                           option + "\"");
}

static std::regex parseCases(const std::string &text) {
  try {
    return std::regex(text);
  } catch (const std::regex_error &) {
    throw std::runtime_error("--case: expected a regular expression, got \"" +
                             text + "\"");
  }
}

Options mlafix::bench::parseOptions(int argc, const char *const *argv) {
  Options options;
  bool hasRounds = false;
  for (int i = 1; i < argc; ++i) {
    std::string option = argv[i];
    if (bool *flag = findFlag(options, option)) {
      *flag = true;
      continue;
    }
    size_t equals = option.find('=');
    std::string name = option.substr(0, equals);
    checkName(name, option);
    std::string value;
    if (equals != option.npos)
      value = option.substr(equals + 1);
    else if (i + 1 < argc)
      value = argv[++i];
    if (value.empty())
      throw std::runtime_error(name + ": expected a value, got none");
    if (name == "--device") {
      options.device = mlafix::tools::parseDevice(value);
    } else if (name == "--units") {
      options.units = value;
    } else if (name == "--rivals") {
      options.baselines = value;
    } else if (name == "--json") {
      options.json = value;
    } else if (name == "--rounds") {
      options.settings.rounds = int(parseNumber(name, value, 1, 10000));
      hasRounds = true;
    } else if (name == "--rotate") {
      options.rotate = parseNumber(name, value, 1, 1 << 20);
    } else {
      options.cases = parseCases(value);
      options.isFiltered = true;
    }
  }
  if (options.quick && !hasRounds)
    options.settings.rounds = 9;
  options.settings.replayMicros = options.quick ? 300 : 1000;
  options.settings.hasBaselines = !options.baselines.empty();
  return options;
}
