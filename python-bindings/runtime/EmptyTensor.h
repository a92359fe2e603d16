//===- EmptyTensor.h - Tensors that torch allocates -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_EMPTYTENSOR_H
#define MLAFIX_PYTHON_EMPTYTENSOR_H

#include "Tensor.h"

namespace mlafix::python {

/// True if torch, which is loaded, allocates outputs of this dtype.
bool canAllocate(int32_t dtype);

/// torch.empty_strided of the dtype (one that can be allocated), device, sizes
/// and strides of `view`, whose `data` is set. Throws what torch raises.
nanobind::object makeEmpty(TensorView &view);

/// torch.empty_like.
nanobind::object makeLike(PyObject *other);

/// True if no mode or tracer of torch is active, so that a plain tensor is not
/// a placeholder.
bool isTorchUnwatched();

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_EMPTYTENSOR_H
