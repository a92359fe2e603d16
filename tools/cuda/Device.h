//===- Device.h - The value of the option --device --------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TOOLS_CUDA_DEVICE_H
#define MLAFIX_TOOLS_CUDA_DEVICE_H

#include "mlafix/runtime.h"

#include <string>

namespace mlafix::tools {

/// Parses the value of --device: "cpu", "cuda" (the first GPU) or "cuda:N".
/// Throws std::runtime_error for any other text.
mlafix_device parseDevice(const std::string &text);

} // namespace mlafix::tools

#endif // MLAFIX_TOOLS_CUDA_DEVICE_H
