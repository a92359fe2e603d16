//===- NumpyTensor.cpp - numpy arrays as tensors --------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "DTypeNames.h"
#include "Errors.h"
#include "Tensor.h"

namespace nb = nanobind;
using namespace mlafix::python;

namespace {

/// The struct that the capsule in an array's __array_struct__ points to
/// (numpy's "array interface protocol", version 3).
struct ArrayInterface {
  int two;
  int nd;
  char typekind;
  int itemsize;
  int flags;
  Py_intptr_t *shape;
  Py_intptr_t *strides; // in bytes
  void *data;
  PyObject *descr;
};

constexpr int flagNotSwapped = 0x200;
constexpr int flagWriteable = 0x400;

PyObject *internedArrayStruct() {
  static PyObject *name = PyUnicode_InternFromString("__array_struct__");
  return name;
}

/// Returns the spelling of an array's dtype: "float64", "bfloat16", ">f4".
std::string dtypeText(PyObject *array) {
  return textOf(nb::handle(array).attr("dtype"));
}

int32_t dtypeOf(PyObject *array, const ArrayInterface &info) {
  int bits = 8 * info.itemsize;
  switch (info.typekind) {
  case 'i':
    return dlpack::dtypeByCode(dlpack::codeInt, bits);
  case 'u':
    return dlpack::dtypeByCode(dlpack::codeUInt, bits);
  case 'b':
    return dlpack::dtypeByCode(dlpack::codeBool, bits);
  case 'f':
    if (info.itemsize == 4)
      return dlpack::dtypeByCode(dlpack::codeFloat, bits);
    // Some versions of ml_dtypes use 'f' for their types.
    [[fallthrough]];
  case 'V':
    // numpy has neither bf16 nor fp8. These dtypes come from ml_dtypes, and are
    // identified by their names.
    return dtypeByName(dtypeText(array));
  default:
    return 0;
  }
}

} // namespace

void mlafix::python::readNumpy(PyObject *object, const ArgContext &place,
                               TensorView &view) {
  nb::object capsule =
      nb::steal(PyObject_GetAttr(object, internedArrayStruct()));
  if (!capsule.is_valid())
    nb::raise_python_error();
  auto *info = static_cast<const ArrayInterface *>(
      PyCapsule_GetPointer(capsule.ptr(), nullptr));
  if (!info)
    nb::raise_python_error();
  view.dtype = dtypeOf(object, *info);
  if (view.dtype == 0 || !(info->flags & flagNotSwapped))
    place.failOfDType(dtypeText(object).c_str());
  if (info->nd > MLAFIX_MAX_DIMS)
    place.fail("expected at most %d dims, got %d", MLAFIX_MAX_DIMS, info->nd);
  view.ndim = static_cast<uint32_t>(info->nd);
  view.device = {MLAFIX_CPU, 0};
  view.data = info->data;
  view.readOnly = !(info->flags & flagWriteable);
  for (uint32_t i = 0; i < view.ndim; ++i) {
    view.sizes[i] = info->shape[i];
    view.strides[i] = info->strides[i] / info->itemsize;
    if (info->strides[i] % info->itemsize != 0 && info->shape[i] > 1)
      place.fail("expected strides that are multiples of the element's %d "
                 "bytes, got %lld bytes in dim %u",
                 info->itemsize, static_cast<long long>(info->strides[i]), i);
  }
}
