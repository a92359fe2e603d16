//===- host.cpp - Calls a TVM-FFI library from C++ ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Usage: tvm-ffi-host merge-tvm-ffi.so
//
//===----------------------------------------------------------------------===//

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/module.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace {

/// Returns a CPU tensor of f32 that refers to `data`.
template <size_t Rank> DLTensor tensorOf(float *data, int64_t (&shape)[Rank]) {
  return {data,
          {kDLCPU, 0},
          static_cast<int32_t>(Rank),
          {kDLFloat, 32, 1},
          shape,
          nullptr,
          0};
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  float prefix[48], suffix[48], out[48] = {}, lses[6] = {};
  std::fill(std::begin(prefix), std::end(prefix), 2.0f);
  std::fill(std::begin(suffix), std::end(suffix), 4.0f);
  int64_t rows[] = {3, 2, 8}, heads[] = {2, 3};
  DLTensor p = tensorOf(prefix, rows), s = tensorOf(suffix, rows),
           o = tensorOf(out, rows), l = tensorOf(lses, heads);

  auto module = tvm::ffi::Module::LoadFromFile(argv[1]);
  auto merge = module->GetFunction("merge_attn_states").value();
  merge(&o, nullptr, &p, &l, &s, &l, 2);
  // Checks an element of the first token, and one of the last token, which has
  // no prefix.
  if (out[0] != 3.0f || out[47] != 4.0f) {
    std::printf("expected 3 and 4, got %g and %g\n", out[0], out[47]);
    return 1;
  }
  try {
    merge(&o, nullptr, &p, &l, &s, &l, 4);
  } catch (const tvm::ffi::Error &error) {
    std::printf("%s: %s\n", error.kind().c_str(), error.message().c_str());
    return error.kind() == "ValueError" ? 0 : 1;
  }
  std::printf("expected an error for a threshold past the rows, got none\n");
  return 1;
}
