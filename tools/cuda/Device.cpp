//===- Device.cpp - The value of the option --device ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "cuda/Device.h"

#include <stdexcept>

mlafix_device mlafix::tools::parseDevice(const std::string &text) {
  if (text == "cpu")
    return {MLAFIX_CPU, 0};
  if (text == "cuda")
    return {MLAFIX_CUDA, 0};
  std::string digits = text.compare(0, 5, "cuda:") == 0 ? text.substr(5) : "";
  if (digits.empty() || digits.size() > 3 ||
      digits.find_first_not_of("0123456789") != digits.npos)
    throw std::runtime_error("--device: expected cpu or cuda:N, got \"" + text +
                             "\"");
  return {MLAFIX_CUDA, std::stoi(digits)};
}
