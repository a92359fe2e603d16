//===- Watches.h - names that must stand for what they did ------*- C++ -*-===//
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

/// Names with which a kernel was compiled, each with the object for which it
/// stood. A call compares pointers, in a few nanoseconds per name.
class Watches {
public:
  /// Sets the names to watch. `names` is a list of tuples (holder, key, value):
  /// an item of a dict, an attribute `key` of another object, or, with the key
  /// None, a list with the tuple of its elements. A tuple (holder, key) stands
  /// for an item that a dict must not have. `changed()` is called if a
  /// comparison fails. It raises if a name means something else, and otherwise
  /// returns the names to watch from then on.
  void set(nanobind::list names, nanobind::object changed);

  /// Compares the names. Throws the exceptions of `changed`.
  void check() {
    // Iterate by index, since an attribute may run Python code that calls
    // `set`.
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
