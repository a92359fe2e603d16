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
/// smaller ones, taking the lock again costs more than the launch.
constexpr uint64_t releaseBytes = 256 << 10;

struct BoundDeleter {
  void operator()(mlafix_bound *bound) const { mlafix_bound_destroy(bound); }
};

/// A kernel with checked arguments. Keeps the tensors, the signature and the
/// code alive.
class Bound {
public:
  Bound(std::shared_ptr<const Signature> signature,
        std::shared_ptr<mlafix_unit> unit, mlafix_bound *bound, CallArgs &&args,
        nanobind::object tensors, uint32_t flags);

  void launch(nanobind::handle stream) const;
  /// Replaces pointers and scalars. New tensors (or addresses of tensors) must
  /// have the same dtypes, sizes, strides and device.
  void setPointers(nanobind::handle args);
  /// The arguments of the driver's launch call, for graphs that are built by
  /// hand.
  nanobind::typed<nanobind::dict, nanobind::str, nanobind::any>
  launchInfo() const;

  /// Visited by the garbage collector (traverseBound).
  nanobind::object tensors;

private:
  uint64_t newPointer(const ArgSpec &spec, nanobind::handle object,
                      uint32_t index, const ArgContext &place,
                      Conversion &fresh) const;

  std::shared_ptr<const Signature> signature;
  std::shared_ptr<mlafix_unit> unit; // destroyed after the handle
  std::unique_ptr<mlafix_bound, BoundDeleter> handle;
  /// The view of each tensor, without its pointer. An omitted tensor has only
  /// an ndim.
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
