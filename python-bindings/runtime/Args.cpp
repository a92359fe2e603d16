//===- Args.cpp - The arguments of one call -------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Args.h"

#include "Errors.h"
#include "mlafix/DimList.h"
#include "mlafix/RoundToF32.h"

namespace nb = nanobind;
using namespace mlafix::python;

/// Converts a view of u8 or of torch's float4_e2m1fn_x2 to one of F4E2M1, whose
/// last size counts elements, two per byte. Fails for other dtypes.
static void countHalves(const ArgContext &place, TensorView &view) {
  if (view.dtype == MLAFIX_U8)
    view.dtype = MLAFIX_F4E2M1;
  if (view.dtype != MLAFIX_F4E2M1)
    place.fail("expected dtype uint8 or float4_e2m1fn_x2 (two elements a "
               "byte), got %s",
               dtypeName(view.dtype));
  if (view.ndim > 0)
    view.sizes[view.ndim - 1] *= 2;
}

void CallArgs::readView(const ArgSpec &spec, PyObject *object,
                        const ArgContext &place, Conversion &conversion,
                        TensorView &view) {
  readTensor(object, place, conversion, view);
  if (spec.written && !view.readOnly)
    view.readOnly = isImmutable(object);
  fitView(spec, place, view);
}

void CallArgs::fitView(const ArgSpec &spec, const ArgContext &place,
                       TensorView &view) {
  // The first dim of an argument with several tensors counts the tensors, so
  // each tensor has one dim less.
  size_t ndim = spec.dims.size() - (spec.isMany() ? 1 : 0);
  if (view.ndim == 0 && ndim == 1) {
    // Treat a tensor without dims as one dim of one element.
    view.ndim = 1;
    view.sizes[0] = view.strides[0] = 1;
  }
  if (view.ndim != ndim)
    // Callers of a view pass the dims in another order than the kernel's.
    place.fail("expected %zu dims, got %u%s", ndim, view.ndim,
               spec.view.empty()
                   ? mlafix::DimList(spec.dims, spec.isMany() ? 1 : 0).text
                   : "");
  if (!spec.view.empty()) {
    TensorView given = view;
    for (size_t i = 0; i < ndim; ++i) {
      view.sizes[i] = given.sizes[spec.view[i]];
      view.strides[i] = given.strides[spec.view[i]];
    }
  }
  if (spec.dtype == MLAFIX_F4E2M1)
    countHalves(place, view);
  // A bool is a byte of 0 or 1, so the kernel can read it as an unsigned
  // integer.
  if (view.dtype == MLAFIX_BOOL && spec.dtype == MLAFIX_U8 && !spec.written)
    view.dtype = MLAFIX_U8;
  if (spec.dtype != 0 && view.dtype != spec.dtype)
    place.fail("expected dtype %s, got %s", dtypeName(spec.dtype),
               dtypeName(view.dtype));
  if (spec.written && view.readOnly)
    place.fail("expected a tensor that may be written, got a read-only one");
}

