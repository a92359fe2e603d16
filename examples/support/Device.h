//===- Device.h - memory and streams of a CPU or a GPU ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Support for host programs that run on the CPU or on a GPU. The examples and
// the conformance tests use this header and the runtime. A Device allocates
// and copies memory and, on CUDA, captures graphs. libcuda is opened when it is
// first needed, so building needs no CUDA toolkit.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_EXAMPLES_SUPPORT_DEVICE_H
#define MLAFIX_EXAMPLES_SUPPORT_DEVICE_H

#include "mlafix/runtime.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace support {

/// A captured sequence of launches that can be replayed.
class Graph {
public:
  virtual ~Graph() = default;
  /// Runs the launches and waits until they are complete.
  virtual void replay() = 0;
};

/// The device on which kernels run. Every failure throws std::runtime_error.
class Device {
public:
  virtual ~Device() = default;
  virtual mlafix_device handle() const = 0;
  virtual std::string name() const = 0;
  bool isCuda() const { return handle().type == MLAFIX_CUDA; }

  /// Returns memory that is aligned to at least 256 bytes. Never returns null,
  /// even for 0 bytes.
  virtual void *allocate(size_t Bytes) = 0;
  virtual void free(void *Data) noexcept = 0;
  virtual void upload(void *To, const void *From, size_t Bytes) = 0;
  virtual void download(void *To, const void *From, size_t Bytes) = 0;
  virtual void copyOnDevice(void *To, const void *From, size_t Bytes) = 0;
  virtual void fill(void *To, unsigned char Byte, size_t Bytes) = 0;
  /// Returns the number of bytes that can still be allocated.
  virtual size_t freeBytes() const = 0;

  /// Returns the stream on which to launch; null on the CPU.
  virtual void *stream() const = 0;
  virtual void synchronize() = 0;
  /// Captures the work that \p Launches puts on stream(). Only works on CUDA.
  virtual std::unique_ptr<Graph>
  capture(const std::function<void()> &Launches) = 0;
};

/// Opens the device "cpu", or one such as "cuda:0". Throws an error that says
/// what is wrong with the name or the device.
std::unique_ptr<Device> openDevice(const std::string &Name);

/// Opens a CUDA device for openDevice (in CudaDevice.cpp).
std::unique_ptr<Device> openCudaDevice(int Ordinal);

/// Memory of a device, which is freed when this object is destroyed.
class Memory {
public:
  Memory() = default;
  Memory(Device &On, size_t Bytes) : On(&On), Data(On.allocate(Bytes)) {}
  Memory(Memory &&Other) noexcept { *this = std::move(Other); }
  Memory &operator=(Memory &&Other) noexcept {
    std::swap(On, Other.On);
    std::swap(Data, Other.Data);
    return *this;
  }
  ~Memory() {
    if (Data)
      On->free(Data);
  }
  char *data() const { return static_cast<char *>(Data); }

private:
  Device *On = nullptr;
  void *Data = nullptr;
};

} // namespace support

#endif // MLAFIX_EXAMPLES_SUPPORT_DEVICE_H
