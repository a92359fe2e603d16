//===- Embedded.cpp - Units that are part of a program --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "mlafix/runtime/embedded.h"
#include "Fork.h"
#include "Status.h"

#include <memory>
#include <mutex>
#include <vector>

using namespace mlafix::runtime;

namespace {

struct UnitDeleter {
  void operator()(mlafix_unit *unit) const { mlafix_unit_destroy(unit); }
};

/// A loaded unit and its kernels; mlafix_embedded::loaded points to it. It is
/// never destroyed, since another thread may be launching when the program
/// ends.
struct Loaded {
  std::unique_ptr<mlafix_unit, UnitDeleter> unit;
  std::vector<const mlafix_kernel *> kernels;
};

std::mutex loadMutex;

/// Returns the loaded unit, or null. C programs define mlafix_embedded objects,
/// so `loaded` is a plain pointer and not a std::atomic. Built-ins of the
/// compiler access it atomically.
const Loaded *findLoaded(const mlafix_embedded &embedded) {
  return static_cast<const Loaded *>(
      __atomic_load_n(&embedded.loaded, __ATOMIC_ACQUIRE));
}

mlafix_status checkVersion(const mlafix_embedded *embedded) {
  if (!embedded || embedded->struct_size < sizeof(mlafix_embedded))
    return fail(MLAFIX_INVALID_ARGUMENT,
                "argument \"embedded\": expected struct_size to be at least "
                "%zu, got %u",
                sizeof(mlafix_embedded), embedded ? embedded->struct_size : 0);
  if (embedded->abi_version != MLAFIX_ABI_VERSION)
    return fail(MLAFIX_VERSION_MISMATCH,
                "unit \"%s\": expected a library of ABI version %u, for which "
                "the program was compiled, got %u",
                embedded->name, embedded->abi_version, MLAFIX_ABI_VERSION);
  return MLAFIX_OK;
}

mlafix_status loadBytes(const mlafix_embedded &embedded, mlafix_unit **unit) {
  if (!embedded.begin)
    return fail(MLAFIX_NOT_FOUND,
                "unit \"%s\": expected the program to embed the unit, or to "
                "call %s_load with its file first, got neither",
                embedded.name, embedded.name);
  size_t size = static_cast<const char *>(embedded.end) -
                static_cast<const char *>(embedded.begin);
  mlafix_status status =
      mlafix_unit_load_memory(embedded.begin, size, nullptr, unit);
  return status == MLAFIX_OK
             ? status
             : prefixError(status, "unit \"%s\": ", embedded.name);
}

mlafix_status load(mlafix_embedded *embedded, const char *path) {
  MLAFIX_TRY(checkVersion(embedded));
  if (findLoaded(*embedded))
    return MLAFIX_OK;
  ForkSafeLock lock(loadMutex);
  if (findLoaded(*embedded))
    return MLAFIX_OK;
  auto made = std::make_unique<Loaded>();
  mlafix_unit *unit = nullptr;
  MLAFIX_TRY(path ? mlafix_unit_load_file(path, nullptr, &unit)
                  : loadBytes(*embedded, &unit));
  made->unit.reset(unit);
  for (uint32_t i = 0; i < embedded->num_kernels; ++i) {
    made->kernels.push_back(nullptr);
    mlafix_status status = mlafix_unit_find_kernel(
        unit, embedded->kernels[2 * i], embedded->kernels[2 * i + 1],
        &made->kernels.back());
    if (status != MLAFIX_OK)
      return prefixError(status, "unit \"%s\": ", embedded->name);
  }
  __atomic_store_n(&embedded->loaded, made.release(), __ATOMIC_RELEASE);
  return MLAFIX_OK;
}

} // namespace

extern "C" mlafix_status mlafix_embedded_load(mlafix_embedded *embedded,
                                              const char *path) noexcept {
  return guarded([&] { return load(embedded, path); });
}

extern "C" mlafix_status mlafix_embedded_unit(mlafix_embedded *embedded,
                                              mlafix_unit **unit) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(unit, "unit", "a pointer for the result"));
    *unit = nullptr;
    MLAFIX_TRY(load(embedded, nullptr));
    *unit = findLoaded(*embedded)->unit.get();
    return MLAFIX_OK;
  });
}

extern "C" mlafix_status
mlafix_embedded_kernel(mlafix_embedded *embedded, uint32_t index,
                       const mlafix_kernel **kernel) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(kernel, "kernel", "a pointer for the result"));
    *kernel = nullptr;
    MLAFIX_TRY(load(embedded, nullptr));
    if (index >= embedded->num_kernels)
      return fail(MLAFIX_INVALID_ARGUMENT,
                  "argument \"index\": expected less than %u, got %u",
                  embedded->num_kernels, index);
    *kernel = findLoaded(*embedded)->kernels[index];
    return MLAFIX_OK;
  });
}
