//===- Module.cpp - The extension module mlafix._runtime ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The module loads units and launches kernels on numpy arrays, torch tensors
// and other objects with DLPack. It needs no LLVM.
//
//===----------------------------------------------------------------------===//

#include "Bound.h"
#include "Dispatcher.h"
#include "Errors.h"
#include "NewTensor.h"
#include "Peers.h"
#include "UnitModule.h"
#include "python-bindings/shared/Finalization.h"

#include <cfenv>
#include <cstring>

namespace nb = nanobind;

/// Adds two functions that set and restore a thread's floating-point
/// environment. The package calls them around the translation of a kernel, so
/// that the kernel's constants do not depend on the rounding mode of the
/// calling thread.
static void bindArithmetic(nb::module_ &module) {
  module.def(
      "default_arithmetic",
      [] {
        std::fenv_t before;
        std::fegetenv(&before);
        std::fesetenv(FE_DFL_ENV);
        return nb::bytes(&before, sizeof(before));
      },
      "Has this thread round to nearest, keep subnormals and never trap. "
      "Returns what restore_arithmetic takes.");
  module.def(
      "restore_arithmetic",
      [](nb::bytes before) {
        std::fenv_t environment;
        if (before.size() != sizeof(environment))
          throw nb::value_error("expected the bytes that default_arithmetic "
                                "returned, got another number of bytes");
        std::memcpy(&environment, before.data(), sizeof(environment));
        std::fesetenv(&environment);
      },
      nb::arg("before"));
}

NB_MODULE(_runtime, module) {
  module.doc() = "The mlafix runtime: units, tensors, launches.";
  module.attr("__version__") = mlafix_version();
  module.attr("ABI_VERSION") = mlafix_abi_version();
  nb::list targets, emissions, assemblers;
#define MLAFIX_GPU_TARGET(CAPABILITY) targets.append("sm_" #CAPABILITY);
#define MLAFIX_CPU_TARGET(NAME, ARCHITECTURE, LEVEL) targets.append(NAME);
#include "mlafix/Targets.def"
  module.attr("TARGETS") = nb::tuple(targets);
  // The choices of the options --emit and --assembler. The command line needs
  // them even if the compiler is not installed.
#define MLAFIX_EMISSION(EMIT, NAME, MEANING) emissions.append(NAME);
#define MLAFIX_ASSEMBLER(KIND, NAME, MEANING) assemblers.append(NAME);
#include "mlafix/CompilerOptions.def"
  module.attr("EMISSIONS") = nb::tuple(emissions);
  module.attr("ASSEMBLERS") = nb::tuple(assemblers);
  mlafix::python::Call::waitAtExit();
  mlafix::python::importErrors();
  bindArithmetic(module);
  mlafix::python::bindUnits(module);
  mlafix::python::bindBound(module);
  mlafix::python::bindNewTensor(module);
  mlafix::python::bindPeers(module);
  mlafix::python::bindDispatcher(module);
  // Programs keep kernels in globals of their modules, so some kernels may be
  // alive at exit. nanobind would report them as leaks.
  nb::set_leak_warnings(false);
}
