//===- NewTensor.cpp - Outputs that a call allocates ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// By torch's own functions, so that the tensors are torch's in every respect.
// Most of what such a call costs in Python is the way to it: attributes, dtype
// and device objects, keywords.
//
//===----------------------------------------------------------------------===//

#include "NewTensor.h"
#include "Errors.h"

#include <algorithm>
#include <cstring>
#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace mlafix::python;

namespace {

const char *torchName(int32_t dtype) {
  switch (dtype) {
  case MLAFIX_BF16:
    return "bfloat16";
  case MLAFIX_F16:
    return "float16";
  case MLAFIX_F32:
    return "float32";
  case MLAFIX_F8E4M3FN:
    return "float8_e4m3fn";
  default:
    return nullptr;
  }
}

/// What is asked of torch, looked up once. References are kept for ever: the
/// process does, too.
struct Torch {
  static constexpr int maxDTypes = 16, maxDevices = 32;

  nb::handle module;
  PyObject *emptyLike, *emptyStrided, *device;
  PyObject *dispatchModes, *functionModes, *tracing;
  PyObject *keywords; ///< of emptyStrided
  PyObject *dtypes[maxDTypes] = {};
  PyObject *devices[maxDevices + 1] = {}; ///< the CPU, and each GPU

  Torch() : module(importedModule("torch")) {
    nb::object internal = module.attr("_C");
    auto keep = [](nb::object object) { return object.release().ptr(); };
    emptyLike = keep(module.attr("empty_like"));
    emptyStrided = keep(module.attr("empty_strided"));
    device = keep(module.attr("device"));
    dispatchModes = keep(internal.attr("_len_torch_dispatch_stack"));
    functionModes = keep(internal.attr("_len_torch_function_stack"));
    tracing = keep(internal.attr("_get_tracing_state"));
    keywords = keep(nb::make_tuple("dtype", "device"));
  }

  PyObject *dtypeObject(int32_t dtype) {
    const char *name = torchName(dtype);
    if (!name || dtype >= maxDTypes)
      return nullptr;
    if (!dtypes[dtype])
      dtypes[dtype] = nb::object(module.attr(name)).release().ptr();
    return dtypes[dtype];
  }

  PyObject *deviceObject(mlafix_device where) {
    int index = where.type == MLAFIX_CPU ? 0 : where.ordinal + 1;
    if (index < 0 || index > maxDevices)
      return nullptr;
    if (!devices[index])
      devices[index] = (index ? nb::handle(device)("cuda", where.ordinal)
                              : nb::handle(device)("cpu"))
                           .release()
                           .ptr();
    return devices[index];
  }
};

Torch &torch() {
  static Torch found;
  return found;
}

nb::object call(PyObject *function) {
  nb::object result = nb::steal(PyObject_CallNoArgs(function));
  if (!result.is_valid())
    nb::raise_python_error();
  return result;
}

bool isZero(PyObject *function) {
  return PyLong_AsLong(call(function).ptr()) == 0;
}

nb::object makeTuple(const int64_t *values, uint32_t count) {
  nb::object tuple = nb::steal(PyTuple_New(count));
  for (uint32_t i = 0; tuple.is_valid() && i < count; ++i)
    NB_TUPLE_SET_ITEM(tuple.ptr(), i, PyLong_FromLongLong(values[i]));
  if (!tuple.is_valid() || PyErr_Occurred())
    nb::raise_python_error();
  return tuple;
}

/// What an output is to be; false where the call does not say.
bool findShape(const ArgSpec &spec, const CallArgs &call,
               const NewTensor &wanted, Shape &shape) {
  if (spec.sources.empty() ||
      (!wanted.order.empty() && wanted.order.size() != spec.dims.size()))
    return false;
  shape.dtype = wanted.dtype ? wanted.dtype : spec.dtype;
  if (!shape.dtype && wanted.like >= 0)
    shape.dtype = call.views[wanted.like].dtype;
  else if (!shape.dtype && spec.dtypeKey >= 0)
    shape.dtype = static_cast<int32_t>(call.key.values[spec.dtypeKey]);
  shape.device = call.device;
  shape.ndim = static_cast<uint32_t>(spec.dims.size());
  for (uint32_t i = 0; i < shape.ndim; ++i)
    shape.sizes[spec.view.empty() ? i : spec.view[i]] =
        call.views[spec.sources[i].arg].sizes[spec.sources[i].dim];
  int64_t stride = 1;
  for (uint32_t i = shape.ndim; i-- > 0;) {
    uint32_t dim = wanted.order.empty() ? i : wanted.order[i];
    shape.strides[dim] = stride;
    // There are tensors of these sizes, so the product does not wrap.
    stride *= shape.sizes[dim] ? shape.sizes[dim] : 1;
  }
  return torchName(shape.dtype) && torch().deviceObject(shape.device);
}

/// Whether an argument that is read by the same `spec.view` has that shape.
bool matches(const Shape &shape, const ArgSpec &spec, const TensorView &view) {
  for (uint32_t i = 0; i < shape.ndim; ++i) {
    uint32_t dim = spec.view.empty() ? i : spec.view[i];
    if (view.sizes[i] != shape.sizes[dim] ||
        view.strides[i] != shape.strides[dim])
      return false;
  }
  return true;
}

nb::object checked(PyObject *made) {
  if (!made)
    nb::raise_python_error();
  return nb::steal(made);
}

nb::object makeStrided(const Shape &shape) {
  nb::object sizes = makeTuple(shape.sizes, shape.ndim);
  nb::object strides = makeTuple(shape.strides, shape.ndim);
  PyObject *arguments[] = {sizes.ptr(), strides.ptr(),
                           torch().dtypeObject(shape.dtype),
                           torch().deviceObject(shape.device)};
  return checked(PyObject_Vectorcall(torch().emptyStrided, arguments, 2,
                                     torch().keywords));
}

nb::object makeLike(PyObject *other) {
  return checked(PyObject_Vectorcall(torch().emptyLike, &other, 1, nullptr));
}

} // namespace

