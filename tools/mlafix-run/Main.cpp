//===- Main.cpp - Run a kernel on .npy files ------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Main.h"

#include "DeviceMemory.h"
#include "Options.h"
#include "Run.h"
#include "Source.h"
#include "StandardOutput.h"

#include <cstdio>
#include <stdexcept>

using namespace mlafix;
using namespace mlafix::run;

static bool isSource(const std::string &file) {
  return file.size() > 5 && file.compare(file.size() - 5, 5, ".mlir") == 0;
}

static Unit openUnit(const Options &options) {
  if (!isSource(options.file))
    return Unit::load(options.file);
  std::string bytes, error;
  if (!compileSource(options.file, options.bindings, targetOf(options.device),
                     bytes, error))
    throw std::runtime_error(error);
  return Unit::load(bytes.data(), bytes.size());
}

/// Interprets the rows of the launch. Prints what they print, and their faults.
/// Returns true if there is no fault.
static bool follow(const Options &options, const std::string &kernel,
                   const std::vector<LaunchValue> &values) {
  FollowedRows followed;
  std::string error;
  if (!followRows(options.file, kernel, options.bindings, values, followed,
                  error))
    throw std::runtime_error(error);
  for (const std::string &text : followed.printed)
    std::printf("%s\n", text.c_str());
  for (const std::string &text : followed.faults)
    std::printf("%s\n", text.c_str());
  return followed.faults.empty();
}

/// Executes the command line. Returns true on success.
static bool start(const Options &options) {
  if (options.help) {
    std::fputs(usage, stdout);
    return true;
  }
  Unit unit = openUnit(options);
  Follow followSource;
  if (isSource(options.file))
    followSource = [&](const std::string &kernel,
                       const std::vector<LaunchValue> &values) {
      return follow(options, kernel, values);
    };
  if (!options.list)
    return runKernel(unit, options, followSource);
  listKernels(unit);
  return true;
}

int mlafix_run_main(int argc, char **argv) {
  try {
    int status = start(parseOptions(argc, argv)) ? 0 : 1;
    return finishOutput("mlafix-run", status);
  } catch (const std::bad_alloc &) {
    std::fputs("mlafix-run: error: out of memory\n", stderr);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "mlafix-run: error: %s\n", error.what());
  }
  return 1;
}
