//===- Overlap.h - Do two strided tensors share a byte ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Decides if tensors overlap, without enumerating their elements. Contiguous
// dims are fused to one. Two slices of one larger buffer are compared modulo
// the strides that they share. If neither overlap nor disjointness can be
// proved, the answer is Unknown. A launch then fails, unless the caller passes
// MLAFIX_LAUNCH_ASSUME_DISJOINT.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_OVERLAP_H
#define MLAFIX_RUNTIME_OVERLAP_H

#include <cstdint>

namespace mlafix::runtime {

enum class Relation { Disjoint, Overlap, Unknown };

/// A tensor as a call gives it.
struct StridedTensor {
  const void *data; ///< the element whose indices are all 0
  uint32_t ndim;
  const int64_t *sizes, *strides; ///< per dim; strides in elements
  uint64_t elementBytes;
};

/// The bytes of a tensor: `numDims` dims with positive strides in bytes, sorted
/// by falling stride. The last dim is the bytes of one element or of a
/// contiguous run. No other dim has size 1 or stride 0. `empty` is true if some
/// size was 0.
struct ByteLayout {
  struct Dim {
    uint64_t size;
    uint64_t stride;
  };
  uint64_t base = 0;   ///< address of the lowest byte
  uint64_t extent = 0; ///< bytes from the lowest to the highest one
  uint32_t numDims = 0;
  Dim dims[9];
  bool empty = false;
  bool repeats = false; ///< true if a dim has stride 0 and size > 1
};

/// Fills in `layout`. Returns false if the tensor exceeds the address space.
bool makeByteLayout(const StridedTensor &tensor, ByteLayout &layout);

/// Returns Overlap if two elements of the tensor share a byte.
Relation selfOverlap(const ByteLayout &layout);

/// The interval from the first to the last byte of a tensor. Most launches need
/// only spans, which cost much less than layouts.
struct ByteSpan {
  uint64_t base;   ///< address of the lowest byte
  uint64_t extent; ///< number of bytes; 0 if the tensor is empty

  /// Returns true if the intervals are disjoint. If they are not, the layouts
  /// may still be disjoint.
  bool isApartFrom(const ByteSpan &other) const {
    // Compare distances and not end addresses, since the end of a tensor at the
    // top of the address space would overflow.
    return base <= other.base ? other.base - base >= extent
                              : base - other.base >= other.extent;
  }
};

/// Fills in `span`. Returns false if a layout is needed instead: if a stride is
/// negative, if an address overflows, or if `distinct` is true and elements may
/// overlap.
bool makeByteSpan(const StridedTensor &tensor, bool distinct, ByteSpan &span);

/// Returns Overlap if some byte belongs to both tensors.
Relation overlap(const ByteLayout &a, const ByteLayout &b);

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_OVERLAP_H
