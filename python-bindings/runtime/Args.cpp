//===- Args.cpp - The arguments of one call -------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Args.h"
#include "Errors.h"

#include <cstdio>

namespace nb = nanobind;
using namespace mlafix::python;

namespace {

/// "cpu", "cuda:1".
struct DeviceText {
  explicit DeviceText(mlafix_device device) {
    if (device.type == MLAFIX_CPU)
      std::snprintf(text, sizeof(text), "cpu");
    else
      std::snprintf(text, sizeof(text), "cuda:%d", device.ordinal);
  }
  char text[24];
};

} // namespace

/// Of bytes that two elements share, given as bytes or as torch's pairs.
static void countHalves(const ArgContext &place, TensorView &view) {
  if (view.dtype == MLAFIX_U8)
    view.dtype = MLAFIX_F4E2M1;
  if (view.dtype != MLAFIX_F4E2M1)
    place.fail("expected uint8 or float4_e2m1fn_x2, of which a byte holds two "
               "elements, got %s",
               mlafix_dtype_name(static_cast<mlafix_dtype>(view.dtype)));
  if (view.ndim > 0)
    view.sizes[view.ndim - 1] *= 2;
}

/// `; the dims are "n H D"`; nothing for a function whose tensors have others.
static std::string listDims(const ArgSpec &spec) {
  if (!spec.view.empty() || spec.dims.empty())
    return "";
  std::string names;
  for (size_t i = spec.isMany() ? 1 : 0; i < spec.dims.size(); ++i)
    names += (names.empty() ? "" : " ") +
             (spec.dims[i].empty() ? "_" : spec.dims[i]);
  return "; the dims are \"" + names + "\"";
}

void CallArgs::readView(const ArgSpec &spec, PyObject *object,
                        const ArgContext &place, Conversion &conversion,
                        TensorView &view) {
  readTensor(object, place, conversion, view);
  fitView(spec, place, view);
}

void CallArgs::fitView(const ArgSpec &spec, const ArgContext &place,
                       TensorView &view) {
  // The dim that counts several tensors is not a dim of each.
  size_t ndim = spec.dims.size() - (spec.isMany() ? 1 : 0);
  if (view.ndim == 0 && ndim == 1) {
    // A tensor without dims is one element.
    view.ndim = 1;
    view.sizes[0] = view.strides[0] = 1;
  }
  if (view.ndim != ndim)
    place.fail("expected %zu dims, got %u%s", ndim, view.ndim,
               listDims(spec).c_str());
  if (!spec.view.empty()) {
    TensorView given = view;
    for (size_t i = 0; i < ndim; ++i) {
      view.sizes[i] = given.sizes[spec.view[i]];
      view.strides[i] = given.strides[spec.view[i]];
    }
  }
  if (spec.dtype == MLAFIX_F4E2M1)
    countHalves(place, view);
  // A byte that is 0 or 1 reads as an unsigned integer.
  if (view.dtype == MLAFIX_BOOL && spec.dtype == MLAFIX_U8 && !spec.written)
    view.dtype = MLAFIX_U8;
  if (spec.dtype != 0 && view.dtype != spec.dtype)
    place.fail("expected dtype %s, got %s",
               mlafix_dtype_name(static_cast<mlafix_dtype>(spec.dtype)),
               mlafix_dtype_name(static_cast<mlafix_dtype>(view.dtype)));
  if (spec.written && view.readOnly)
    place.fail("expected a tensor that may be written, got a read-only one");
}

void CallArgs::addTensor(uint32_t index) {
  TensorView &view = views[index];
  // Only a guess at the work, so that a product that wraps does no harm.
  auto size = static_cast<uint64_t>(
      mlafix_dtype_size(static_cast<mlafix_dtype>(view.dtype)));
  for (uint32_t i = 0; i < view.ndim; ++i)
    size *= static_cast<uint64_t>(view.sizes[i]);
  bytes += size;
  tensors[index] = {sizeof(mlafix_tensor), view.dtype, view.ndim,
                    view.device,           view.data,  view.sizes,
                    view.strides};
  args[index].value.tensor = &tensors[index];
}

