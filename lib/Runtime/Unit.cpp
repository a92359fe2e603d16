//===- Unit.cpp - Loading units and looking things up ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Unit.h"

#include "Status.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>

using namespace mlafix::runtime;

namespace {

bool holdsCpuCode(const UnitDesc &unit) {
  for (const KernelDesc &kernel : unit.kernels)
    for (const TargetCode &code : kernel.code)
      if (code.isCpu())
        return true;
  return false;
}

/// Copies the caller's options. Options that an older, shorter struct lacks get
/// their defaults.
mlafix_status readOptions(const mlafix_load_options *given,
                          mlafix_load_options &options) {
  options = MLAFIX_LOAD_OPTIONS_INIT;
  if (!given)
    return MLAFIX_OK;
  if (given->struct_size < sizeof(uint32_t))
    return fail(MLAFIX_INVALID_ARGUMENT,
                "argument \"options\": expected struct_size to be set, got %u",
                given->struct_size);
  std::memcpy(&options, given,
              std::min<size_t>(given->struct_size, sizeof(options)));
  if (options.flags & ~uint32_t(MLAFIX_LOAD_NO_CPU_CODE))
    return fail(MLAFIX_INVALID_ARGUMENT,
                "argument \"options\": expected flags that this library knows, "
                "got 0x%x",
                options.flags);
  return MLAFIX_OK;
}

mlafix_status readFile(const char *path, std::vector<uint8_t> &bytes) {
  struct Closer {
    void operator()(std::FILE *file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Closer> file(std::fopen(path, "rbe"));
  if (!file)
    return fail(errno == ENOENT ? MLAFIX_NOT_FOUND : MLAFIX_IO_ERROR,
                "cannot open unit \"%s\": %s", path, std::strerror(errno));
  struct stat info;
  if (fstat(fileno(file.get()), &info) != 0 || !S_ISREG(info.st_mode))
    return fail(MLAFIX_IO_ERROR,
                "expected unit \"%s\" to be a regular file, got something else",
                path);
  auto size = static_cast<uint64_t>(info.st_size);
  if (size > limits::fileBytes)
    return fail(MLAFIX_BAD_UNIT,
                "expected unit \"%s\" to have at most %llu bytes, got %llu",
                path, static_cast<unsigned long long>(limits::fileBytes),
                static_cast<unsigned long long>(size));
  bytes.resize(size);
  if (size > 0 && std::fread(bytes.data(), 1, size, file.get()) != size)
    return fail(MLAFIX_IO_ERROR,
                "expected to read %llu bytes of unit \"%s\", got fewer: %s",
                static_cast<unsigned long long>(size), path,
                std::ferror(file.get()) ? std::strerror(errno)
                                        : "the file ends before that");
  return MLAFIX_OK;
}

} // namespace

mlafix_status mlafix::runtime::loadUnit(std::vector<uint8_t> bytes,
                                        const mlafix_load_options *given,
                                        ChecksumPolicy checksum,
                                        mlafix_unit *&result) {
  mlafix_load_options options;
  MLAFIX_TRY(readOptions(given, options));
  if (options.verify &&
      !options.verify(options.verify_user, bytes.data(), bytes.size()))
    return fail(MLAFIX_REFUSED,
                "the verify callback refused the unit of %zu bytes",
                bytes.size());
  UnitDesc desc;
  MLAFIX_TRY(parseUnit(bytes.data(), bytes.size(), checksum, desc));
  if ((options.flags & MLAFIX_LOAD_NO_CPU_CODE) && holdsCpuCode(desc))
    return fail(MLAFIX_REFUSED, "expected a unit without code for the CPU, as "
                                "the load options say, got one with it");
  auto unit = std::make_unique<mlafix_unit>(desc.kernels.size());
  unit->bytes = std::move(bytes);
  unit->desc = std::move(desc);
  for (size_t i = 0; i < unit->kernels.size(); ++i) {
    unit->kernels[i].unit = unit.get();
    unit->kernels[i].desc = &unit->desc.kernels[i];
  }
  result = unit.release();
  return MLAFIX_OK;
}

extern "C" mlafix_status
mlafix_unit_load_file(const char *path, const mlafix_load_options *options,
                      mlafix_unit **unit) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(unit, "unit", "a pointer for the result"));
    *unit = nullptr;
    MLAFIX_TRY(require(path, "path", "a file name"));
    std::vector<uint8_t> bytes;
    MLAFIX_TRY(readFile(path, bytes));
    mlafix_status status =
        loadUnit(std::move(bytes), options, ChecksumPolicy::Verify, *unit);
    return status == MLAFIX_OK ? status
                               : prefixError(status, "unit \"%s\": ", path);
  });
}

extern "C" mlafix_status
mlafix_unit_load_memory(const void *bytes, size_t size,
                        const mlafix_load_options *options,
                        mlafix_unit **unit) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(unit, "unit", "a pointer for the result"));
    *unit = nullptr;
    if (!bytes && size > 0)
      return fail(MLAFIX_INVALID_ARGUMENT,
                  "argument \"bytes\": expected %zu bytes, got null", size);
    if (size > limits::fileBytes)
      return fail(MLAFIX_BAD_UNIT,
                  "expected a unit of at most %llu bytes, got %zu",
                  static_cast<unsigned long long>(limits::fileBytes), size);
    auto *begin = static_cast<const uint8_t *>(bytes);
    return loadUnit(std::vector<uint8_t>(begin, begin + size), options,
                    ChecksumPolicy::Verify, *unit);
  });
}

extern "C" void mlafix_unit_destroy(mlafix_unit *unit) noexcept {
  // Do not unload the CUlibrary handles, since a graph may use them.
  delete unit;
}
