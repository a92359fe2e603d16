//===- Overlap.cpp - Do two strided tensors share a byte ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Overlap.h"

#include "mlafix/runtime.h"

#include <algorithm>
#include <numeric>

using namespace mlafix::runtime;

namespace {

using Dim = ByteLayout::Dim;

/// Returns the number of bytes from the first to the last byte of the dims from
/// index `first` on.
uint64_t hull(const ByteLayout &layout, uint32_t first) {
  uint64_t bytes = 1;
  for (uint32_t i = first; i < layout.numDims; ++i)
    bytes += (layout.dims[i].size - 1) * layout.dims[i].stride;
  return bytes;
}

/// Returns true if no dim's stride is smaller than the extent of the dims
/// inside it. Every byte offset then belongs to at most one tuple of indices.
/// Dividing by the strides, outermost first, finds this tuple.
bool isNested(const ByteLayout &layout) {
  for (uint32_t i = 0; i + 1 < layout.numDims; ++i)
    if (layout.dims[i].stride < hull(layout, i + 1))
      return false;
  return true;
}

/// Returns true if the byte at `address` belongs to `layout`, which must be
/// nested.
bool contains(const ByteLayout &layout, uint64_t address) {
  if (address < layout.base)
    return false;
  uint64_t rest = address - layout.base;
  for (uint32_t i = 0; i < layout.numDims; ++i) {
    const Dim &dim = layout.dims[i];
    uint64_t index = std::min(rest / dim.stride, dim.size - 1);
    rest -= index * dim.stride;
  }
  return rest == 0;
}

/// Returns true if the layouts share no byte modulo a common divisor of all
/// outer strides. The outer dims of `a` are those before `cutA`, and those of
/// `b` the ones before `cutB`. Modulo the divisor, every byte of a layout lies
/// in the hull of its inner dims.
bool disjointModulo(const ByteLayout &a, uint32_t cutA, const ByteLayout &b,
                    uint32_t cutB) {
  uint64_t modulus = 0;
  for (uint32_t i = 0; i < cutA; ++i)
    modulus = std::gcd(modulus, a.dims[i].stride);
  for (uint32_t i = 0; i < cutB; ++i)
    modulus = std::gcd(modulus, b.dims[i].stride);
  if (modulus == 0)
    return false; // no outer dims: the caller compares the hulls
  uint64_t spanA = hull(a, cutA), spanB = hull(b, cutB);
  if (spanA > modulus || spanB > modulus)
    return false;
  // The distance from the residue of `a` up to the residue of `b`.
  uint64_t delta = b.base >= a.base
                       ? (b.base - a.base) % modulus
                       : (modulus - (a.base - b.base) % modulus) % modulus;
  return delta >= spanA && delta + spanB <= modulus;
}

/// Sorts the dims by falling stride. Fuses an outer dim with the next inner dim
/// if they are equivalent to one dim with the inner stride.
void collapse(ByteLayout &layout) {
  // std::sort does not allocate, and there are at most nine dims.
  std::sort(layout.dims, layout.dims + layout.numDims,
            [](const Dim &a, const Dim &b) { return a.stride > b.stride; });
  // Go from the innermost dim outwards. An outer dim is fused if its stride is
  // the size times the stride of the inner dim.
  uint32_t last = layout.numDims - 1;
  Dim collapsed[9];
  uint32_t count = 0;
  Dim inner = layout.dims[last];
  for (uint32_t i = last; i-- > 0;) {
    const Dim &outer = layout.dims[i];
    if (outer.stride == inner.stride * inner.size) {
      inner.size *= outer.size;
      continue;
    }
    collapsed[count++] = inner;
    inner = outer;
  }
  collapsed[count++] = inner;
  layout.numDims = 0;
  // The bytes of a one-byte element are a dim of size 1. Drop this dim unless
  // it is the innermost one. (It need not be: sorting may put another dim of
  // stride 1 last.)
  while (count-- > 0)
    if (collapsed[count].size > 1 || count == 0)
      layout.dims[layout.numDims++] = collapsed[count];
}

} // namespace