void CallArgs::bindKeys(const Signature &signature, const ArgSpec &spec,
                        uint32_t index, const ArgContext &place) {
  const TensorView &view = views[index];
  if (!haveDevice) {
    haveDevice = true;
    device = view.device;
    deviceFrom = index;
  } else if (view.device.type != device.type ||
             view.device.ordinal != device.ordinal) {
    place.fail("expected a tensor on %s, as argument \"%s\", got one on %s",
               DeviceText(device).text, signature.args[deviceFrom].name.c_str(),
               DeviceText(view.device).text);
  }
  if (spec.dtypeKey >= 0) {
    int64_t &value = key.values[spec.dtypeKey];
    if (value == unbound) {
      value = view.dtype;
      boundBy[spec.dtypeKey] = index;
    } else if (value != view.dtype) {
      place.fail("expected dtype %s, as in argument \"%s\", got %s",
                 mlafix_dtype_name(static_cast<mlafix_dtype>(value)),
                 signature.args[boundBy[spec.dtypeKey]].name.c_str(),
                 mlafix_dtype_name(static_cast<mlafix_dtype>(view.dtype)));
    }
  }
  for (uint32_t i = 0; i < view.ndim; ++i) {
    int32_t slot = spec.dimKeys[i];
    if (slot < 0)
      continue;
    int64_t &value = key.values[slot];
    if (value == unbound) {
      if (view.sizes[i] < 1)
        place.fail("expected a size of at least 1 in dim %u (\"%s\"), got %lld",
                   i, spec.dims[i].c_str(),
                   static_cast<long long>(view.sizes[i]));
      value = view.sizes[i];
      boundBy[slot] = index;
    } else if (value != view.sizes[i]) {
      place.fail(
          "expected size %lld in dim %u (\"%s\"), as in argument \"%s\", "
          "got %lld",
          static_cast<long long>(value), i, spec.dims[i].c_str(),
          signature.args[boundBy[slot]].name.c_str(),
          static_cast<long long>(view.sizes[i]));
    }
  }
}

void CallArgs::readMany(const ArgSpec &spec, uint32_t index, PyObject *object,
                        const ArgContext &place) {
  struct Context {
    CallArgs &call;
    const ArgSpec &spec;
    const ArgContext &place;
  } context = {*this, spec, place};
  auto read = [](void *opaque, PyObject *tensor, TensorView &view) {
    auto &in = *static_cast<Context *>(opaque);
    readView(in.spec, tensor, in.place, in.call.conversion, view);
  };
  args[index].kind = spec.kind;
  args[index].value.peers = peers.add(object, spec.kind == MLAFIX_ARG_LIST,
                                      place, read, &context, views[index]);
}

void CallArgs::begin(const Signature &signature, PyObject *given,
                     uint32_t flags) {
  if (!PyTuple_Check(given))
    throwArgumentError("kernel \"%s\": expected a tuple of arguments, got %s",
                       signature.name.c_str(), typeName(given).c_str());
  size_t numGiven = static_cast<size_t>(NB_TUPLE_GET_SIZE(given));
  count = static_cast<uint32_t>(signature.args.size());
  if (numGiven > count || numGiven < signature.numRequired)
    throwArgumentError("kernel \"%s\": expected %s%u arguments, got %zu",
                       signature.name.c_str(),
                       signature.numRequired < count ? "at most " : "", count,
                       numGiven);
  conversion.ignoreGrad = flags & flagIgnoreGrad;
  haveDevice = false;
  device = {MLAFIX_CPU, 0};
  bytes = 0;
  peers.count = 0;
  size_t numKeys = signature.keys.size();
  key.count = static_cast<uint32_t>(numKeys + 2);
  for (size_t i = 0; i < numKeys; ++i)
    key.values[i] = unbound;
  present = 0;
}

