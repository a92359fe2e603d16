//===- Device.h - memory and streams of a CPU or a GPU ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Support for a host program that runs on the CPU or on a GPU, beside the
// runtime; the examples and the conformance tests use it. A Device allocates,
// copies and, on CUDA, captures graphs; libcuda is opened when first needed, so
// nothing of CUDA is needed to build.
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

/// A captured sequence of launches, to be replayed.
class Graph {
public:
  virtual ~Graph() = default;
  /// Runs it and waits until it is done.
  virtual void replay() = 0;
};

/// Where the kernels run. Every failure throws std::runtime_error.
class Device {
public:
  virtual ~Device() = default;
  virtual mlafix_device handle() const = 0;
  virtual std::string name() const = 0;
  bool isCuda() const { return handle().type == MLAFIX_CUDA; }

  /// At least 256-byte aligned; never null, even for no bytes.
  virtual void *allocate(size_t Bytes) = 0;
  virtual void free(void *Data) noexcept = 0;
  virtual void upload(void *To, const void *From, size_t Bytes) = 0;
  virtual void download(void *To, const void *From, size_t Bytes) = 0;
  virtual void copyOnDevice(void *To, const void *From, size_t Bytes) = 0;
  virtual void fill(void *To, unsigned char Byte, size_t Bytes) = 0;
  /// Bytes that can still be allocated.
  virtual size_t freeBytes() const = 0;

  /// The stream to launch on: null on the CPU.
  virtual void *stream() const = 0;
  virtual void synchronize() = 0;
  /// Captures what \p Launches puts on stream(). CUDA only.
  virtual std::unique_ptr<Graph>
  capture(const std::function<void()> &Launches) = 0;
};

/// "cpu" or "cuda:0". Throws with a sentence that says what is wrong.
std::unique_ptr<Device> openDevice(const std::string &Name);

/// The CUDA half of openDevice (CudaDevice.cpp).
std::unique_ptr<Device> openCudaDevice(int Ordinal);

/// Memory that is given back with its owner.
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
