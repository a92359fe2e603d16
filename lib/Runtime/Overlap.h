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

/// A tensor as given in a call.
struct StridedTensor {
  const void *data; ///< element with all indices 0
  uint32_t ndim;
  const int64_t *sizes, *strides; ///< per dim; strides in elements
  uint64_t elementBytes;
};

/// The bytes of a tensor: `numDims` dims by falling positive stride, none of
/// size 1 or stride 0. The last dim is the bytes of an element or of a
/// contiguous run. Empty if some dim had size 0.
struct ByteLayout {
  struct Dim {
    uint64_t size;
    uint64_t stride;
  };
  uint64_t base = 0;   ///< address of the lowest byte
  uint64_t extent = 0; ///< bytes from the lowest to the highest
  uint32_t numDims = 0;
  Dim dims[9];
  bool empty = false;
  bool repeats = false; ///< had a dim of stride 0 and size > 1
};

/// Returns false if the tensor exceeds the address space (64-bit overflow).
bool makeByteLayout(const StridedTensor &tensor, ByteLayout &layout);

/// Overlap if two elements of the tensor share a byte.
Relation selfOverlap(const ByteLayout &layout);

/// The interval from a tensor's first to its last byte. Enough for most
/// launches, and much cheaper than a layout.
struct ByteSpan {
  uint64_t base;   ///< as in ByteLayout
  uint64_t extent; ///< as in ByteLayout; 0: empty

  /// True if the intervals are disjoint; the layouts may be disjoint even so.
  bool isApartFrom(const ByteSpan &other) const {
    return base <= other.base ? other.base - base >= extent
                              : base - other.base >= other.extent;
  }
};

/// Fills in `span`. Returns false if a layout is needed: for a negative stride,
/// address overflow or, with `distinct`, elements that may overlap.
bool makeByteSpan(const StridedTensor &tensor, bool distinct, ByteSpan &span);

/// Returns Overlap if some byte belongs to both tensors.
Relation overlap(const ByteLayout &a, const ByteLayout &b);

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_OVERLAP_H