void CallArgs::addTensor(uint32_t index) {
  TensorView &view = views[index];
  // `bytes` only estimates the work, so a product that wraps around does no
  // harm.
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
  } else if (!areSame(view.device, device)) {
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
                 dtypeName(value),
                 signature.args[boundBy[spec.dtypeKey]].name.c_str(),
                 dtypeName(view.dtype));
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
  auto read = [&](PyObject *tensor, TensorView &view) {
    readView(spec, tensor, place, conversion, view);
  };
  args[index].kind = spec.kind;
  // std::function allocates no memory for a reference.
  args[index].value.peers = peers.add(object, spec.kind == MLAFIX_ARG_LIST,
                                      place, std::ref(read), views[index]);
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
      out[name.name.c_str()] = dtypeName(key.values[i]);
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

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Checks a product if both factors are known. If one factor is unknown,
/// computes it and returns true. Otherwise returns false.
bool CallArgs::bindProduct(const Signature &signature, uint32_t index,
                           const Product &product) {
  const ArgSpec &spec = signature.args[index];
  ArgContext place = contextOf(signature, spec);
  auto dim = product.dim;
  const char *name = spec.dims[dim].c_str();
  long long size = views[index].sizes[dim];
  int64_t factors[2];
  int missing = -1;
  for (int i = 0; i < 2; ++i) {
    int32_t slot = product.keys[i];
    factors[i] = slot < 0 ? product.numbers[i] : key.values[slot];
    if (factors[i] == unbound && missing >= 0)
      return false;
    if (factors[i] == unbound)
      missing = i;
  }
  int64_t whole;
  if (missing < 0) {
    if (__builtin_mul_overflow(factors[0], factors[1], &whole) || whole != size)
      place.fail("expected size %lld * %lld in dim %u (\"%s\"), got %lld",
                 static_cast<long long>(factors[0]),
                 static_cast<long long>(factors[1]), dim, name, size);
    return false;
  }
  long long known = factors[1 - missing];
  if (size < 1 || size % known != 0)
    place.fail("expected a multiple of %lld in dim %u (\"%s\"), got %lld",
               known, dim, name, size);
  int32_t slot = product.keys[missing];
  key.values[slot] = size / known;
  boundBy[slot] = index;
  return true;
}

/// Checks all products and computes their unknown factors. Repeats this until
/// no factor is computed, since a factor that one product determines may be a
/// factor of another product.
void CallArgs::bindProducts(const Signature &signature) {
  for (bool again = true; again;) {
    again = false;
    for (uint32_t i = 0; i < count; ++i)
      if (present >> i & 1)
        for (const Product &product : signature.args[i].products)
          again |= bindProduct(signature, i, product);
  }
}

//===----------------------------------------------------------------------===//
// Numbers and streams
//===----------------------------------------------------------------------===//

namespace {

/// True for a tensor that is not numpy's. Such a tensor is not accepted as a
/// number, even if it has a single element: the element may lie on a device.
bool isTensorLike(PyObject *object) {
  return !PyLong_Check(object) && !PyFloat_Check(object) &&
         hasAttribute(object, "__dlpack__") && hasAttribute(object, "shape") &&
         !hasAttribute(object, "__array_struct__");
}

/// Returns an integer in decimal. For an integer of more than 128 bits, returns
/// "an integer of N bits".
std::string integerText(nb::handle integer) {
  constexpr int64_t mostBits = 128;
  nb::object bits = integer.attr("bit_length")();
  return nb::cast<int64_t>(bits) <= mostBits
             ? textOf(integer)
             : "an integer of " + textOf(bits) + " bits";
}

int64_t readInteger(PyObject *object, const ArgContext &place) {
  if (PyBool_Check(object) || isTensorLike(object))
    place.fail("expected an integer, got %s", typeName(object).c_str());
  nb::object number = nb::steal(PyNumber_Index(object));
  if (!number.is_valid()) {
    clearException();
    place.fail("expected an integer, got %s", typeName(object).c_str());
  }
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow)
    place.fail("expected an integer of 64 bits, got %s",
               integerText(number).c_str());
  return value;
}

/// Reads a number and rounds it to f32. Fails for a finite number that would
/// become infinite.
float readFloat(PyObject *object, const ArgContext &place) {
  if (PyBool_Check(object) || isTensorLike(object))
    place.fail("expected a number, got %s", typeName(object).c_str());
  double value = PyFloat_AsDouble(object);
  if (value == -1 && PyErr_Occurred()) {
    bool isLarge = PyErr_ExceptionMatches(PyExc_OverflowError);
    clearException();
    if (isLarge && PyLong_Check(object))
      place.fail("expected a number that an f32 holds, got %s",
                 integerText(object).c_str());
    place.fail("expected a number, got %s", typeName(object).c_str());
  }
  if (mlafix::overflowsF32(value))
    place.fail("expected a number that an f32 holds, got %s",
               reprOf(nb::float_(value)).c_str());
  return mlafix::roundToF32(value);
}

