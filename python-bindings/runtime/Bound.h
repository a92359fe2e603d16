//===- Bound.h - A call bound once, launched many times ---------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_BOUND_H
#define MLAFIX_PYTHON_BOUND_H

#include "Args.h"
#include "UnitModule.h"
#include <memory>

namespace mlafix::python {

/// CPU launches of at least this many bytes release the interpreter's lock. For
/// smaller launches, taking the lock again costs more than the launch.
constexpr uint64_t releaseBytes = 256 << 10;

struct BoundDeleter {
  void operator()(mlafix_bound *bound) const { mlafix_bound_destroy(bound); }
};

/// A kernel with checked arguments, ready to be launched. Keeps the tensors,
/// the signature and the code alive.
class Bound {
public:
  Bound(std::shared_ptr<const Signature> signature,
        std::shared_ptr<mlafix_unit> unit, mlafix_bound *bound, CallArgs &&args,
        nanobind::object tensors, uint32_t flags);

  void launch(nanobind::handle stream) const;
  /// Replaces the tensors' pointers and the scalars. A new tensor must have the
  /// dtype, sizes, strides and device of the old one. An integer is taken as
  /// the address of such a tensor. Throws ArgumentError.
  void setPointers(nanobind::handle args);
  /// Returns what a launch passes to the driver, so that a caller can add the
  /// launch to a graph by hand. Also says which code version is launched, and
  /// why the others are not.
  nanobind::typed<nanobind::dict, nanobind::str, nanobind::any>
  launchInfo() const;

  /// The tuple of arguments. The garbage collector visits it (traverseBound).
  nanobind::object tensors;

private:
  uint64_t newPointer(const ArgSpec &spec, nanobind::handle object,
                      uint32_t index, const ArgContext &place,
                      Conversion &fresh) const;

  std::shared_ptr<const Signature> signature;
  std::shared_ptr<mlafix_unit> unit; // destroyed after the handle
  std::unique_ptr<mlafix_bound, BoundDeleter> handle;
  /// The view of each tensor argument as it was bound. All other arguments have
  /// an empty view.
  std::vector<TensorView> shapes;
  std::vector<bool> present;
  Conversion conversion;
  mlafix_device device;
  uint64_t bytes;
  /// The number of running launches that have released the interpreter's lock.
  mutable int inFlight = 0;
};

void bindBound(nanobind::module_ &module);

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_BOUND_H