bool mlafix::runtime::makeByteLayout(const StridedTensor &tensor,
                                     ByteLayout &layout) {
  const auto [data, ndim, sizes, strides, elementBytes] = tensor;
  layout.base = reinterpret_cast<uintptr_t>(data);
  layout.extent = 0;
  layout.numDims = 0;
  layout.empty = layout.repeats = false;
  for (uint32_t i = 0; i < ndim; ++i)
    if (sizes[i] == 0)
      layout.empty = true;
  if (layout.empty)
    return true;

  uint64_t above =
      elementBytes;   // bytes from `data` to the end of the highest element
  uint64_t below = 0; // bytes from the lowest element to `data`
  for (uint32_t i = 0; i < ndim; ++i) {
    if (sizes[i] == 1)
      continue;
    if (strides[i] == 0) {
      layout.repeats = true;
      continue;
    }
    bool down = strides[i] < 0;
    uint64_t stride = down ? uint64_t(0) - static_cast<uint64_t>(strides[i])
                           : static_cast<uint64_t>(strides[i]);
    uint64_t size = static_cast<uint64_t>(sizes[i]), reach;
    if (__builtin_mul_overflow(stride, elementBytes, &stride) ||
        __builtin_mul_overflow(stride, size - 1, &reach))
      return false;
    uint64_t &side = down ? below : above;
    if (__builtin_add_overflow(side, reach, &side))
      return false;
    layout.dims[layout.numDims++] = {size, stride};
  }
  uint64_t end;
  // Kernels use signed 64-bit offsets, so larger extents are refused.
  if (__builtin_add_overflow(above, below, &layout.extent) ||
      layout.extent > static_cast<uint64_t>(INT64_MAX) || below > layout.base ||
      __builtin_add_overflow(layout.base, above, &end))
    return false;
  layout.base -= below;

  layout.dims[layout.numDims++] = {elementBytes, 1};
  collapse(layout);
  return true;
}

bool mlafix::runtime::makeByteSpan(const StridedTensor &tensor, bool distinct,
                                   ByteSpan &span) {
  const auto [data, ndim, sizes, strides, elementBytes] = tensor;
  span.base = reinterpret_cast<uintptr_t>(data);
  span.extent = 0;
  // `elements` is the number of elements from the first to the last one.
  // `inner` holds the dims seen so far, sorted by ascending stride.
  uint64_t elements = 1;
  Dim inner[MLAFIX_MAX_DIMS];
  uint32_t count = 0;
  for (uint32_t i = 0; i < ndim; ++i) {
    if (sizes[i] == 0)
      return true;
    if (sizes[i] == 1)
      continue;
    auto size = static_cast<uint64_t>(sizes[i]);
    auto stride = static_cast<uint64_t>(strides[i]);
    uint64_t reach;
    if (strides[i] < 0 || __builtin_mul_overflow(size - 1, stride, &reach) ||
        __builtin_add_overflow(elements, reach, &elements))
      return false;
    if (!distinct)
      continue;
    uint32_t at = count++;
    for (; at > 0 && inner[at - 1].stride > stride; --at)
      inner[at] = inner[at - 1];
    inner[at] = {size, stride};
  }
  uint64_t past = 1; // index after the last element of the inner dims
  for (uint32_t i = 0; i < count; ++i) {
    if (inner[i].stride < past)
      return false;
    past += (inner[i].size - 1) * inner[i].stride;
  }
  uint64_t bytes, end;
  if (__builtin_mul_overflow(elements, elementBytes, &bytes) ||
      bytes > static_cast<uint64_t>(INT64_MAX) ||
      __builtin_add_overflow(span.base, bytes, &end))
    return false;
  span.extent = bytes;
  return true;
}

Relation mlafix::runtime::selfOverlap(const ByteLayout &layout) {
  if (layout.empty)
    return Relation::Disjoint;
  if (layout.repeats)
    return Relation::Overlap;
  if (isNested(layout))
    return Relation::Disjoint;
  // Find two dims in which different steps reach the same byte.
  for (uint32_t a = 0; a < layout.numDims; ++a)
    for (uint32_t b = a + 1; b < layout.numDims; ++b) {
      const Dim &outer = layout.dims[a], &inner = layout.dims[b];
      uint64_t divisor = std::gcd(outer.stride, inner.stride);
      if (inner.stride / divisor < outer.size &&
          outer.stride / divisor < inner.size)
        return Relation::Overlap;
    }
  return Relation::Unknown;
}

Relation mlafix::runtime::overlap(const ByteLayout &a, const ByteLayout &b) {
  if (a.empty || b.empty)
    return Relation::Disjoint;
  if (ByteSpan{a.base, a.extent}.isApartFrom({b.base, b.extent}))
    return Relation::Disjoint;
  if (a.numDims == 1 && b.numDims == 1)
    return Relation::Overlap; // two intervals that intersect
  if (isNested(a) &&
      (contains(a, b.base) || contains(a, b.base + b.extent - 1)))
    return Relation::Overlap;
  if (isNested(b) &&
      (contains(b, a.base) || contains(b, a.base + a.extent - 1)))
    return Relation::Overlap;
  for (uint32_t cutA = 0; cutA < a.numDims; ++cutA)
    for (uint32_t cutB = 0; cutB < b.numDims; ++cutB)
      if (disjointModulo(a, cutA, b, cutB))
        return Relation::Disjoint;
  return Relation::Unknown;
}
