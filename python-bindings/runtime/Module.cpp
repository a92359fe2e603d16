//===- Module.cpp - The extension module mlafix._runtime ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Loads units and launches kernels on numpy arrays, torch tensors and whatever
// else speaks DLPack. Needs no LLVM.
//
//===----------------------------------------------------------------------===//

#include "Bound.h"
#include "Dispatcher.h"
#include "Errors.h"
#include "NewTensor.h"
#include "Peers.h"
#include "UnitModule.h"

namespace nb = nanobind;

NB_MODULE(_runtime, module) {
  module.doc() = "The mlafix runtime: units, tensors, launches.";
  module.attr("__version__") = mlafix_version();
  module.attr("ABI_VERSION") = mlafix_abi_version();
  nb::list targets;
#define MLAFIX_GPU_TARGET(CAPABILITY) targets.append("sm_" #CAPABILITY);
#define MLAFIX_CPU_TARGET(NAME, LEVEL) targets.append(NAME);
#include "mlafix/Targets.def"
  module.attr("TARGETS") = nb::tuple(targets);
  mlafix::python::importErrors();
  mlafix::python::bindUnits(module);
  mlafix::python::bindBound(module);
  mlafix::python::bindNewTensor(module);
  mlafix::python::bindPeers(module);
  mlafix::python::bindDispatcher(module);
  // Kernels are module globals, which outlive the interpreter's last sweep.
  nb::set_leak_warnings(false);
}
