//===- Container.cpp - The unit file around its manifest ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Container.h"

#include "Manifest.h"
#include "Status.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <tuple>

using namespace mlafix::runtime;

namespace {

uint64_t alignImage(uint64_t offset) {
  return (offset + format::imageAlignment - 1) / format::imageAlignment *
         format::imageAlignment;
}

bool allZero(const uint8_t *bytes, size_t size) {
  return std::all_of(bytes, bytes + size, [](uint8_t b) { return b == 0; });
}

mlafix_status checkHeader(const uint8_t *bytes, size_t size,
                          ChecksumPolicy checksum, uint64_t &manifestSize) {
  if (size < format::headerBytes)
    return fail(MLAFIX_BAD_UNIT,
                "expected a unit, whose header has %" PRIu64
                " bytes, got %zu bytes in all",
                format::headerBytes, size);
  if (std::memcmp(bytes, format::magic, sizeof(format::magic)) != 0) {
    bool textMode = std::memcmp(bytes, format::magic, 6) == 0;
    return fail(MLAFIX_BAD_UNIT,
                "expected a unit, which begins with "
                "\"MLAFIX\\r\\n\", got something else%s",
                textMode ? " (was the file transferred as text?)" : "");
  }
  auto container = readInteger<uint32_t>(bytes + 8);
  if (container != format::containerVersion)
    return fail(MLAFIX_VERSION_MISMATCH,
                "expected container version %u, got %u%s",
                format::containerVersion, container,
                container > format::containerVersion
                    ? " (the unit comes from a newer mlafix)"
                    : "");
  auto abi = readInteger<uint32_t>(bytes + 12);
  if (abi != format::kernelAbiVersion)
    return fail(
        MLAFIX_VERSION_MISMATCH, "expected kernel ABI version %u, got %u%s",
        format::kernelAbiVersion, abi,
        abi > format::kernelAbiVersion ? " (the unit comes from a newer mlafix)"
                                       : "");
  auto fileSize = readInteger<uint64_t>(bytes + 16);
  if (fileSize != size)
    return fail(MLAFIX_BAD_UNIT,
                "expected a unit of %" PRIu64
                " bytes, as its header says, got %zu bytes%s",
                fileSize, size, size < fileSize ? " (is it truncated?)" : "");
  auto expected = readInteger<uint64_t>(bytes + 32);
  if (checksum == ChecksumPolicy::Verify) {
    uint64_t actual = unitChecksum(bytes, size);
    if (actual != expected)
      return fail(MLAFIX_BAD_UNIT,
                  "expected a unit with checksum %016" PRIx64
                  ", as its header says, got %016" PRIx64
                  " (the file is damaged)",
                  expected, actual);
  }
  if (!allZero(bytes + 40, 24))
    return fail(MLAFIX_BAD_UNIT, "expected zeros in bytes 40 to 63 of the "
                                 "unit's header, got something else");
  manifestSize = readInteger<uint64_t>(bytes + 24);
  if (manifestSize > limits::manifestBytes ||
      manifestSize > size - format::headerBytes)
    return fail(MLAFIX_BAD_UNIT,
                "expected a manifest of at most %" PRIu64
                " bytes that lies within the unit, got one of %" PRIu64
                " bytes in a unit of %zu bytes",
                limits::manifestBytes, manifestSize, size);
  return MLAFIX_OK;
}

/// Returns all images in file order. An image that several kernels share is
/// listed once.
std::vector<const Image *> sortedImages(const UnitDesc &unit) {
  std::vector<const Image *> images;
  for (const KernelDesc &kernel : unit.kernels)
    for (const TargetCode &code : kernel.code)
      for (const Image &image : code.images)
        images.push_back(&image);
  auto key = [](const Image *image) {
    return std::make_tuple(image->offset, image->size, image->format);
  };
  std::sort(images.begin(), images.end(),
            [&](const Image *a, const Image *b) { return key(a) < key(b); });
  images.erase(std::unique(images.begin(), images.end(),
                           [&](const Image *a, const Image *b) {
                             return key(a) == key(b);
                           }),
               images.end());
  return images;
}

mlafix_status checkImages(const uint8_t *bytes, size_t size,
                          uint64_t manifestSize, const UnitDesc &unit) {
  uint64_t end = format::headerBytes + manifestSize;
  for (const Image *image : sortedImages(unit)) {
    uint64_t expected = alignImage(end);
    if (image->offset != expected)
      return fail(MLAFIX_BAD_UNIT,
                  "expected the next image of the unit at offset %" PRIu64
                  ", without gap or overlap, got offset %" PRIu64,
                  expected, image->offset);
    if (image->offset > size || image->size > size - image->offset)
      return fail(MLAFIX_BAD_UNIT,
                  "expected an image within the unit's %zu bytes, got one of "
                  "%" PRIu64 " bytes at offset %" PRIu64,
                  size, image->size, image->offset);
    if (!allZero(bytes + end, image->offset - end))
      return fail(MLAFIX_BAD_UNIT,
                  "expected zeros between the unit's images, got something "
                  "else before offset %" PRIu64,
                  image->offset);
    end = image->offset + image->size;
    const uint8_t *content = bytes + image->offset;
    mlafix_status status = MLAFIX_OK;
    if (image->format == Image::Cubin)
      status = checkCubin(content, image->size);
    else if (image->format == Image::Ptx)
      status = checkPtx(content, image->size);
    if (status != MLAFIX_OK)
      return prefixError(status, "image at offset %" PRIu64 ": ",
                         image->offset);
  }
  if (end != size)
    return fail(MLAFIX_BAD_UNIT,
                "expected the unit to end with its last image, at %" PRIu64
                " bytes, got %zu bytes",
                end, size);
  return MLAFIX_OK;
}

} // namespace

uint64_t mlafix::runtime::unitChecksum(const uint8_t *bytes, size_t size) {
  uint64_t hash = 0xcbf29ce484222325u; // offset basis of FNV-1a
  for (size_t i = 0; i < size; ++i) {
    uint8_t byte = i >= 32 && i < 40 ? 0 : bytes[i];
    hash = (hash ^ byte) * 0x100000001b3u; // prime of FNV-1a
  }
  return hash;
}

mlafix_status mlafix::runtime::parseUnit(const uint8_t *bytes, size_t size,
                                         ChecksumPolicy checksum,
                                         UnitDesc &unit) {
  uint64_t manifestSize = 0;
  MLAFIX_TRY(checkHeader(bytes, size, checksum, manifestSize));
  MLAFIX_TRY(
      parseManifest(reinterpret_cast<const char *>(bytes) + format::headerBytes,
                    manifestSize, unit));
  unit.manifestBytes = manifestSize;
  return checkImages(bytes, size, manifestSize, unit);
}
