//===- Peers.cpp - Tensors of all ranks in Python -------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Peers.h"
#include "Errors.h"

#include <algorithm>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace mlafix::python;

PeerGroup::PeerGroup(uint32_t rank, std::vector<uintptr_t> workspaces,
                     double timeout, uintptr_t failure, uint64_t slots) {
  if (workspaces.empty() || workspaces.size() > MLAFIX_MAX_RANKS ||
      rank >= workspaces.size())
    throwArgumentError("argument \"workspaces\": expected one for each of 1 to "
                       "%d ranks, and a rank below, got %zu and rank %u",
                       int(MLAFIX_MAX_RANKS), workspaces.size(), rank);
  constexpr double mostSeconds = 1e9;
  if (!(timeout > 0 && timeout <= mostSeconds))
    throwArgumentError("argument \"timeout\": expected seconds above 0 and at "
                       "most 1e9, got %s",
                       reprOf(nb::float_(timeout)).c_str());
  for (uintptr_t address : workspaces)
    addresses.push_back(reinterpret_cast<void *>(address));
  group = MLAFIX_GROUP_INIT;
  group.ranks = static_cast<uint32_t>(addresses.size());
  group.rank = rank;
  group.workspaces = addresses.data();
  group.timeout_ns = static_cast<uint64_t>(timeout * 1e9);
  group.failure = reinterpret_cast<uint64_t *>(failure);
  group.slots = slots;
}

void PeerGroup::check() const {
  mlafix::python::check(mlafix_group_check(&group));
}

/// Returns an error message if the tensor `each` differs in dtype, device,
/// sizes or strides from the first tensor, else "". In the message, `whose` is
/// the name of the first tensor and `others` is that of `each`. Dim 0 of
/// `first` counts the tensors, so dim i of `each` is dim i + 1 of `first`.
static std::string differenceOf(const TensorView &each, const TensorView &first,
                                const std::string &whose,
                                const std::string &others) {
  auto differ = [&](const char *what, const std::string &wanted,
                    const std::string &got) {
    return std::string("expected the ") + what + " " + wanted + " of " + whose +
           ", got " + got + " of " + others;
  };
  if (each.dtype != first.dtype)
    return differ("dtype", dtypeName(first.dtype), dtypeName(each.dtype));
  if (!areSame(each.device, first.device))
    return differ("device", DeviceText(first.device).text,
                  DeviceText(each.device).text);
  uint32_t dims = first.ndim - 1;
  if (each.ndim != dims ||
      !std::equal(each.sizes, each.sizes + dims, first.sizes + 1))
    return differ("sizes", listText(first.sizes + 1, dims),
                  listText(each.sizes, each.ndim));
  if (!std::equal(each.strides, each.strides + dims, first.strides + 1))
    return differ("strides", listText(first.strides + 1, dims),
                  listText(each.strides, dims));
  return "";
}

const mlafix_peers *
PeerArgs::add(PyObject *object, bool isList, const ArgContext &place,
              const std::function<void(PyObject *, TensorView &)> &read,
              TensorView &view) {
  PeerTensors *made = nullptr;
  bool isMade =
      !isList && nb::try_cast<PeerTensors *>(nb::handle(object), made) && made;
  if (!isMade && !PyList_Check(object) && !PyTuple_Check(object))
    place.fail("expected %s, got %s", place.expected, typeName(object).c_str());
  nb::tuple list = isMade ? made->tensors : nb::tuple(nb::handle(object));
  auto ranks = static_cast<size_t>(NB_TUPLE_GET_SIZE(list.ptr()));
  if (ranks < 1 || ranks > MLAFIX_MAX_RANKS)
    place.fail("expected %s1 to %d %s, got %zu",
               isList ? "a list of " : "a tensor of each of ",
               int(MLAFIX_MAX_RANKS), isList ? "tensors" : "ranks", ranks);
  One &one = args[count++];
  TensorView each;
  for (size_t rank = 0; rank < ranks; ++rank) {
    read(NB_TUPLE_GET_ITEM(list.ptr(), rank), each);
    one.data[rank] = each.data;
    if (rank > 0) {
      std::string difference =
          differenceOf(each, view, isList ? "tensor 0" : "rank 0's tensor",
                       (isList ? "tensor " : "rank ") + std::to_string(rank));
      if (!difference.empty())
        place.fail("%s", difference.c_str());
      continue;
    }
    view = each;
    view.ndim = each.ndim + 1;
    std::copy_n(each.sizes, each.ndim, view.sizes + 1);
    std::copy_n(each.strides, each.ndim, view.strides + 1);
    view.sizes[0] = static_cast<int64_t>(ranks);
    view.strides[0] = 0;
  }
  PeerGroup *group = nullptr;
  if (isMade && !made->group.is_none())
    group = nb::cast<PeerGroup *>(made->group);
  if (!isList && view.device.type == MLAFIX_CUDA && !group)
    place.fail("expected PeerTensors with a group for tensors on a GPU, got "
               "none");
  one.each = {sizeof(mlafix_tensor), view.dtype, view.ndim - 1,
              view.device,           view.data,  view.sizes + 1,
              view.strides + 1};
  one.peers = {sizeof(mlafix_peers), static_cast<uint32_t>(ranks), one.data,
               &one.each, group ? group->get() : nullptr};
  return &one.peers;
}

