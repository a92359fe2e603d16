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

/// True if makeEmpty can allocate tensors of this mlafix_dtype.
bool canAllocate(int32_t dtype);

/// Allocates a torch tensor with the dtype, device, sizes and strides of
/// `view`, and sets `view.data`. torch must be imported, and canAllocate must
/// accept the dtype. Throws torch's exceptions.
nanobind::object makeEmpty(TensorView &view);

/// Returns torch.empty_like(other). Throws torch's exceptions.
nanobind::object makeLike(PyObject *other);

/// True if torch is imported and none of its modes and tracers is active in
/// this thread. An object of type torch.Tensor is then a tensor with values,
/// and not a placeholder of a trace.
bool isTorchUnwatched();

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_EMPTYTENSOR_H
