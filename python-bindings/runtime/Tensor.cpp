//===- Tensor.cpp - Python objects as tensors -----------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Tensor.h"
#include "Errors.h"

namespace nb = nanobind;
using namespace mlafix::python;

namespace {

enum class Kind { NotATensor, Numpy, Torch, TorchSubclass, Exchange, Producer };

/// Describes how to read the objects of a Python type as tensors.
struct TypeEntry {
  PyTypeObject *type; ///< owned, so that its address is not reused
  Kind kind;
  const dlpack::ExchangeApi *api;
  bool isImmutable = false;
};

/// Classes whose arrays are immutable, as (module, class). These libraries
/// share the memory of equal arrays, and their compilers assume that contents
/// never change. DLPack does not tell that an array is immutable, so the list
/// is needed.
constexpr const char *immutableClasses[][2] = {
    {"jax", "Array"}, {"tensorflow", "Tensor"}, {"pyarrow", "Array"}};

/// The most types in `knownTypes`. Programs have few tensor types; any further
/// type is examined at each call.
constexpr size_t maxKnownTypes = 32;
TypeEntry knownTypes[maxKnownTypes];
size_t numKnownTypes = 0;

/// Returns the DLPack table of C functions of a type, or null if the type has
/// none that can be used.
const dlpack::ExchangeApi *findExchangeApi(PyTypeObject *type) {
  auto *holder = reinterpret_cast<PyObject *>(type);
  nb::object capsule = attributeOf(holder, "__dlpack_c_exchange_api__");
  if (!PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api"))
    return nullptr;
  auto *api = static_cast<const dlpack::ExchangeApi *>(
      PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  while (api && api->version.major > dlpack::majorVersion)
    api = api->previous;
  return api && api->version.major == dlpack::majorVersion && api->view &&
                 api->currentStream
             ? api
             : nullptr;
}

/// Returns 2 if the type is the class `name` of a module, 1 if it is a
/// subclass, and 0 otherwise or if the module is not imported.
int relation(PyTypeObject *type, const char *module, const char *name) {
  PyObject *loaded = importedModule(module);
  if (!loaded)
    return 0;
  nb::object wanted = attributeOf(loaded, name);
  if (!wanted.is_valid() || !PyType_Check(wanted.ptr()))
    return 0;
  auto *base = reinterpret_cast<PyTypeObject *>(wanted.ptr());
  return type == base ? 2 : PyType_IsSubtype(type, base) ? 1 : 0;
}

TypeEntry classify(PyTypeObject *type) {
  auto *holder = reinterpret_cast<PyObject *>(type);
  const dlpack::ExchangeApi *api = findExchangeApi(type);
  if (int torch = relation(type, "torch", "Tensor")) {
    // A Parameter is a plain tensor. Other subclasses may change the meaning of
    // a tensor.
    bool plain = torch == 2 || relation(type, "torch.nn", "Parameter") == 2;
    return {type, plain ? Kind::Torch : Kind::TorchSubclass,
            plain ? api : nullptr};
  }
  if (relation(type, "numpy", "ndarray") == 2 ||
      relation(type, "numpy", "memmap") == 2)
    return {type, Kind::Numpy, nullptr};
  bool isProducer = hasAttribute(holder, "__dlpack__") &&
                    hasAttribute(holder, "__dlpack_device__");
  if (!api && !isProducer)
    return {type, Kind::NotATensor, nullptr};
  bool isImmutable = false;
  for (auto [module, name] : immutableClasses)
    isImmutable |= relation(type, module, name) != 0;
  return {type, api ? Kind::Exchange : Kind::Producer, api, isImmutable};
}

TypeEntry lookUp(PyTypeObject *type) {
  for (size_t i = 0; i < numKnownTypes; ++i)
    if (knownTypes[i].type == type)
      return knownTypes[i];
  TypeEntry entry = classify(type);
  // NotATensor is not kept, since the type may be recognised after its
  // library's module is imported.
  if (entry.kind != Kind::NotATensor && numKnownTypes < maxKnownTypes) {
    Py_INCREF(reinterpret_cast<PyObject *>(type));
    knownTypes[numKnownTypes++] = entry;
  }
  return entry;
}

const char *codeName(uint8_t code) {
  static const char *const names[] = {"int",    "uint",    "float", "handle",
                                      "bfloat", "complex", "bool"};
  return code < sizeof(names) / sizeof(*names) ? names[code] : "float of code ";
}

} // namespace

std::string mlafix::python::listText(const int64_t *numbers, uint32_t count) {
  std::string text = "[";
  for (uint32_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::to_string(numbers[i]);
  return text + "]";
}

void ArgContext::fail(const char *format, ...) const {
  va_list args;
  va_start(args, format);
  std::string text = formatted(format, args);
  va_end(args);
  throwArgumentError("kernel \"%s\": argument \"%s\": %s", kernel, name,
                     text.c_str());
}

void ArgContext::failOfDType(const char *dtype) const {
  fail("expected %s%s, got dtype %s", expected, dtypes, dtype);
}

void ArgContext::failBecause(PyObject *object, const char *where) const {
  if (!PyErr_Occurred())
    fail("expected %s, got %s, %s without an exception", expected,
         typeName(object).c_str(), where);
  nb::python_error error;
  if (!error.matches(PyExc_Exception))
    throw error;
  fail("expected %s, got %s, %s: %s", expected, typeName(object).c_str(), where,
       textOf(error.value()).c_str());
}

nb::object mlafix::python::pairOf(nb::handle object) {
  nb::object pair = nb::steal(PySequence_Tuple(object.ptr()));
  if (pair.is_valid() && NB_TUPLE_GET_SIZE(pair.ptr()) == 2)
    return pair;
  clearException();
  return nb::object();
}

PyObject *mlafix::python::importedModule(const char *name) {
  return PyDict_GetItemString(PyImport_GetModuleDict(), name);
}

bool mlafix::python::isImmutable(PyObject *object) {
  TypeEntry entry = lookUp(Py_TYPE(object));
  return (entry.kind == Kind::Exchange || entry.kind == Kind::Producer) &&
         (entry.isImmutable || saysReadOnly(object));
}

const dlpack::ExchangeApi *mlafix::python::plainTorchApi(PyTypeObject *type) {
  TypeEntry entry = lookUp(type);
  return entry.kind == Kind::Torch ? entry.api : nullptr;
}

void mlafix::python::readDLPack(const dlpack::Tensor &tensor,
                                const ArgContext &place, TensorView &view) {
  view.dtype = dlpack::dtypeOf(tensor.dtype);
  // An element of this DLPack dtype is a byte with two f4e2m1 elements, so the
  // last size counts bytes here. Args.cpp doubles that size to count elements.
  if (tensor.dtype.code == dlpack::codeFloat4E2M1FN && tensor.dtype.bits == 4 &&
      tensor.dtype.lanes == 2)
    view.dtype = MLAFIX_F4E2M1;
  if (view.dtype == 0) {
    if (tensor.dtype.lanes != 1)
      place.fail("expected elements of 1 lane, got a dtype of DLPack code %d, "
                 "%d bits, %d lanes",
                 tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
    if (tensor.dtype.code > dlpack::codeBool)
      place.fail("expected %s, got a dtype of DLPack code %d, %d bits",
                 place.expected, tensor.dtype.code, tensor.dtype.bits);
    std::string name = codeName(tensor.dtype.code);
    place.failOfDType((name + std::to_string(tensor.dtype.bits)).c_str());
  }
  switch (tensor.device.type) {
  case dlpack::deviceCpu:
  case dlpack::deviceCudaHost:
    view.device = {MLAFIX_CPU, 0};
    break;
  case dlpack::deviceCuda:
  case dlpack::deviceCudaManaged:
    view.device = {MLAFIX_CUDA, tensor.device.id};
    break;
  default:
    place.fail("expected a tensor on a CPU or CUDA device, got one on a device "
               "of DLPack type %d",
               tensor.device.type);
  }
  if (tensor.ndim < 0 || tensor.ndim > MLAFIX_MAX_DIMS)
    place.fail("expected at most %d dims, got %d", MLAFIX_MAX_DIMS,
               tensor.ndim);
  if (tensor.ndim > 0 && !tensor.shape)
    place.fail("expected %d sizes, one per dim, got null", tensor.ndim);
  view.ndim = static_cast<uint32_t>(tensor.ndim);
  int64_t contiguous = 1;
  for (uint32_t i = view.ndim; i-- > 0;) {
    view.sizes[i] = tensor.shape[i];
    view.strides[i] = tensor.strides ? tensor.strides[i] : contiguous;
    if (!tensor.strides)
      // The product may wrap around; the runtime then refuses the sizes.
      contiguous = static_cast<int64_t>(static_cast<uint64_t>(contiguous) *
                                        static_cast<uint64_t>(view.sizes[i]));
  }
  view.data = tensor.data ? static_cast<char *>(tensor.data) + tensor.byteOffset
                          : nullptr;
  view.readOnly = false;
}

void mlafix::python::readTensor(PyObject *object, const ArgContext &place,
                                Conversion &conversion, TensorView &view) {
  TypeEntry entry = lookUp(Py_TYPE(object));
  switch (entry.kind) {
  case Kind::Numpy:
    return readNumpy(object, place, view);
  case Kind::Torch:
  case Kind::TorchSubclass:
    return readTorch(object, entry.api, place, conversion, view);
  case Kind::Exchange: {
    dlpack::Tensor tensor;
    if (entry.api->view(object, &tensor) != 0)
      place.failBecause(object, "whose DLPack exchange failed");
    readDLPack(tensor, place, view);
    if (view.device.type == MLAFIX_CUDA && !conversion.streamApi)
      conversion.streamApi = entry.api;
    return;
  }
  case Kind::Producer:
    return readProducer(object, place, conversion, view);
  case Kind::NotATensor:
    place.fail("expected %s (a numpy array, a torch tensor, or another object "
               "with __dlpack__), got %s",
               place.expected, typeName(object).c_str());
  }
}
