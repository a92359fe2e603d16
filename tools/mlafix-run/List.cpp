//===- List.cpp - Kernels and their signatures ----------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Run.h"

#include <cstdio>

using namespace mlafix;
using namespace mlafix::run;

namespace {

/// Describes a tensor's dims by their names and fixed sizes: "[n, H=128,
/// D=128]".
std::string describeShape(const mlafix_arg_info &arg) {
  std::string text = "[";
  for (uint32_t i = 0; i < arg.ndim; ++i) {
    std::string name = arg.dims[i];
    std::string size = arg.shape[i] < 0 ? "" : std::to_string(arg.shape[i]);
    text += i ? ", " : "";
    text += name.empty() ? (size.empty() ? "?" : size)
                         : name + (size.empty() ? "" : "=" + size);
  }
  return text + "]";
}

std::string describeStrides(const mlafix_arg_info &arg) {
  std::string text = "[";
  for (uint32_t i = 0; i < arg.ndim; ++i)
    text += (i ? ", " : "") +
            (arg.strides[i] < 0 ? "?" : std::to_string(arg.strides[i]));
  return text + "]";
}

std::string describeArg(const mlafix_arg_info &arg) {
  static const char *const access[] = {"", "read", "write", "update", "absent"};
  std::string text = std::string(arg.name) + ": ";
  bool isPeers = arg.kind == MLAFIX_ARG_PEERS;
  bool isList = arg.kind == MLAFIX_ARG_LIST;
  if (arg.kind != MLAFIX_ARG_TENSOR && !isPeers && !isList) {
    text += arg.dtype_name;
    return arg.at_most ? text + ", from 0 to " + arg.at_most : text;
  }
  text += std::string(isPeers  ? "of each rank, "
                      : isList ? "a list, each "
                               : "") +
          access[arg.access] + " " + arg.dtype_name + describeShape(arg);
  if (arg.ndim > 0)
    text += ", strides " + describeStrides(arg);
  return arg.optional && arg.access != MLAFIX_ABSENT ? text + ", optional"
                                                     : text;
}

} // namespace

void mlafix::run::listKernels(const Unit &unit) {
  for (const Kernel &kernel : unit.kernels()) {
    std::string title = kernel.name();
    if (*kernel.bindings())
      title += std::string(" [") + kernel.bindings() + "]";
    title += "  for";
    for (uint32_t i = 0; i < mlafix_kernel_num_targets(kernel.get()); ++i)
      title +=
          std::string(i ? ", " : " ") + mlafix_kernel_target(kernel.get(), i);
    std::printf("%s\n", title.c_str());
    for (uint32_t i = 0; i < kernel.numArgs(); ++i)
      std::printf("  %s\n", describeArg(kernel.arg(i)).c_str());
    for (uint32_t i = 0; i < mlafix_kernel_num_aliases(kernel.get()); ++i) {
      uint32_t a = 0, b = 0;
      check(mlafix_kernel_alias(kernel.get(), i, &a, &b));
      std::printf("  %s may be %s\n", kernel.arg(a).name, kernel.arg(b).name);
    }
    for (const mlafix_proof_info &proof : kernel.proofs())
      if (std::string(proof.verdict) != "proved")
        std::printf("  %s: %s: %s%s%s\n", kernel.arg(proof.arg).name,
                    proof.question, proof.verdict, *proof.reason ? ": " : "",
                    proof.reason);
  }
}
