//===- opt_input_fuzzer.cpp - Compiles arbitrary text ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A libFuzzer target. It parses its input, verifies it and runs the whole
// pipeline, for a CPU or a GPU. For any text, the compiler must return the
// lowered module or diagnostics.
//
//===----------------------------------------------------------------------===//

#include "mlafix/Compiler.h"

#include <cstdio>
#include <cstdlib>
#include <numeric>

using namespace mlafix;

static bool accepted = false;

/// Returns true if the last input was a kernel. The driver changes such inputs
/// further.
extern "C" bool mlafixFuzzAccepted() { return accepted; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view source(reinterpret_cast<const char *>(data), size);
  CompileOptions options;
  options.emit = Emit::MLIR;
  // The sum of the bytes selects the target, so an input always gets the same
  // one.
  bool gpu = std::accumulate(data, data + size, 0u) % 2;
  options.targets = {gpu ? "sm_90" : "x86-64-v3"};
  // Bindings for the names of the kernel library that occur in the input.
  Bindings names;
  for (auto [name, value] : {std::pair("H", "3"),
                             {"D", "24"},
                             {"T", "bf16"},
                             {"O", "f16"},
                             {"I", "i32"}})
    if (source.find('"' + std::string(name) + '"') != source.npos)
      names.push_back({name, value});
  options.specializations = {names};
  // Sometimes sets an optional argument that most library kernels have.
  if (size % 4 < 2 && source.find("%out_lse") != source.npos)
    options.specializations.front().push_back(
        {"out_lse", size % 4 ? "absent" : "present"});
  CompileResult result = compile(source, "fuzz.mlir", options);
  accepted = result.ok;
  // A refusal without an error message is a bug, too.
  if (!result.ok && result.diagnostics.find("error: ") == std::string::npos) {
    std::fprintf(stderr, "refused without an error: '%s'\n",
                 result.diagnostics.c_str());
    std::abort();
  }
  return 0;
}
