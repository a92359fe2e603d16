//===- DeepCheck.cpp - Checks pointers with the driver --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Bytes.h"
#include "Status.h"
#include "Unit.h"

#include <cinttypes>

using namespace mlafix::runtime;

namespace {

/// The driver's answer about an address. The memory type and the range are 0 if
/// the driver does not know the memory.
struct PointerAttributes {
  unsigned memoryType = 0;
  int isManaged = 0;
  int ordinal = -1;
  CUdeviceptr rangeStart = 0;
  size_t rangeSize = 0;
};

bool queryPointer(const CudaDriver &driver, uint64_t address,
                  PointerAttributes &facts) {
  int attributes[] = {cuda::pointerMemoryType, cuda::pointerIsManaged,
                      cuda::pointerDeviceOrdinal, cuda::pointerRangeStart,
                      cuda::pointerRangeSize};
  void *values[] = {&facts.memoryType, &facts.isManaged, &facts.ordinal,
                    &facts.rangeStart, &facts.rangeSize};
  return driver.cuPointerGetAttributes(5, attributes, values, address) ==
         cuda::success;
}

mlafix_status checkRange(const ArgDesc &arg, const ByteLayout &tensor,
                         const PointerAttributes &facts) {
  if (facts.rangeSize == 0)
    return MLAFIX_OK; // the driver knows no allocation here
  uint64_t before = tensor.base - facts.rangeStart;
  if (tensor.base >= facts.rangeStart && before <= facts.rangeSize &&
      tensor.extent <= facts.rangeSize - before)
    return MLAFIX_OK;
  return WRONG(
      arg,
      "expected a tensor within its allocation of %zu bytes at 0x%llx, "
      "got one of %" PRIu64 " bytes at 0x%" PRIx64,
      facts.rangeSize, facts.rangeStart, tensor.extent, tensor.base);
}

mlafix_status checkOnCuda(const CudaDriver &driver, const Call &call,
                          const ArgDesc &arg, const CallArg &given) {
  DeviceName device(call.device);
  // Ask about the data pointer. It lies inside the tensor even if strides are
  // negative.
  PointerAttributes facts;
  auto address = reinterpret_cast<uintptr_t>(given.data);
  if (!queryPointer(driver, address, facts) || facts.memoryType == 0)
    return WRONG(
        arg,
        "expected memory of %s, got %p, which the CUDA driver does not "
        "know",
        device.text, given.data);
  // Accept managed memory and registered host memory, which every device can
  // access.
  if (facts.memoryType == cuda::memoryTypeDevice && !facts.isManaged &&
      facts.ordinal != call.device.ordinal)
    return WRONG(arg, "expected %s, got %s", device.text,
                 DeviceName({MLAFIX_CUDA, facts.ordinal}).text);
  ByteLayout layout;
  if (!makeByteLayout(arg, given, layout))
    layout = ByteLayout(); // leads out of the address space: in no allocation
  return checkRange(arg, layout, facts);
}

mlafix_status checkOnCpu(const CudaDriver &driver, const ArgDesc &arg,
                         const CallArg &given) {
  PointerAttributes facts;
  auto address = reinterpret_cast<uintptr_t>(given.data);
  if (!queryPointer(driver, address, facts))
    return MLAFIX_OK; // not the driver's memory, or no driver in use
  if (facts.memoryType == cuda::memoryTypeDevice && !facts.isManaged)
    return WRONG(arg,
                 "expected memory of the cpu, got %p, which is memory of "
                 "cuda:%d",
                 given.data, facts.ordinal);
  return MLAFIX_OK;
}

} // namespace

mlafix_status mlafix::runtime::checkMemory(const Call &call) {
  const CudaDriver *driver = nullptr;
  bool onCuda = call.device.type == MLAFIX_CUDA;
  if (onCuda)
    MLAFIX_TRY(getCudaDriver(driver));
  else if (!(driver = getCudaDriverIfLoaded()))
    return MLAFIX_OK;
  const KernelDesc &desc = call.desc();
  for (uint32_t i = 0; i < desc.args.size(); ++i) {
    const ArgDesc &arg = desc.args[i];
    const CallArg &given = call.args[i];
    // Skip peers: their memory belongs to other devices.
    if (!arg.isTensor() || arg.isPeers() || !given.present || given.empty)
      continue;
    CallArg one = given;
    // The tensors of a list differ only in their addresses.
    for (int64_t k = 0, count = arg.isMany() ? given.sizes[0] : 1; k < count;
         ++k) {
      if (arg.isMany())
        one.data = call.tables[given.table][k];
      MLAFIX_TRY(onCuda ? checkOnCuda(*driver, call, arg, one)
                        : checkOnCpu(*driver, arg, one));
    }
  }
  return MLAFIX_OK;
}
