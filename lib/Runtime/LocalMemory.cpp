//===- LocalMemory.cpp - Whose memory a launch reads ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "LocalMemory.h"

#include "CudaCode.h"
#include "Unit.h"

#include <array>
#include <atomic>
#include <ctime>

using namespace mlafix::runtime;

namespace {

/// The driver maps device memory in pages of 2^21 bytes. Each page is on one
/// device.
constexpr unsigned pageBits = 21;

// The owner of a page is 1 + a device ordinal, or one of two special values.

/// The page is not on a device: it is host memory, for example.
constexpr uint64_t noDevice = 0;
/// The driver gave no answer.
constexpr uint64_t unknown = 255;
static_assert(numDeviceSlots < unknown, "devices have 8 bits");

/// Caches page owners. An entry is one atomic word: 36 bits of page number (for
/// 57-bit addresses), 20 bits of time and 8 bits of owner.
std::array<std::atomic<uint64_t>, 1024> answers{};

/// Returns a time stamp in units of 1/8 s. Its 20 bits in an entry of `answers`
/// wrap after 36 hours, so an answer of exactly that age looks fresh.
uint64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return 8 * static_cast<uint64_t>(time.tv_sec) +
         static_cast<uint64_t>(time.tv_nsec) / 125000000;
}

uint64_t askOwner(const CudaDriver &driver, uint64_t address) {
  unsigned memoryType = 0;
  int ordinal = -1;
  int attributes[] = {cuda::pointerMemoryType, cuda::pointerDeviceOrdinal};
  void *values[] = {&memoryType, &ordinal};
  RelaxedCapture relaxed(driver);
  if (driver.cuPointerGetAttributes(2, attributes, values, address) !=
      cuda::success)
    return unknown;
  bool isDevice = memoryType == cuda::memoryTypeDevice && ordinal >= 0 &&
                  static_cast<size_t>(ordinal) + 1 < numDeviceSlots;
  return isDevice ? static_cast<uint64_t>(ordinal) + 1 : noDevice;
}

uint64_t findOwner(const CudaDriver &driver, uint64_t address, uint64_t time) {
  uint64_t page = address >> pageBits;
  uint64_t key = page << 20 | (time & 0xfffff);
  std::atomic<uint64_t> &answer = answers[(page ^ page >> 10) % answers.size()];
  uint64_t known = answer.load(std::memory_order_relaxed);
  if (known >> 8 == key)
    return known & 0xff;
  uint64_t owner = askOwner(driver, address);
  answer.store(key << 8 | owner, std::memory_order_relaxed);
  return owner;
}

} // namespace

bool mlafix::runtime::readsLocalMemory(const CudaDriver &driver,
                                       const Plan &plan, int32_t ordinal) {
  uint64_t time = now(), own = static_cast<uint64_t>(ordinal) + 1;
  for (uint32_t slot : plan.variant->readSlots) {
    if (plan.slots[slot] == 0)
      continue; // the tensor is omitted or empty
    uint64_t owner = findOwner(driver, plan.slots[slot], time);
    if (owner != own && owner != unknown)
      return false;
  }
  return true;
}

void mlafix::runtime::forgetOwnersForTesting() {
  for (std::atomic<uint64_t> &answer : answers)
    answer = 0;
}
