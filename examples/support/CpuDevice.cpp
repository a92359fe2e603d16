//===- CpuDevice.cpp - host memory behind the Device interface ------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Device.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

using namespace support;

namespace {

class CpuDevice : public Device {
public:
  mlafix_device handle() const override { return {MLAFIX_CPU, 0}; }
  std::string name() const override { return "cpu"; }

  void *allocate(size_t Bytes) override {
    void *Data = nullptr;
    // The size is not rounded up, so that a sanitizer detects an access one
    // byte past the end.
    if (posix_memalign(&Data, 256, Bytes ? Bytes : 1))
      throw std::bad_alloc();
    return Data;
  }
  void free(void *Data) noexcept override { std::free(Data); }
  void upload(void *To, const void *From, size_t Bytes) override {
    std::memcpy(To, From, Bytes);
  }
  void download(void *To, const void *From, size_t Bytes) override {
    std::memcpy(To, From, Bytes);
  }
  void copyOnDevice(void *To, const void *From, size_t Bytes) override {
    std::memcpy(To, From, Bytes);
  }
  void fill(void *To, unsigned char Byte, size_t Bytes) override {
    std::memset(To, Byte, Bytes);
  }
  size_t freeBytes() const override { return size_t(1) << 30; }
  void *stream() const override { return nullptr; }
  void synchronize() override {}
  std::unique_ptr<Graph> capture(const std::function<void()> &) override {
    throw std::runtime_error("expected a CUDA device for graph capture, got "
                             "the CPU");
  }
};

} // namespace

std::unique_ptr<Device> support::openDevice(const std::string &Name) {
  if (Name == "cpu")
    return std::make_unique<CpuDevice>();
  const std::string Prefix = "cuda:";
  if (Name.compare(0, Prefix.size(), Prefix) == 0 &&
      Name.size() > Prefix.size() &&
      Name.find_first_not_of("0123456789", Prefix.size()) == std::string::npos)
    return openCudaDevice(std::atoi(Name.c_str() + Prefix.size()));
  throw std::runtime_error("--device: expected 'cpu' or 'cuda:N', got '" +
                           Name + "'");
}
