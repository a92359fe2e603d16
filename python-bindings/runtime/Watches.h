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

/// Names that a kernel was compiled with, each with the object that it stood
/// for. A call compares pointers: a few nanoseconds a name.
class Watches {
public:
  /// `names` is a list of tuples (holder, key, value): an item of a dict, the
  /// attribute `key` of another object, or of a list (key None) the tuple of
  /// its elements. (holder, key) is an item that a dict does not have.
  /// `changed()` is called when a comparison fails: it raises if a name means
  /// something else, and returns the list to compare with from then on.
  void set(nanobind::list names, nanobind::object changed);

  /// Raises what `changed` raises.
  void check() {
    // By index, since an attribute may run Python code, which may call `set`.
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
    PyObject *holder, *key, *value; ///< owned by `names`
    bool holds() const;
  };

  void renew();

  std::vector<Name> watched;
  nanobind::object names, changed;
};

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_WATCHES_H
