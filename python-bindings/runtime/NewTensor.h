//===- NewTensor.h - Outputs that a call allocates --------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_NEWTENSOR_H
#define MLAFIX_PYTHON_NEWTENSOR_H

#include "Args.h"

namespace mlafix::python {

/// A placeholder among a call's arguments for an output to allocate.
struct NewTensor {
  int32_t dtype = 0; ///< a mlafix_dtype; 0: the signature's, or that of `like`
  /// The index of an argument, or -1. If that has the same dims, its strides
  /// are followed, too, as torch.empty_like does.
  int32_t like = -1;
  /// Dims as the caller sees them, the outermost in memory first; empty: in
  /// their order.
  std::vector<uint8_t> order;

  NewTensor(const std::string &dtype, int32_t like, nanobind::object order);
};

/// A placeholder among a call's arguments for an integer that is a size of
/// another argument.
struct SizeOf {
  int32_t arg, dim;

  SizeOf(int32_t arg, int32_t dim) : arg(arg), dim(dim) {}
};

/// The object as one of these; null if it is none.
const NewTensor *asNewTensor(PyObject *object);
const SizeOf *asSizeOf(PyObject *object);

/// Allocates output `index` of a call whose inputs are in `call`, by torch, and
/// adds it to `call`: the tensor, or null where the call does not say its sizes
/// or dtype. Throws what torch raises.
nanobind::object allocate(const Signature &signature, CallArgs &call,
                          nanobind::handle args, uint32_t index,
                          const NewTensor &wanted);

void bindNewTensor(nanobind::module_ &module);

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_NEWTENSOR_H
