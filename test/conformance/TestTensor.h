//===- TestTensor.h - a strided tensor among guard bytes --------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A tensor with any strides and any misalignment inside a buffer of its own.
// The host keeps an image of the whole buffer: every byte starts as poison
// (0xff, a NaN in every float type), and after a launch the bytes that are no
// elements must be as they were.
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

/// Sizes and strides (in elements) of a tensor, and how many elements past an
/// aligned address it begins.
struct Layout {
  std::vector<int64_t> Sizes;
  std::vector<int64_t> Strides;
  int64_t Offset = 0;

  /// Row-major without gaps.
  static Layout contiguous(std::vector<int64_t> Sizes);
  /// One past the highest element, counted from the first; 0 if there is none.
  int64_t span() const;
  int64_t numElements() const;
};

/// The dtype of the runtime for a float.
mlafix_dtype dtypeOf(Float Type);

class TestTensor {
public:
  /// Poisoned on the host; nothing is on the device before upload().
  TestTensor(Device &On, mlafix_dtype Type, Layout Shape);

  const Layout &layout() const { return Shape; }

  /// Element's bits in the host image, by position in the logical tensor.
  uint32_t get(std::initializer_list<int64_t> At) const;
  void set(std::initializer_list<int64_t> At, uint32_t Bits);
  /// A float by value (for f32 tensors) or an integer (for i32 tensors).
  void setFloat(std::initializer_list<int64_t> At, float Value);
  void setInt(std::initializer_list<int64_t> At, int32_t Value) {
    set(At, uint32_t(Value));
  }

  /// Host image to device. Every later comparison of guards is against this.
  void upload();
  /// Device to host image.
  void download();
  /// Fills the host image with poison again.
  void poison();

  /// Empty if only elements differ from what was uploaded; else a sentence.
  std::string guardsIntact() const;
  /// Empty if nothing at all differs from what was uploaded; else a sentence.
  std::string unchanged() const;

  /// The argument for a launch.
  mlafix::Tensor view() const;
  /// The argument with its dims in another order.
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
