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
  /// a mlafix_dtype; 0: the signature's dtype, or that of `like`
  int32_t dtype = 0;
  /// The index of an argument, or -1. If that argument has the same dims, the
  /// output also gets its strides, as with torch.empty_like.
  int32_t like = -1;
  /// The caller's dims in memory order, the outermost first. Empty: in their
  /// given order.
  std::vector<uint8_t> order;

  NewTensor(const std::string &dtype, int32_t like, nanobind::object order);
};

/// A placeholder among a call's arguments for an integer that is a size of
/// another argument.
struct SizeOf {
  int32_t arg, dim;

  SizeOf(int32_t arg, int32_t dim) : arg(arg), dim(dim) {}
};

/// The object as a NewTensor. Null if it is something else.
const NewTensor *asNewTensor(PyObject *object);
const SizeOf *asSizeOf(PyObject *object);

/// Allocates output `index` of a call by torch, and adds it to `call`, which
/// contains the inputs. Returns null if the call does not determine its sizes
/// or dtype. Throws the exceptions of torch.
nanobind::object allocate(const Signature &signature, CallArgs &call,
                          nanobind::handle args, uint32_t index,
                          const NewTensor &wanted);

void bindNewTensor(nanobind::module_ &module);

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_NEWTENSOR_H
