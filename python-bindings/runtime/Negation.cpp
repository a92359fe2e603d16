//===- Negation.cpp - lazily negated tensors of torch ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Views of any dtype and strides may be negated lazily: torch._neg_view(x), the
// imaginary part of a conjugate. A method of Python costs tens of nanoseconds a
// tensor, and torch's C++ function five, so that is what is asked where tensors
// are found to lie in their Python objects as it takes them.
//
//===----------------------------------------------------------------------===//

#include "Negation.h"
#include "Errors.h"
#include "LoadedLibrary.h"

namespace nb = nanobind;
using namespace mlafix::python;

namespace {

/// The at::Tensor in torch's object for one: what comes first in it.
const void *tensorIn(PyObject *object) { return object + 1; }

/// True if it is there: an at::Tensor is a pointer, which torch tells.
bool holdsTensor(nb::handle object) {
  auto address = nb::cast<uintptr_t>(object.attr("_cdata"));
  return *static_cast<const uintptr_t *>(tensorIn(object.ptr())) == address;
}

struct Torch {
  PyObject *isNeg = PyUnicode_InternFromString("is_neg");
  bool (*ask)(const void *tensor);

  Torch() {
    // bool at::native::is_neg(const at::Tensor &)
    LoadedLibrary("libtorch_cpu.so")
        .find("_ZN2at6native6is_negERKNS_6TensorE", ask);
    if (ask && !isAsExpected())
      ask = nullptr;
  }

  bool isAsExpected() const {
    try {
      nb::handle torch(importedModule("torch"));
      nb::object plain = torch.attr("empty")(1, nb::arg("device") = "cpu");
      nb::object negated = torch.attr("_neg_view")(plain);
      return holdsTensor(plain) && holdsTensor(negated) &&
             !ask(tensorIn(plain.ptr())) && ask(tensorIn(negated.ptr()));
    } catch (const nb::python_error &) {
      return false;
    }
  }
};

} // namespace

bool mlafix::python::isNegated(PyObject *tensor, bool isPlain) {
  const Torch &torch = lookedUp<Torch>();
  if (isPlain && torch.ask)
    return torch.ask(tensorIn(tensor));
  nb::object answer =
      nb::steal(PyObject_CallMethodObjArgs(tensor, torch.isNeg, nullptr));
  if (!answer.is_valid())
    nb::raise_python_error();
  return answer.ptr() == Py_True;
}
