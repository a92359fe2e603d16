//===- Negation.h - lazily negated tensors of torch -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_NEGATION_H
#define MLAFIX_PYTHON_NEGATION_H

#include "Tensor.h"

namespace mlafix::python {

/// tensor.is_neg(): whether memory holds the other sign of a torch tensor's
/// values. `isPlain`: it is no subclass of torch.Tensor but Parameter.
bool isNegated(PyObject *tensor, bool isPlain);

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_NEGATION_H
