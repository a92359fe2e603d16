//===- Unit.h - A loaded unit and its code on devices -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The objects behind the opaque types of runtime.h.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_UNIT_H
#define MLAFIX_RUNTIME_UNIT_H

#include "CallMemo.h"
#include "Container.h"
#include "CudaDriver.h"
#include "UnitModel.h"

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>

namespace mlafix::runtime {

/// Slot 0 is the CPU, slot 1 + n is CUDA device n.
constexpr size_t numDeviceSlots = 1 + 64;

using CpuEntry = void (*)(const uint64_t *params, int64_t begin, int64_t end);

/// CPU code in executable memory of this process.
class CodeMapping {
public:
  CodeMapping() = default;
  CodeMapping(const CodeMapping &) = delete;
  CodeMapping &operator=(const CodeMapping &) = delete;
  ~CodeMapping();

  /// Copies the image to fresh pages and makes them executable.
  mlafix_status map(const uint8_t *image, size_t size);
  void *at(uint64_t offset) const { return static_cast<char *>(base) + offset; }

private:
  void *base = nullptr;
  size_t bytes = 0;
};

/// The code of one kernel on one device. Immutable once published.
struct PreparedKernel {
  const TargetCode *code = nullptr;
  const Image *image = nullptr;
  /// One per code version: a CUkernel, or a CpuEntry.
  std::vector<void *> entries;
  int64_t multiprocessors = 1;
  int64_t bandwidth = 0; ///< memory bandwidth in bytes per second; 0: unknown
  /// Launches see kernels as const; their memo changes.
  mutable CallMemo memo;
};

} // namespace mlafix::runtime

struct mlafix_kernel {
  mlafix_unit *unit = nullptr;
  const mlafix::runtime::KernelDesc *desc = nullptr;
  /// Set once prepared; the unit owns the objects.
  std::array<std::atomic<const mlafix::runtime::PreparedKernel *>,
             mlafix::runtime::numDeviceSlots>
      prepared{};
};

struct mlafix_unit {
  std::vector<uint8_t> bytes;
  mlafix::runtime::UnitDesc desc;
  std::vector<mlafix_kernel> kernels;

  /// Protects everything below; held while code is loaded.
  std::mutex mutex;
  std::vector<std::unique_ptr<mlafix::runtime::PreparedKernel>> preparedOwned;
  /// Loaded libraries by device slot and image offset; kernels may share
  /// images.
  std::map<std::pair<size_t, uint64_t>, mlafix::runtime::CUlibrary> libraries;
  std::map<uint64_t, mlafix::runtime::CodeMapping> mappings;

  explicit mlafix_unit(size_t numKernels) : kernels(numKernels) {}
};

namespace mlafix::runtime {

/// Common part of the load functions; `bytes` is the unit's own copy.
mlafix_status loadUnit(std::vector<uint8_t> bytes,
                       const mlafix_load_options *options,
                       ChecksumPolicy checksum, mlafix_unit *&unit);

/// Checks a device's fields and finds its slot.
mlafix_status deviceSlot(mlafix_device device, size_t &slot);

/// The kernel's code on `device` if it is prepared, else null.
const PreparedKernel *preparedKernel(const mlafix_kernel &kernel,
                                     mlafix_device device);

/// The kernel's code on `device`, prepared if it is not yet.
mlafix_status prepareKernel(const mlafix_kernel &kernel, mlafix_device device,
                            const PreparedKernel *&prepared);

/// The CPU code of `kernel` that this machine runs, or NO_IMAGE.
mlafix_status chooseCpuCode(const KernelDesc &kernel, const TargetCode *&code);

/// The highest level of CPU code (UnitModel.h) that the processor and the
/// operating system (which saves the wide registers) support; -1 if there is no
/// target for the architecture.
int machineLevel();

/// The architecture's name in mlafix/Targets.def.
#if defined(__x86_64__)
constexpr char machineArchitecture[] = "x86_64";
#elif defined(__aarch64__) && defined(__AARCH64EL__)
constexpr char machineArchitecture[] = "aarch64";
#else
constexpr char machineArchitecture[] = "";
#endif

/// Name of the best CPU target of this machine, or null if there is none.
const char *cpuTargetName();

/// prepareOnCpu() and prepareOnCuda() require the unit's mutex.
mlafix_status prepareOnCpu(mlafix_unit &unit, const KernelDesc &kernel,
                           PreparedKernel &prepared);
mlafix_status prepareOnCuda(mlafix_unit &unit, const KernelDesc &kernel,
                            int32_t ordinal, PreparedKernel &prepared);

/// "cuda:1" or "cpu", for messages.
struct DeviceName {
  explicit DeviceName(mlafix_device device);
  char text[24];
};

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_UNIT_H
