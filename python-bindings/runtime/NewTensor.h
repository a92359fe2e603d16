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
  /// A mlafix_dtype. 0 stands for the dtype in the kernel's signature. If that
  /// is a dtype variable, 0 stands for the dtype of argument `like` or, without
  /// `like`, for the dtype to which other arguments bind the variable.
  int32_t dtype = 0;
  /// The index of an argument, or -1. If the argument has the output's dims, it
  /// also gives the output's strides, as in torch.empty_like.
  int32_t like = -1;
  /// The output's dims in their order in memory, the outermost first. Dims are
  /// numbered as the caller sees them. Empty if memory has the same order.
  std::vector<uint8_t> order;

  NewTensor(const std::string &dtype, int32_t like, nanobind::object order);
};

/// A placeholder among a call's arguments for an integer: the size of dim `dim`
/// of the tensor argument `arg`.
struct SizeOf {
  int32_t arg, dim;

  SizeOf(int32_t arg, int32_t dim) : arg(arg), dim(dim) {}
};

/// Returns the Placeholder (NewTensor or SizeOf) in a Python object, or null if
/// the object is of another type.
template <typename Placeholder> const Placeholder *as(PyObject *object) {
  static const PyObject *type = nanobind::type<Placeholder>().ptr();
  return reinterpret_cast<PyObject *>(Py_TYPE(object)) == type
             ? nanobind::inst_ptr<Placeholder>(object)
             : nullptr;
}

/// Allocates the output `index` of a call with torch, and adds it to `call`,
/// which must contain the inputs already. `args` is the tuple of arguments.
/// Returns null if the call does not determine the output's sizes or dtype, or
/// if torch has no such dtype. Throws torch's exceptions.
nanobind::object allocate(const Signature &signature, CallArgs &call,
                          nanobind::handle args, uint32_t index,
                          const NewTensor &wanted);

void bindNewTensor(nanobind::module_ &module);

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_NEWTENSOR_H
