//===- UnitModule.h - Units and kernels in Python ---------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_UNITMODULE_H
#define MLAFIX_PYTHON_UNITMODULE_H

#include "mlafix/runtime.h"
#include <memory>
#include <nanobind/nanobind.h>
#include <string>

namespace mlafix::python {

/// A loaded unit. Kernels and bound calls share its handle, so that they may
/// outlive the Python object.
struct Unit {
  std::shared_ptr<mlafix_unit> handle;

  static Unit adopt(mlafix_unit *unit) {
    return {std::shared_ptr<mlafix_unit>(unit, mlafix_unit_destroy)};
  }
};

/// One kernel of a unit. It keeps the unit alive.
struct KernelInfo {
  std::shared_ptr<mlafix_unit> unit;
  const mlafix_kernel *handle;
};

/// Converts a dict such as {"D": 128, "T": "bf16"} to "D=128,T=bf16", and None
/// to "". Throws ArgumentError for anything else.
std::string bindingsText(nanobind::handle bindings);

/// Parses a device in Python's form: "cpu", "cuda", "cuda:1". Throws
/// ArgumentError.
mlafix_device parseDevice(std::string_view text);

void bindUnits(nanobind::module_ &module);

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_UNITMODULE_H