bool Shape::operator==(const Shape &other) const {
  return ndim == other.ndim && dtype == other.dtype &&
         device.type == other.device.type &&
         device.ordinal == other.device.ordinal &&
         std::memcmp(sizes, other.sizes, ndim * sizeof(int64_t)) == 0 &&
         std::memcmp(strides, other.strides, ndim * sizeof(int64_t)) == 0;
}

nb::object Prototypes::make(const Shape &shape) {
  // Every call of torch may let another thread in, who may change the entries.
  auto find = [&] {
    return std::find_if(entries.begin(), entries.end(),
                        [&](const Entry &e) { return e.shape == shape; });
  };
  auto known = find();
  if (known == entries.end()) {
    if (entries.size() < maxEntries)
      entries.push_back({shape, {}});
    else
      entries[oldest++ % maxEntries] = {shape, {}};
    return makeStrided(shape);
  }
  if (known->tensor.is_valid()) {
    nb::object prototype = known->tensor;
    return makeLike(prototype.ptr());
  }
  nb::object prototype = makeStrided(shape);
  prototype.attr("untyped_storage")().attr("resize_")(0);
  if (auto again = find(); again != entries.end())
    again->tensor = prototype;
  return makeLike(prototype.ptr());
}

const NewTensor *mlafix::python::asNewTensor(PyObject *object) {
  static PyTypeObject *type =
      reinterpret_cast<PyTypeObject *>(nb::type<NewTensor>().ptr());
  return Py_TYPE(object) == type ? nb::inst_ptr<NewTensor>(object) : nullptr;
}

const SizeOf *mlafix::python::asSizeOf(PyObject *object) {
  static PyTypeObject *type =
      reinterpret_cast<PyTypeObject *>(nb::type<SizeOf>().ptr());
  return Py_TYPE(object) == type ? nb::inst_ptr<SizeOf>(object) : nullptr;
}

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

bool mlafix::python::isTorchUnwatched() {
  static bool isLoaded = false;
  if (!isLoaded && !(isLoaded = importedModule("torch") != nullptr))
    return false;
  return isZero(torch().dispatchModes) && isZero(torch().functionModes) &&
         call(torch().tracing).is_none();
}

nb::object mlafix::python::allocate(const Signature &signature,
                                    const CallArgs &call, nb::handle args,
                                    uint32_t index, const NewTensor &wanted,
                                    Prototypes &prototypes) {
  const ArgSpec &spec = signature.args[index];
  Shape shape;
  if (!findShape(spec, call, wanted, shape))
    return {};
  if (spec.twin >= 0 && call.views[spec.twin].dtype == shape.dtype &&
      (wanted.like == spec.twin || matches(shape, spec, call.views[spec.twin])))
    return makeLike(CallArgs::argument(args.ptr(), spec.twin));
  return prototypes.make(shape);
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
           nb::arg("order") = nb::none());
  nb::class_<SizeOf>(module, "SizeOf",
                     "Stands among a call's arguments for an integer: the size "
                     "of dim `dim` of the tensor argument number `arg`.")
      .def(nb::init<int32_t, int32_t>(), nb::arg("arg"), nb::arg("dim"));
}