bool mlafix::python::arePlain(PyObject *object) {
  PeerTensors *made = nullptr;
  if (nb::try_cast<PeerTensors *>(nb::handle(object), made) && made)
    object = made->tensors.ptr();
  bool isList = PyList_Check(object);
  if (!isList && !PyTuple_Check(object))
    return false;
  Py_ssize_t size = isList ? PyList_Size(object) : NB_TUPLE_GET_SIZE(object);
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject *tensor =
        isList ? PyList_GetItem(object, i) : NB_TUPLE_GET_ITEM(object, i);
    if (!tensor || !plainTorchApi(Py_TYPE(tensor)))
      return false;
  }
  return true;
}

void mlafix::python::bindPeers(nb::module_ &module) {
  nb::class_<PeerGroup>(
      module, "PeerGroup",
      "The ranks that launch a collective kernel together.\n\n"
      "rank: this one.\n"
      "workspaces: addresses of GROUP_BYTES + 8 * slots * ranks bytes of each "
      "rank, which all ranks can write; zeros before the first launch.\n"
      "timeout: how long a launch waits for a rank, in seconds.\n"
      "failure: the address of 8 bytes of pinned host memory, zeros before the "
      "first launch, or 0: where `check` finds which rank did not come.\n"
      "slots: the most blocks of a launch that stores to the other ranks "
      "(exchange); 0 for groups without such launches.")
      .def(nb::init<uint32_t, std::vector<uintptr_t>, double, uintptr_t,
                    uint64_t>(),
           nb::arg("rank"), nb::arg("workspaces"), nb::arg("timeout") = 10.0,
           nb::arg("failure") = 0, nb::arg("slots") = 0)
      .def_prop_ro("rank", &PeerGroup::rank)
      .def_prop_ro("ranks", &PeerGroup::ranks)
      .def("check", &PeerGroup::check,
           "Raises RankError if a rank did not come to a launch that is "
           "complete. Waits for nothing; every launch does it first.");
  nb::class_<PeerTensors>(
      module, "PeerTensors",
      "What a kernel takes for an argument declared with Peers: the tensors of "
      "all ranks in order, and on a GPU their PeerGroup.")
      .def(
          "__init__",
          [](PeerTensors *made, nb::handle tensors, nb::object group) {
            if (!group.is_none() && !nb::isinstance<PeerGroup>(group))
              throwArgumentError(
                  "argument \"group\": expected a PeerGroup or None, got %s",
                  typeName(group).c_str());
            new (made) PeerTensors{nb::tuple(tensors), std::move(group)};
          },
          nb::arg("tensors"), nb::arg("group").none() = nb::none(),
          nb::sig("def __init__(self, tensors: "
                  "collections.abc.Sequence[typing.Any], group: PeerGroup | "
                  "None = None) -> None"))
      .def_ro("tensors", &PeerTensors::tensors,
              nb::for_getter(
                  nb::sig("def tensors(self, /) -> tuple[typing.Any, ...]")))
      .def_ro(
          "group", &PeerTensors::group,
          nb::for_getter(nb::sig("def group(self, /) -> PeerGroup | None")));
  module.attr("GROUP_BYTES") = static_cast<int>(MLAFIX_GROUP_BYTES);
  module.attr("MAX_RANKS") = static_cast<int>(MLAFIX_MAX_RANKS);
}
