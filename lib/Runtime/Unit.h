//===- Unit.h - A loaded unit and its code on devices -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Defines the structs behind the opaque types of runtime.h.
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

/// The number of device slots. Slot 0 is the CPU, and slot 1 + n is CUDA device
/// n.
constexpr size_t numDeviceSlots = 1 + 64;

using CpuEntry = void (*)(const uint64_t *params, int64_t begin, int64_t end);

/// CPU code of one image in executable memory of this process.
class CodeMapping {
public:
  CodeMapping() = default;
  CodeMapping(const CodeMapping &) = delete;
  CodeMapping &operator=(const CodeMapping &) = delete;
  ~CodeMapping();

  /// Copies the image to new pages and makes them executable.
  mlafix_status map(const uint8_t *image, size_t size);
  void *at(uint64_t offset) const { return static_cast<char *>(base) + offset; }

private:
  void *base = nullptr;
  size_t bytes = 0;
};

/// The code of one kernel on one device. It does not change once other threads
/// see it, except for `memo`.
struct PreparedKernel {
  const TargetCode *code = nullptr;
  const Image *image = nullptr;
  /// The entry point of each code version: a CUkernel, or a CpuEntry.
  std::vector<void *> entries;
  int64_t multiprocessors = 1;
  int64_t bandwidth = 0; ///< memory bandwidth in bytes/s; 0: unknown
  /// Mutable, since a launch gets a const PreparedKernel and updates its memo.
  mutable CallMemo memo;
};

} // namespace mlafix::runtime

struct mlafix_kernel {
  mlafix_unit *unit = nullptr;
  const mlafix::runtime::KernelDesc *desc = nullptr;
  /// The kernel's code for each device slot, or null if it is not prepared. The
  /// unit owns the objects.
  std::array<std::atomic<const mlafix::runtime::PreparedKernel *>,
             mlafix::runtime::numDeviceSlots>
      prepared{};
};

struct mlafix_unit {
  std::vector<uint8_t> bytes;
  mlafix::runtime::UnitDesc desc;
  std::vector<mlafix_kernel> kernels;

  /// Protects all members below. It is held while code is loaded.
  std::mutex mutex;
  std::vector<std::unique_ptr<mlafix::runtime::PreparedKernel>> preparedOwned;
  /// The loaded libraries, by device slot and image offset. Kernels may share
  /// an image.
  std::map<std::pair<size_t, uint64_t>, mlafix::runtime::CUlibrary> libraries;
  std::map<uint64_t, mlafix::runtime::CodeMapping> mappings;

  explicit mlafix_unit(size_t numKernels) : kernels(numKernels) {}
};

namespace mlafix::runtime {

/// Makes a unit from `bytes`. All load functions call it.
mlafix_status loadUnit(std::vector<uint8_t> bytes,
                       const mlafix_load_options *options,
                       ChecksumPolicy checksum, mlafix_unit *&unit);

/// Checks a device's fields and sets `slot` to its device slot.
mlafix_status deviceSlot(mlafix_device device, size_t &slot);

/// Returns the kernel's code on `device`, or null if it is not prepared.
const PreparedKernel *preparedKernel(const mlafix_kernel &kernel,
                                     mlafix_device device);

/// Sets `prepared` to the kernel's code on `device`, and prepares it if needed.
mlafix_status prepareKernel(const mlafix_kernel &kernel, mlafix_device device,
                            const PreparedKernel *&prepared);

/// Sets `code` to the best CPU code of `kernel` that this machine supports and
/// MLAFIX_CPU_TARGET allows. Error: NO_IMAGE.
mlafix_status chooseCpuCode(const KernelDesc &kernel, const TargetCode *&code);

/// Returns the highest level of CPU code (Targets.def) that the processor and
/// the operating system support. (The operating system must save the wide
/// registers.) Returns -1 if there is no CPU target for this architecture.
int machineLevel();

/// The name of this machine's architecture in mlafix/Targets.def, or "".
#if defined(__x86_64__)
constexpr char machineArchitecture[] = "x86_64";
#elif defined(__aarch64__) && defined(__AARCH64EL__)
constexpr char machineArchitecture[] = "aarch64";
#else
constexpr char machineArchitecture[] = "";
#endif

/// Returns the name of the best CPU target that this machine supports and
/// MLAFIX_CPU_TARGET allows, or null if there is none.
const char *cpuTargetName();

/// Loads the kernel's code on a device and fills in `prepared`. The caller must
/// hold the unit's mutex.
mlafix_status prepareOnCpu(mlafix_unit &unit, const KernelDesc &kernel,
                           PreparedKernel &prepared);
mlafix_status prepareOnCuda(mlafix_unit &unit, const KernelDesc &kernel,
                            int32_t ordinal, PreparedKernel &prepared);

/// Formats a device for a message: "cuda:1" or "cpu".
struct DeviceName {
  explicit DeviceName(mlafix_device device);
  char text[24];
};

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_UNIT_H
