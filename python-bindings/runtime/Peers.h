//===- Peers.h - Tensors of all ranks in Python -----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_PEERS_H
#define MLAFIX_PYTHON_PEERS_H

#include "Tensor.h"

#include "mlafix/UnitLimits.h"
#include <functional>
#include <vector>

namespace mlafix::python {

/// The group of ranks that launch a kernel together: a mlafix_group and the
/// array to which it points.
class PeerGroup {
public:
  PeerGroup(uint32_t rank, std::vector<uintptr_t> workspaces, double timeout,
            uintptr_t failure, uint64_t slots);

  const mlafix_group *get() const { return &group; }
  uint32_t rank() const { return group.rank; }
  uint32_t ranks() const { return group.ranks; }
  void check() const;

private:
  std::vector<void *> addresses;
  mlafix_group group;
};

/// The tensors of all ranks, and for tensors on GPUs, the group of the ranks.
struct PeerTensors {
  nanobind::tuple tensors;
  nanobind::object group; ///< a PeerGroup, or None
};

/// The arguments of one call that have several tensors each. The mlafix_arg of
/// such an argument points to memory in this struct. The struct lives on the
/// stack, and members that the call does not use stay uninitialised.
struct PeerArgs {
  struct One {
    mlafix_peers peers;
    mlafix_tensor each;
    void *data[MLAFIX_MAX_RANKS];
  };
  One args[mlafix::limits::peers];
  uint32_t count;

  /// Reads the tensors of `object`: a list, a tuple or, if `isList` is false, a
  /// PeerTensors. Calls `read` for each tensor. Sets `view` to the view of the
  /// first tensor, with one more dim in front that counts the tensors. Returns
  /// the pointer for the mlafix_arg. Throws ArgumentError.
  const mlafix_peers *
  add(PyObject *object, bool isList, const ArgContext &place,
      const std::function<void(PyObject *object, TensorView &view)> &read,
      TensorView &view);
};

/// True if `object` is a list, a tuple or a PeerTensors of plain torch tensors.
bool arePlain(PyObject *object);

void bindPeers(nanobind::module_ &module);

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_PEERS_H
