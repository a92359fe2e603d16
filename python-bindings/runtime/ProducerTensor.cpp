//===- ProducerTensor.cpp - Objects with __dlpack__ as tensors ------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Errors.h"
#include "Tensor.h"

namespace nb = nanobind;
using namespace mlafix::python;

namespace {

/// Returns the `stream` argument of __dlpack__: None on the CPU. On CUDA, it is
/// the stream's address, or 1 for the legacy default stream.
nb::object streamArgument(long deviceType, void *stream) {
  if (deviceType != dlpack::deviceCuda &&
      deviceType != dlpack::deviceCudaManaged)
    return nb::none();
  auto number = reinterpret_cast<uintptr_t>(stream);
  return nb::int_(number == 0 ? 1 : number);
}

/// Returns DLPack's number for the type of the producer's device: the first of
/// the two integers that __dlpack_device__ returns.
long readDeviceType(PyObject *producer, const ArgContext &place) {
  nb::object answer =
      nb::steal(PyObject_CallMethod(producer, "__dlpack_device__", nullptr));
  if (!answer.is_valid())
    place.failBecause(producer, "whose __dlpack_device__ failed");
  nb::object pair = pairOf(answer), first;
  if (pair.is_valid())
    first = nb::steal(PyNumber_Index(NB_TUPLE_GET_ITEM(pair.ptr(), 0)));
  long type = first.is_valid() ? PyLong_AsLong(first.ptr()) : -1;
  clearException();
  if (type < 0)
    place.fail("expected __dlpack_device__ of %s to give a pair of integers, "
               "the device's type and number, got %s",
               typeName(producer).c_str(), reprOf(answer).c_str());
  return type;
}

/// Calls __dlpack__ of a producer. Returns null with an exception pending if
/// the call fails. Older producers do not accept the argument `max_version`, so
/// after a TypeError the call is repeated without this argument.
nb::object makeCapsule(nb::handle producer, nb::object stream) {
  nb::object method =
      nb::steal(PyObject_GetAttrString(producer.ptr(), "__dlpack__"));
  nb::dict options;
  options["stream"] = stream;
  options["max_version"] = nb::make_tuple(1, 0);
  auto call = [&] {
    return nb::steal(
        PyObject_Call(method.ptr(), nb::tuple().ptr(), options.ptr()));
  };
  if (!method.is_valid())
    return method;
  nb::object capsule = call();
  if (capsule.is_valid() || !PyErr_ExceptionMatches(PyExc_TypeError))
    return capsule;
  PyErr_Clear();
  PyDict_DelItemString(options.ptr(), "max_version");
  return call();
}

} // namespace

/// True if the object's buffer protocol says that its memory is read-only.
static bool isReadOnlyBuffer(PyObject *object) {
  if (!PyObject_CheckBuffer(object))
    return false;
  Py_buffer buffer;
  if (PyObject_GetBuffer(object, &buffer, PyBUF_FULL_RO) != 0) {
    clearException(); // for example, the protocol does not support the dtype
    return false;
  }
  bool isReadOnly = buffer.readonly;
  PyBuffer_Release(&buffer);
  return isReadOnly;
}

/// True if the attribute `name`, an array interface of numpy or numba, says
/// that the memory is read-only. The item "data" of an array interface is a
/// pair (address, is read-only).
static bool isReadOnlyInterface(PyObject *object, const char *name) {
  nb::object interface = nb::steal(PyObject_GetAttrString(object, name)), data;
  if (interface.is_valid() && PyDict_Check(interface.ptr()))
    data = nb::borrow(PyDict_GetItemString(interface.ptr(), "data"));
  clearException();
  nb::object pair = data.is_valid() ? pairOf(data) : nb::object();
  return pair.is_valid() &&
         PyObject_IsTrue(NB_TUPLE_GET_ITEM(pair.ptr(), 1)) == 1;
}

bool mlafix::python::saysReadOnly(PyObject *object) {
  return isReadOnlyBuffer(object) ||
         isReadOnlyInterface(object, "__cuda_array_interface__") ||
         isReadOnlyInterface(object, "__array_interface__");
}

void mlafix::python::readProducer(PyObject *object, const ArgContext &place,
                                  Conversion &conversion, TensorView &view) {
  long deviceType = readDeviceType(object, place);
  nb::object capsule = makeCapsule(
      object, streamArgument(deviceType, conversion.producerStream));
  if (!capsule.is_valid())
    place.failBecause(object, "whose __dlpack__ failed");
  // A consumer that takes over the memory would rename the capsule. Here, the
  // capsule keeps its name, so that the capsule's destructor frees the memory.
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    auto *managed = static_cast<dlpack::ManagedTensorVersioned *>(
        PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    if (managed->version.major != dlpack::majorVersion)
      place.fail("expected a tensor of DLPack %u, got one of DLPack %u",
                 dlpack::majorVersion, managed->version.major);
    readDLPack(managed->tensor, place, view);
    // A copy counts as read-only: no one would see what a kernel writes to it.
    view.readOnly =
        managed->flags & (dlpack::flagReadOnly | dlpack::flagIsCopied);
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    auto *managed = static_cast<dlpack::ManagedTensor *>(
        PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
    readDLPack(managed->tensor, place, view);
  } else {
    place.fail("expected a DLPack capsule from __dlpack__ of %s, got %s",
               typeName(object).c_str(), typeName(capsule).c_str());
  }
  conversion.keepAlive.push_back(std::move(capsule));
}
