//===- Watches.cpp - Outside names that must not change -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Watches.h"

namespace nb = nanobind;
using namespace mlafix::python;

/// True if a list has exactly the objects of the tuple `elements`.
static bool hasElements(PyObject *list, PyObject *elements) {
  Py_ssize_t size = PyList_Size(list);
  if (size != PyTuple_Size(elements))
    return false;
  for (Py_ssize_t i = 0; i < size; ++i)
    if (PyList_GetItem(list, i) != PyTuple_GetItem(elements, i))
      return false;
  return true;
}

bool Watches::Name::holds() const {
  if (kind == Elements)
    return hasElements(holder, value);
  PyObject *expected = value;
  PyObject *found = nullptr;
  if (kind == Item) {
    found = PyDict_GetItemWithError(holder, key);
  } else {
    // Looking up an attribute may run Python code, which may drop the watched
    // objects. Keep the holder alive, and only compare the pointers.
    nb::object of = nb::borrow(holder);
    found = PyObject_GetAttr(of.ptr(), key);
    Py_XDECREF(found);
  }
  if (!found)
    PyErr_Clear(); // the look-up in `changed` reports the error
  return found == expected;
}

void Watches::set(nb::list given, nb::object whenChanged) {
  std::vector<Name> read;
  for (nb::handle one : given) {
    nb::tuple fields = nb::cast<nb::tuple>(one);
    PyObject *holder = fields[0].ptr();
    read.push_back({PyDict_Check(holder)   ? Name::Item
                    : PyList_Check(holder) ? Name::Elements
                                           : Name::Attribute,
                    holder, fields[1].ptr(),
                    fields.size() > 2 ? fields[2].ptr() : nullptr});
  }
  watched.swap(read);
  std::swap(names, static_cast<nb::object &>(given));
  std::swap(changed, whenChanged);
}

void Watches::renew() {
  nb::object call = changed;
  set(nb::cast<nb::list>(call()), call);
}

int Watches::traverse(visitproc visit, void *arg) const {
  Py_VISIT(names.ptr());
  Py_VISIT(changed.ptr());
  return 0;
}

void Watches::clear() {
  watched.clear();
  names.reset();
  changed.reset();
}
