//===- mlafix-run.cpp - Run a kernel on .npy files ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "DeviceMemory.h"
#include "Options.h"
#include "Run.h"
#include "Source.h"

#include <cstdio>
#include <stdexcept>

using namespace mlafix;
using namespace mlafix::run;

static Unit openUnit(const Options &options) {
  const std::string &file = options.file;
  bool isSource =
      file.size() > 5 && file.compare(file.size() - 5, 5, ".mlir") == 0;
  if (!isSource)
    return Unit::load(file);
  std::string bytes, error;
  if (!compileSource(file, options.bindings, targetOf(options.device), bytes,
                     error))
    throw std::runtime_error(error);
  return Unit::load(bytes.data(), bytes.size());
}

int main(int argc, char **argv) {
  try {
    Options options = parseOptions(argc, argv);
    if (options.help) {
      std::fputs(usage, stdout);
      return 0;
    }
    Unit unit = openUnit(options);
    if (!options.list)
      return runKernel(unit, options) ? 0 : 1;
    listKernels(unit);
    return 0;
  } catch (const std::bad_alloc &) {
    std::fputs("mlafix-run: error: out of memory\n", stderr);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "mlafix-run: error: %s\n", error.what());
  }
  return 1;
}
