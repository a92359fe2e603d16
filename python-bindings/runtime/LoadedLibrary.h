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

/// A library that the process has already loaded. If it is not loaded, `find`
/// finds nothing.
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
  void *handle; // null if not loaded; never closed, since torch stays loaded
};

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_LOADEDLIBRARY_H
