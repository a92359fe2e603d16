//===- Watches.h - Outside names that must not change -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_WATCHES_H
#define MLAFIX_PYTHON_WATCHES_H

#include <nanobind/nanobind.h>
#include <vector>

namespace mlafix::python {

/// The names that a kernel uses but does not define, such as globals, each with
/// the object that the name stood for when the kernel was compiled. A call
/// compares the pointers, which takes a few nanoseconds per name.
class Watches {
public:
  /// Sets the names to watch. `names` is a list of tuples:
  ///
  ///   - (holder, key, value): the item `key` of a dict, or the attribute `key`
  ///     of another object, must be `value`.
  ///   - (list, None, elements): the list must have the elements of a tuple.
  ///   - (dict, key): the dict must not have the item `key`.
  ///
  /// `changed()` is called if a comparison fails. It raises if a name now means
  /// something else, and otherwise returns the names to watch from then on.
  void set(nanobind::list names, nanobind::object changed);

  /// Compares the names with their objects, and calls `changed` if one differs.
  /// Throws the exceptions of `changed`.
  void check() {
    // Iterate by index, since looking up an attribute may run Python code that
    // calls `set` and replaces the vector.
    for (size_t i = 0; i < watched.size(); ++i)
      if (!watched[i].holds()) {
        renew();
        return;
      }
  }

  int traverse(visitproc visit, void *arg) const;
  void clear();

private:
  struct Name {
    enum { Item, Attribute, Elements } kind;
    PyObject *holder, *key, *value; ///< borrowed from `names`
    bool holds() const;
  };

  void renew();

  std::vector<Name> watched;
  nanobind::object names, changed;
};

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_WATCHES_H
