//===- LoadedLibrary.h - Functions of loaded libraries ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_LOADEDLIBRARY_H
#define MLAFIX_PYTHON_LOADEDLIBRARY_H

#include <dlfcn.h>

namespace mlafix::python {

/// A handle of a library that the process may have loaded. The constructor
/// loads nothing. If the process has not loaded the library, `find` sets
/// functions to null.
class LoadedLibrary {
public:
  explicit LoadedLibrary(const char *name)
      : handle(dlopen(name, RTLD_NOW | RTLD_NOLOAD)) {}

  /// Sets `function` to the library's function `name`, or to null if there is
  /// none.
  template <typename Function>
  void find(const char *name, Function *&function) const {
    function =
        handle ? reinterpret_cast<Function *>(dlsym(handle, name)) : nullptr;
  }

private:
  // Null if the library is not loaded. Never closed, since the libraries are
  // torch's, and torch stays loaded.
  void *handle;
};

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_LOADEDLIBRARY_H
