//===- DeviceMemory.h - Memory on the device a kernel runs on ---*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUN_DEVICEMEMORY_H
#define MLAFIX_RUN_DEVICEMEMORY_H

#include "mlafix/runtime.h"

#include <cstddef>
#include <string>

namespace mlafix::run {

/// A copy of host bytes on a GPU. On the CPU, the host bytes themselves, which
/// are not copied.
class DeviceMemory {
public:
  /// Copies `bytes` to the device. `bytes` must outlive this object. Throws
  /// mlafix::Error.
  DeviceMemory(mlafix_device device, void *bytes, size_t size);
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;
  ~DeviceMemory();

  void *data() const { return address; }
  /// Waits for the device and copies the bytes back to the host.
  void download();

private:
  mlafix_device device;
  void *host;
  size_t size;
  void *address;
};

/// Returns the target of a device, such as "sm_90", or "cpu" for the CPU.
/// Throws mlafix::Error.
std::string targetOf(mlafix_device device);

} // namespace mlafix::run

#endif // MLAFIX_RUN_DEVICEMEMORY_H
