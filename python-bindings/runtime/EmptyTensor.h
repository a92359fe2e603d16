//===- EmptyTensor.h - Tensors that torch allocates -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_EMPTYTENSOR_H
#define MLAFIX_PYTHON_EMPTYTENSOR_H

#include "Args.h"

namespace mlafix::python {

/// Sizes and strides of a tensor, in elements, as the caller sees it.
struct Shape {
  uint32_t ndim;
  int32_t dtype; ///< a mlafix_dtype
  mlafix_device device;
  int64_t sizes[MLAFIX_MAX_DIMS], strides[MLAFIX_MAX_DIMS];
};

/// Whether torch, which is loaded, allocates outputs of this dtype.
bool canAllocate(int32_t dtype);

/// torch.empty_strided of a dtype that can be allocated. Throws what torch
/// raises.
nanobind::object makeEmpty(const Shape &shape);

/// torch.empty_like.
nanobind::object makeLike(PyObject *other);

/// Whether no mode or tracer of torch is active, so that a plain tensor is not
/// a placeholder.
bool isTorchUnwatched();

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_EMPTYTENSOR_H
