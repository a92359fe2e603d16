//===- opt_input_fuzzer.cpp - any text through the compiler's passes ------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A libFuzzer target: parses its input, verifies it and takes it through the
// whole pipeline, for a CPU or a GPU. Whatever the text, the compiler answers
// with the lowered module or with diagnostics.
//
//===----------------------------------------------------------------------===//

#include "mlafix/Compiler.h"

#include <cstdio>
#include <cstdlib>
#include <numeric>

using namespace mlafix;

static bool accepted = false;

/// True if the last input was a kernel: the driver goes on from such ones.
extern "C" bool mlafixFuzzAccepted() { return accepted; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view source(reinterpret_cast<const char *>(data), size);
  CompileOptions options;
  options.emit = Emit::MLIR;
  // The sum of the bytes chooses: half of the inputs, and the same half each
  // time.
  bool gpu = std::accumulate(data, data + size, 0u) % 2;
  options.targets = {gpu ? "sm_90" : "x86-64-v3"};
  // The names that the kernel library uses, as far as the input has them.
  Bindings names;
  for (auto [name, value] : {std::pair("H", "3"),
                             {"D", "24"},
                             {"T", "bf16"},
                             {"O", "f16"},
                             {"I", "i32"}})
    if (source.find('"' + std::string(name) + '"') != source.npos)
      names.push_back({name, value});
  options.specializations = {names};
  // And now and then an optional argument that most of it has.
  if (size % 4 < 2 && source.find("%out_lse") != source.npos)
    options.specializations.front().push_back(
        {"out_lse", size % 4 ? "absent" : "present"});
  CompileResult result = compile(source, "fuzz.mlir", options);
  accepted = result.ok;
  // A refusal without a reason is a bug too.
  if (!result.ok && result.diagnostics.find("error: ") == std::string::npos) {
    std::fprintf(stderr, "refused without an error: '%s'\n",
                 result.diagnostics.c_str());
    std::abort();
  }
  return 0;
}
