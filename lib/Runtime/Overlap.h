//===- Overlap.h - Do two strided tensors share a byte ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Decides for the layouts in use without enumerating elements: contiguous dims
// collapse; two tensors that are slices of one larger buffer are compared
// modulo the strides they share. What is neither provably disjoint nor provably
// overlapping is Unknown, which a launch refuses unless the caller passes
// MLAFIX_LAUNCH_ASSUME_DISJOINT.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_OVERLAP_H
#define MLAFIX_RUNTIME_OVERLAP_H

#include <cstdint>

namespace mlafix::runtime {

enum class Relation { Disjoint, Overlap, Unknown };

/// A tensor as an argument of a call gives it.
struct StridedTensor {
  const void *data; ///< the element whose indices are all 0
  uint32_t ndim;
  const int64_t *sizes, *strides; ///< of each dim; strides in elements
  uint64_t elementBytes;
};

/// The bytes of a tensor: `numDims` dims in order of falling stride, none of
/// size 1 or stride 0, strides positive; the last one is the bytes of an
/// element, or of a contiguous run. Empty if `size` of any dim was 0.
struct ByteLayout {
  struct Dim {
    uint64_t size;
    uint64_t stride;
  };
  uint64_t base = 0;   ///< address of the lowest byte
  uint64_t extent = 0; ///< bytes from the lowest to past the highest
  uint32_t numDims = 0;
  Dim dims[9];
  bool empty = false;
  bool repeats = false; ///< a dim of stride 0 (and size > 1) was dropped
};

/// False if the tensor does not fit the address space (64-bit overflow).
bool makeByteLayout(const StridedTensor &tensor, ByteLayout &layout);

/// True if two elements of one tensor share a byte.
Relation selfOverlap(const ByteLayout &layout);

/// The bytes from a tensor's first to its last: enough for most launches, at a
/// fraction of a layout's cost.
struct ByteSpan {
  uint64_t base;   ///< as a layout's
  uint64_t extent; ///< as a layout's; 0: empty

  /// True where it is certain; a layout knows more.
  bool isApartFrom(const ByteSpan &other) const {
    return base <= other.base ? other.base - base >= extent
                              : base - other.base >= other.extent;
  }
};

/// Fills in `span`; false if only a layout can tell: a negative stride, no room
/// in the address space, or, if `distinct` is set, elements that may
/// overlap.
bool makeByteSpan(const StridedTensor &tensor, bool distinct, ByteSpan &span);

/// True if some byte belongs to both.
Relation overlap(const ByteLayout &a, const ByteLayout &b);

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_OVERLAP_H
