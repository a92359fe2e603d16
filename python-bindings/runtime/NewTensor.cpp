//===- NewTensor.cpp - Outputs that a call allocates ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "NewTensor.h"
#include "EmptyTensor.h"
#include "Errors.h"
#include "python-bindings/shared/Finalization.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace mlafix::python;

namespace {

/// Computes the dtype, device, sizes and strides of an output into `shape`.
/// Returns false if the call does not determine them, or if torch cannot
/// allocate the dtype.
bool findShape(const ArgSpec &spec, const CallArgs &call,
               const NewTensor &wanted, TensorView &shape) {
  if (spec.sources.empty() ||
      (!wanted.order.empty() && wanted.order.size() != spec.dims.size()))
    return false;
  shape.dtype = wanted.dtype ? wanted.dtype : spec.dtype;
  if (!shape.dtype && wanted.like >= 0)
    shape.dtype = call.views[wanted.like].dtype;
  else if (!shape.dtype && spec.dtypeKey >= 0)
    shape.dtype = static_cast<int32_t>(call.key.values[spec.dtypeKey]);
  shape.device = call.device;
  shape.readOnly = false;
  shape.ndim = static_cast<uint32_t>(spec.dims.size());
  for (uint32_t i = 0; i < shape.ndim; ++i)
    shape.sizes[spec.view.empty() ? i : spec.view[i]] =
        call.views[spec.sources[i].arg].sizes[spec.sources[i].dim];
  int64_t stride = 1;
  for (uint32_t i = shape.ndim; i-- > 0;) {
    uint32_t dim = wanted.order.empty() ? i : wanted.order[i];
    shape.strides[dim] = stride;
    // Each size is the size of an input, so the product is assumed to fit in 64
    // bits.
    stride *= shape.sizes[dim] ? shape.sizes[dim] : 1;
  }
  return canAllocate(shape.dtype);
}

/// True if `view`, in the kernel's order of dims, has the sizes and strides of
/// `shape`, which is in the caller's order.
bool matches(const TensorView &shape, const ArgSpec &spec,
             const TensorView &view) {
  for (uint32_t i = 0; i < shape.ndim; ++i) {
    uint32_t dim = spec.view.empty() ? i : spec.view[i];
    if (view.sizes[i] != shape.sizes[dim] ||
        view.strides[i] != shape.strides[dim])
      return false;
  }
  return true;
}

} // namespace

NewTensor::NewTensor(const std::string &dtype, int32_t like, nb::object order)
    : like(like) {
#define MLAFIX_DTYPE(ENUM, VALUE, NAME, BITS, MLIR)                            \
  if (dtype == NAME)                                                           \
    this->dtype = VALUE;
#include "mlafix/DTypes.def"
  if (!dtype.empty() && this->dtype == 0)
    throwArgumentError("argument \"dtype\": expected a dtype of "
                       "docs/UnitFormat.md, got \"%s\"",
                       dtype.c_str());
  if (order.is_none())
    return;
  uint32_t seen = 0;
  for (nb::handle item : order) {
    size_t dim = nb::cast<size_t>(item);
    if (dim >= nb::len(order) || dim >= MLAFIX_MAX_DIMS || seen >> dim & 1)
      throwArgumentError("argument \"order\": expected a permutation, got %s",
                         nb::repr(order).c_str());
    seen |= 1u << dim;
    this->order.push_back(static_cast<uint8_t>(dim));
  }
}

nb::object mlafix::python::allocate(const Signature &signature, CallArgs &call,
                                    nb::handle args, uint32_t index,
                                    const NewTensor &wanted) {
  const ArgSpec &spec = signature.args[index];
  TensorView shape;
  if (!findShape(spec, call, wanted, shape))
    return {};
  // If the input that `wanted.like` names has the output's dims and dtype but
  // other strides than `shape`, torch.empty_like chooses the output's strides.
  if (spec.twin >= 0 && wanted.like == spec.twin &&
      call.views[spec.twin].dtype == shape.dtype &&
      !matches(shape, spec, call.views[spec.twin])) {
    nb::object made = makeLike(CallArgs::argument(args.ptr(), spec.twin));
    call.readArg(signature, index, made.ptr());
    return made;
  }
  nb::object made = makeEmpty(shape);
  call.setArg(signature, index, shape);
  return made;
}

void mlafix::python::bindNewTensor(nb::module_ &module) {
  nb::class_<NewTensor>(
      module, "NewTensor",
      "Stands among a call's arguments for an output to allocate.\n\n"
      "dtype: its name; \"\" is the kernel's, or that of an input.\n"
      "like: the index of the argument that has the dtype, where the kernel's "
      "is a variable that no input binds; of the same dims, its strides, too.\n"
      "order: its dims, the outermost in memory first; None: as they are.")
      .def(nb::init<const std::string &, int32_t, nb::object>(),
           nb::arg("dtype") = "", nb::arg("like") = -1,
           nb::arg("order") = nb::none(),
           nb::sig("def __init__(self, dtype: str = '', like: int = -1, "
                   "order: collections.abc.Sequence[int] | None = None) -> "
                   "None"));
  nb::class_<SizeOf>(module, "SizeOf",
                     "Stands among a call's arguments for an integer: the size "
                     "of dim `dim` of the tensor argument number `arg`.")
      .def(nb::init<int32_t, int32_t>(), nb::arg("arg"), nb::arg("dim"));
  module.def(
      "is_immutable",
      [](nb::handle object) { return isImmutable(object.ptr()); },
      nb::call_guard<Call>(), nb::arg("object").none(),
      nb::sig("def is_immutable(object: typing.Any) -> bool"),
      "True for an array of a library whose arrays never change, as jax's, and "
      "for one that is read-only by a protocol other than DLPack: no output.");
}
