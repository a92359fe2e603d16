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

/// True if torch, which must be loaded, can allocate outputs of this dtype.
bool canAllocate(int32_t dtype);

/// Calls torch.empty_strided with the dtype, device, sizes and strides of
/// `view`, and sets its `data`. The dtype must be one that canAllocate accepts.
/// Throws the exceptions of torch.
nanobind::object makeEmpty(TensorView &view);

/// Calls torch.empty_like.
nanobind::object makeLike(PyObject *other);

/// True if no mode or tracer of torch is active, so that a plain tensor is not
/// a placeholder.
bool isTorchUnwatched();

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_EMPTYTENSOR_H
