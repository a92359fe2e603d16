//===- BuilderModule.h - mlafix.KernelBuilder in Python ---------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_COMPILER_BUILDERMODULE_H
#define MLAFIX_PYTHON_COMPILER_BUILDERMODULE_H

#include <nanobind/nanobind.h>

namespace mlafix::python {

/// Adds the Python classes Location, Value, ValueType and KernelBuilder to a
/// module.
void bindBuilder(nanobind::module_ &module);

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_COMPILER_BUILDERMODULE_H