PyObject *CallArgs::argument(PyObject *given, uint32_t index) {
  return index < static_cast<size_t>(NB_TUPLE_GET_SIZE(given))
             ? NB_TUPLE_GET_ITEM(given, index)
             : Py_None;
}

void CallArgs::readArg(const Signature &signature, uint32_t index,
                       PyObject *object) {
  static_assert(MLAFIX_MAX_ARGS <= 64, "a bit for each argument");
  const ArgSpec &spec = signature.args[index];
  ArgContext place = contextOf(signature, spec);
  if (!spec.isTensor() && !spec.isMany())
    return readScalar(object, spec, place, args[index]);
  args[index].struct_size = sizeof(mlafix_arg);
  if (spec.isMany()) {
    present |= uint64_t(1) << index;
    readMany(spec, index, object, place);
    return bindKeys(signature, spec, index, place);
  }
  args[index].kind = MLAFIX_ARG_TENSOR;
  args[index].value.tensor = nullptr;
  if (object == Py_None) {
    if (!spec.optional)
      place.fail("expected %s, got None", place.expected);
    return;
  }
  present |= uint64_t(1) << index;
  readView(spec, object, place, conversion, views[index]);
  addTensor(index);
  bindKeys(signature, spec, index, place);
}

void CallArgs::setArg(const Signature &signature, uint32_t index,
                      const TensorView &view) {
  const ArgSpec &spec = signature.args[index];
  ArgContext place = contextOf(signature, spec);
  args[index].struct_size = sizeof(mlafix_arg);
  args[index].kind = MLAFIX_ARG_TENSOR;
  present |= uint64_t(1) << index;
  views[index] = view;
  fitView(spec, place, views[index]);
  addTensor(index);
  bindKeys(signature, spec, index, place);
}

bool CallArgs::readSize(const Signature &signature, uint32_t index, int32_t arg,
                        int32_t dim) {
  bool isRead = arg >= 0 && arg < static_cast<int32_t>(index) &&
                present >> arg & 1 && dim >= 0 &&
                dim < static_cast<int32_t>(views[arg].ndim);
  if (!isRead || signature.args[index].kind != MLAFIX_ARG_I64)
    return false;
  args[index].struct_size = sizeof(mlafix_arg);
  args[index].kind = MLAFIX_ARG_I64;
  args[index].value.i64 = views[arg].sizes[dim];
  return true;
}

void CallArgs::finish(const Signature &signature) {
  bindProducts(signature);
  size_t numKeys = signature.keys.size();
  key.values[numKeys] = (static_cast<int64_t>(device.type) << 32) |
                        static_cast<uint32_t>(device.ordinal);
  key.values[numKeys + 1] = static_cast<int64_t>(present);
}

void CallArgs::read(const Signature &signature, PyObject *given,
                    uint32_t flags) {
  begin(signature, given, flags);
  for (uint32_t i = 0; i < count; ++i)
    readArg(signature, i, argument(given, i));
  finish(signature);
}

nb::dict CallArgs::bindings(const Signature &signature) const {
  nb::dict out;
  for (size_t i = 0; i < signature.keys.size(); ++i) {
    const KeyName &name = signature.keys[i];
    if (key.values[i] == unbound)
      continue;
    if (name.isDType)
      out[name.name.c_str()] =
          mlafix_dtype_name(static_cast<mlafix_dtype>(key.values[i]));
    else
      out[name.name.c_str()] = nb::str(nb::int_(key.values[i]));
  }
  return out;
}

nb::dict CallArgs::presence(const Signature &signature) const {
  nb::dict out;
  auto present = static_cast<uint64_t>(key.values[signature.keys.size() + 1]);
  for (size_t i = 0; i < signature.args.size(); ++i)
    if (signature.args[i].optional)
      out[signature.args[i].name.c_str()] =
          present >> i & 1 ? "present" : "absent";
  return out;
}
