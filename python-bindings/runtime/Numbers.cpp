//===- Numbers.cpp - Numbers and streams of one call ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Args.h"
#include "Errors.h"

#include <cmath>

namespace nb = nanobind;
using namespace mlafix::python;

namespace {

/// Types whose numbers would have to be fetched from a device, or that are
/// tensors of one element by accident.
bool isTensorLike(PyObject *object) {
  return !PyLong_Check(object) && !PyFloat_Check(object) &&
         hasAttribute(object, "__dlpack__") && hasAttribute(object, "shape") &&
         !hasAttribute(object, "__array_struct__");
}

/// An integer in digits; in bits where these would fill a message.
std::string integerText(nb::handle integer) {
  constexpr int64_t mostBits = 128;
  nb::object bits = integer.attr("bit_length")();
  return nb::cast<int64_t>(bits) <= mostBits
             ? textOf(integer)
             : "an integer of " + textOf(bits) + " bits";
}

int64_t readInteger(PyObject *object, const ArgContext &place) {
  if (PyBool_Check(object) || isTensorLike(object))
    place.fail("expected an integer, got %s", typeName(object).c_str());
  nb::object number = nb::steal(PyNumber_Index(object));
  if (!number.is_valid()) {
    clearException();
    place.fail("expected an integer, got %s", typeName(object).c_str());
  }
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow)
    place.fail("expected an integer of 64 bits, got %s",
               integerText(number).c_str());
  return value;
}

/// Whatever is finite stays so. Infinity is itself.
float readFloat(PyObject *object, const ArgContext &place) {
  if (PyBool_Check(object) || isTensorLike(object))
    place.fail("expected a number, got %s", typeName(object).c_str());
  double value = PyFloat_AsDouble(object);
  if (value == -1 && PyErr_Occurred()) {
    bool isLarge = PyErr_ExceptionMatches(PyExc_OverflowError);
    clearException();
    if (isLarge && PyLong_Check(object))
      place.fail("expected a number that an f32 holds, got %s",
                 integerText(object).c_str());
    place.fail("expected a number, got %s", typeName(object).c_str());
  }
  auto rounded = static_cast<float>(value);
  if (std::isinf(rounded) && !std::isinf(value))
    place.fail("expected a number that an f32 holds, got %.9g", value);
  return rounded;
}

bool readBool(PyObject *object, const ArgContext &place) {
  if (PyBool_Check(object))
    return object == Py_True;
  std::string type = typeName(object);
  if (type != "numpy.bool" && type != "numpy.bool_")
    place.fail("expected a bool, got %s", typeName(object).c_str());
  int truth = PyObject_IsTrue(object);
  if (truth < 0)
    nb::raise_python_error();
  return truth == 1;
}

/// The number in a stream object's attribute or method, or false.
bool streamHandle(PyObject *object, uintptr_t &handle) {
  // torch.cuda.Stream
  nb::object value = nb::steal(PyObject_GetAttrString(object, "cuda_stream"));
  if (!value.is_valid()) {
    clearException();
    // cuda.core, cupy, numba: (version, handle)
    value = nb::steal(PyObject_GetAttrString(object, "__cuda_stream__"));
    if (!value.is_valid()) {
      clearException();
      return false;
    }
    if (PyCallable_Check(value.ptr()))
      value = nb::steal(PyObject_CallNoArgs(value.ptr()));
    if (!value.is_valid())
      nb::raise_python_error();
    nb::object pair = pairOf(value);
    if (!pair.is_valid())
      return false;
    value = nb::borrow(NB_TUPLE_GET_ITEM(pair.ptr(), 1));
  }
  handle = PyLong_AsSize_t(value.ptr());
  if (handle == static_cast<size_t>(-1) && PyErr_Occurred()) {
    clearException();
    return false;
  }
  return true;
}

} // namespace

void mlafix::python::readScalar(PyObject *object, const ArgSpec &spec,
                                const ArgContext &place, mlafix_arg &out) {
  out.struct_size = sizeof(mlafix_arg);
  out.kind = spec.kind;
  switch (spec.kind) {
  case MLAFIX_ARG_I64:
    out.value.i64 = readInteger(object, place);
    return;
  case MLAFIX_ARG_I32: {
    int64_t value = readInteger(object, place);
    if (value < INT32_MIN || value > INT32_MAX)
      place.fail("expected an integer of 32 bits, got %lld",
                 static_cast<long long>(value));
    out.value.i32 = static_cast<int32_t>(value);
    return;
  }
  case MLAFIX_ARG_F32:
    out.value.f32 = readFloat(object, place);
    return;
  default:
    out.value.boolean = readBool(object, place);
  }
}

void *mlafix::python::readStream(PyObject *object, const Conversion &conversion,
                                 mlafix_device device) {
  if (object == Py_None) {
    if (device.type != MLAFIX_CUDA)
      return nullptr;
    if (conversion.streamApi) {
      void *stream = nullptr;
      if (conversion.streamApi->currentStream(dlpack::deviceCuda,
                                              device.ordinal, &stream) == 0)
        return stream;
      if (PyErr_Occurred())
        nb::raise_python_error();
      throwArgumentError("argument \"stream\": expected the tensors' framework "
                         "to name its current stream, got none");
    }
    return conversion.torchStream ? currentTorchStream(device.ordinal)
                                  : nullptr;
  }
  uintptr_t handle = 0;
  if (PyLong_Check(object) && !PyBool_Check(object)) {
    handle = PyLong_AsSize_t(object);
    if (handle != static_cast<size_t>(-1) || !PyErr_Occurred())
      return reinterpret_cast<void *>(handle);
    clearException();
  } else if (streamHandle(object, handle)) {
    return reinterpret_cast<void *>(handle);
  }
  throwArgumentError("argument \"stream\": expected None, the integer handle "
                     "of a CUDA stream, or an object with cuda_stream or "
                     "__cuda_stream__, got %s",
                     PyLong_Check(object) ? reprOf(object).c_str()
                                          : typeName(object).c_str());
}
