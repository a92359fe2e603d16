//===- TestTensor.h - a strided tensor among guard bytes --------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A tensor with any strides and any misalignment, in its own buffer. The host
// keeps an image of the whole buffer. Every byte starts as poison (0xff, a NaN
// in every float type). After a launch, bytes outside the elements must be
// unchanged.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TEST_CONFORMANCE_TESTTENSOR_H
#define MLAFIX_TEST_CONFORMANCE_TESTTENSOR_H

#include "Numerics.h"
#include "examples/support/Device.h"

#include "mlafix/runtime.hpp"

#include <string>
#include <vector>

namespace conformance {

using support::Device;
using support::Memory;

/// Sizes and strides of a tensor, and the offset of its first element from an
/// aligned address. All are in elements.
struct Layout {
  std::vector<int64_t> Sizes;
  std::vector<int64_t> Strides;
  int64_t Offset = 0;

  /// Returns the row-major layout without gaps.
  static Layout contiguous(std::vector<int64_t> Sizes);
  /// Returns the distance from the first element to the end of the highest one,
  /// in elements. Returns 0 if there are no elements.
  int64_t span() const;
  int64_t numElements() const;
};

/// Returns the runtime's dtype for a float type.
mlafix_dtype dtypeOf(Float Type);

class TestTensor {
public:
  /// Fills the host image with poison. The device memory is undefined until
  /// upload().
  TestTensor(Device &On, mlafix_dtype Type, Layout Shape);

  const Layout &layout() const { return Shape; }

  /// Returns the bits of an element of the host image, by its logical index.
  uint32_t get(std::initializer_list<int64_t> At) const;
  void set(std::initializer_list<int64_t> At, uint32_t Bits);
  /// Sets an element of an f32 tensor (setFloat) or of an i32 tensor (setInt).
  void setFloat(std::initializer_list<int64_t> At, float Value);
  void setInt(std::initializer_list<int64_t> At, int32_t Value) {
    set(At, uint32_t(Value));
  }

  /// Copies the host image to the device. Later comparisons use this image.
  void upload();
  /// Copies the device's memory to the host image.
  void download();
  /// Fills the host image with poison again.
  void poison();

  /// Returns "" if no byte outside the elements differs from the uploaded
  /// image; otherwise a message.
  std::string guardsIntact() const;
  /// Returns "" if no byte differs from the uploaded image; otherwise a
  /// message.
  std::string unchanged() const;

  /// Returns the tensor as the argument for a launch.
  mlafix::Tensor view() const;
  /// Returns the argument with its dims in another order.
  mlafix::Tensor view(const std::vector<int> &Permutation) const;
  void *data() const;

private:
  int64_t indexOf(std::initializer_list<int64_t> At) const;
  size_t firstElementByte() const;

  Device *On;
  mlafix_dtype Type;
  Layout Shape;
  size_t Width;
  std::vector<unsigned char> Image, Uploaded;
  Memory Buffer;
};

} // namespace conformance

#endif // MLAFIX_TEST_CONFORMANCE_TESTTENSOR_H
