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

/// A library that is loaded already.
class LoadedLibrary {
public:
  explicit LoadedLibrary(const char *name)
      : handle(dlopen(name, RTLD_NOW | RTLD_NOLOAD)) {}

  /// Sets `function`, to null where there is none of this name.
  template <typename Function>
  void find(const char *name, Function *&function) const {
    function =
        handle ? reinterpret_cast<Function *>(dlsym(handle, name)) : nullptr;
  }

private:
  void *handle; // Never closed: torch stays.
};

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_LOADEDLIBRARY_H
