//===- LoadedLibrary.h - functions of what is loaded ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_LOADEDLIBRARY_H
#define MLAFIX_PYTHON_LOADEDLIBRARY_H

#include <dlfcn.h>

namespace mlafix::python {

/// A library that the process has already loaded.
class LoadedLibrary {
public:
  explicit LoadedLibrary(const char *name)
      : handle(dlopen(name, RTLD_NOW | RTLD_NOLOAD)) {}

  /// Sets `function`, or sets it to null if the library has no function of this
  /// name.
  template <typename Function>
  void find(const char *name, Function *&function) const {
    function =
        handle ? reinterpret_cast<Function *>(dlsym(handle, name)) : nullptr;
  }

private:
  void *handle; // never closed, since torch stays loaded
};

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_LOADEDLIBRARY_H