bool readBool(PyObject *object, const ArgContext &place) {
  if (PyBool_Check(object))
    return object == Py_True;
  std::string type = typeName(object);
  if (type != "numpy.bool" && type != "numpy.bool_")
    place.fail("expected a bool, got %s", typeName(object).c_str());
  int truth = PyObject_IsTrue(object);
  if (truth < 0)
    nb::raise_python_error();
  return truth == 1;
}

/// Reads the handle of a stream object from its attribute or method. Returns
/// false if the object has none.
bool streamHandle(PyObject *object, uintptr_t &handle) {
  // The attribute of a torch.cuda.Stream is the handle.
  nb::object value = attributeOf(object, "cuda_stream");
  if (!value.is_valid()) {
    // The attribute or method of the streams of cuda.core, cupy and numba gives
    // a pair (version, handle).
    value = attributeOf(object, "__cuda_stream__");
    if (!value.is_valid())
      return false;
    if (PyCallable_Check(value.ptr()))
      value = nb::steal(PyObject_CallNoArgs(value.ptr()));
    if (!value.is_valid())
      nb::raise_python_error();
    nb::object pair = pairOf(value);
    if (!pair.is_valid())
      return false;
    value = nb::borrow(NB_TUPLE_GET_ITEM(pair.ptr(), 1));
  }
  handle = PyLong_AsSize_t(value.ptr());
  if (handle == static_cast<size_t>(-1) && PyErr_Occurred()) {
    clearException();
    return false;
  }
  return true;
}

} // namespace

void mlafix::python::readScalar(PyObject *object, const ArgSpec &spec,
                                const ArgContext &place, mlafix_arg &out) {
  out.struct_size = sizeof(mlafix_arg);
  out.kind = spec.kind;
  switch (spec.kind) {
  case MLAFIX_ARG_I64:
    out.value.i64 = readInteger(object, place);
    return;
  case MLAFIX_ARG_I32: {
    int64_t value = readInteger(object, place);
    if (value < INT32_MIN || value > INT32_MAX)
      place.fail("expected an integer of 32 bits, got %lld",
                 static_cast<long long>(value));
    out.value.i32 = static_cast<int32_t>(value);
    return;
  }
  case MLAFIX_ARG_F32:
    out.value.f32 = readFloat(object, place);
    return;
  default:
    out.value.boolean = readBool(object, place);
  }
}

void *mlafix::python::readStream(PyObject *object, const Conversion &conversion,
                                 mlafix_device device) {
  if (object == Py_None) {
    if (device.type != MLAFIX_CUDA)
      return nullptr;
    if (conversion.streamApi) {
      void *stream = nullptr;
      if (conversion.streamApi->currentStream(dlpack::deviceCuda,
                                              device.ordinal, &stream) == 0)
        return stream;
      if (PyErr_Occurred())
        nb::raise_python_error();
      throwArgumentError("argument \"stream\": expected the tensors' framework "
                         "to name its current stream, got none");
    }
    return conversion.torchStream ? currentTorchStream(device.ordinal)
                                  : nullptr;
  }
  uintptr_t handle = 0;
  if (PyLong_Check(object) && !PyBool_Check(object)) {
    handle = PyLong_AsSize_t(object);
    if (handle != static_cast<size_t>(-1) || !PyErr_Occurred())
      return reinterpret_cast<void *>(handle);
    clearException();
  } else if (streamHandle(object, handle)) {
    return reinterpret_cast<void *>(handle);
  }
  throwArgumentError("argument \"stream\": expected None, the integer handle "
                     "of a CUDA stream, or an object with cuda_stream or "
                     "__cuda_stream__, got %s",
                     PyLong_Check(object) ? reprOf(object).c_str()
                                          : typeName(object).c_str());
}
