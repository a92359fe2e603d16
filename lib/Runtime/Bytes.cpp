//===- Bytes.cpp - Where the bytes of an argument lie ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Bytes.h"
#include "Status.h"

#include <algorithm>
#include <cinttypes>

using namespace mlafix::runtime;

namespace {

/// A tensor argument whose sizes and strides count memory units. A unit is an
/// element, or a byte if two elements share one.
struct Units : StridedTensor {
  Units(const ArgDesc &desc, const CallArg &arg) {
    uint32_t first = desc.isMany() ? 1 : 0;
    data = arg.data;
    ndim = desc.ndim() - first;
    sizes = arg.sizes + first;
    strides = arg.strides + first;
    elementBytes = desc.elementBytes;
    if (desc.perByte == 1 && !desc.isSwizzled())
      return;
    std::copy_n(sizes, ndim, own);
    sizes = own;
    if (desc.perByte > 1) {
      own[ndim - 1] /= desc.perByte;
      return;
    }
    // A tiled tensor is one run of bytes. The tiles of all rows follow each
    // other, and each tile interleaves its rows.
    fits = !__builtin_mul_overflow(arg.sizes[0], arg.strides[0], &own[0]);
    if (arg.empty)
      own[0] = 0;
    ndim = 1;
    strides = &one;
  }

  bool fits = true;

private:
  int64_t own[MLAFIX_MAX_DIMS];
  int64_t one = 1;
};

/// The number of columns of a tile.
constexpr int64_t blockColumns = 4;

} // namespace

bool mlafix::runtime::makeByteLayout(const ArgDesc &desc, const CallArg &arg,
                                     ByteLayout &layout) {
  Units units(desc, arg);
  return units.fits && makeByteLayout(units, layout);
}

bool mlafix::runtime::makeByteSpan(const ArgDesc &desc, const CallArg &arg,
                                   bool distinct, ByteSpan &span) {
  Units units(desc, arg);
  return units.fits && makeByteSpan(units, distinct, span);
}

bool mlafix::runtime::isContiguous(const ArgDesc &desc, const CallArg &arg) {
  int64_t stride = 1;
  uint32_t first = desc.isMany() ? 1 : 0;
  for (uint32_t i = desc.ndim(); i-- > first;) {
    if (arg.strides[i] != stride)
      return false;
    if (__builtin_mul_overflow(stride, arg.sizes[i], &stride))
      return false;
    if (i + 1 == desc.ndim())
      stride /= desc.perByte;
  }
  return true;
}

mlafix_status mlafix::runtime::checkSwizzle(const ArgDesc &desc,
                                            const CallArg &arg) {
  if (arg.sizes[0] % desc.tileRows != 0)
    return WRONG(desc,
                 "expected a multiple of %" PRId64
                 " rows, padding included, of a tensor in tiles, got %" PRId64,
                 static_cast<int64_t>(desc.tileRows), arg.sizes[0]);
  if (arg.empty)
    return MLAFIX_OK;
  int64_t columns = 1;
  for (uint32_t i = desc.ndim(); i-- > 1;) {
    if (arg.sizes[i] > 1 && arg.strides[i] != columns)
      return WRONG(desc,
                   "expected stride %" PRId64
                   " in dim %u, since the columns of a tensor in tiles follow "
                   "each other, got %" PRId64,
                   columns, i, arg.strides[i]);
    if (__builtin_mul_overflow(columns, arg.sizes[i], &columns))
      return WRONG(desc, "expected a tensor that fits 64-bit offsets, got %s",
                   "sizes whose product does not");
  }
  if (arg.strides[0] < columns || arg.strides[0] % blockColumns != 0)
    return WRONG(desc,
                 "expected a row stride that is a multiple of %" PRId64
                 " and at least %" PRId64
                 " for a tensor in tiles, got %" PRId64,
                 blockColumns, columns, arg.strides[0]);
  return MLAFIX_OK;
}
