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

/// What __dlpack__ wants for `stream`: None on the CPU; on CUDA a number, in
/// which the legacy default stream is 1.
nb::object streamArgument(int32_t deviceType, void *stream) {
  if (deviceType != dlpack::deviceCuda &&
      deviceType != dlpack::deviceCudaManaged)
    return nb::none();
  auto number = reinterpret_cast<uintptr_t>(stream);
  return nb::int_(number == 0 ? 1 : number);
}

/// Older producers know neither `max_version` nor the capsule that says
/// whether memory is read-only.
nb::object makeCapsule(nb::handle producer, nb::object stream) {
  nb::object method = producer.attr("__dlpack__");
  try {
    return method(nb::arg("stream") = stream,
                  nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error &error) {
    if (!error.matches(PyExc_TypeError))
      throw;
  }
  return method(nb::arg("stream") = stream);
}

} // namespace

void mlafix::python::readProducer(PyObject *object, const ArgPlace &place,
                                  Conversion &conversion, TensorView &view) {
  nb::handle producer(object);
  nb::tuple device(producer.attr("__dlpack_device__")());
  auto deviceType = nb::cast<int32_t>(nb::int_(device[0]));
  nb::object capsule;
  try {
    capsule = makeCapsule(
        producer, streamArgument(deviceType, conversion.producerStream));
  } catch (nb::python_error &error) {
    place.fail("expected %s, got %s, whose __dlpack__ failed: %s",
               place.expected, Py_TYPE(object)->tp_name,
               nb::str(error.value()).c_str());
  }
  // The capsule stays ours and unused: its own destructor gives the memory
  // back.
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    auto *managed = static_cast<dlpack::ManagedTensorVersioned *>(
        PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    if (managed->version.major != dlpack::majorVersion)
      place.fail("expected a tensor of DLPack %u, got one of DLPack %u",
                 dlpack::majorVersion, managed->version.major);
    readDLPack(managed->tensor, place, view);
    // What is written to a copy reaches nobody.
    view.readOnly =
        managed->flags & (dlpack::flagReadOnly | dlpack::flagIsCopied);
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    auto *managed = static_cast<dlpack::ManagedTensor *>(
        PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
    readDLPack(managed->tensor, place, view);
  } else {
    place.fail("expected a DLPack capsule from __dlpack__ of %s, got %s",
               Py_TYPE(object)->tp_name, Py_TYPE(capsule.ptr())->tp_name);
  }
  conversion.keepAlive.push_back(std::move(capsule));
}
