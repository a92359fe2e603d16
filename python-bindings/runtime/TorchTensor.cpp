//===- TorchTensor.cpp - torch tensors as tensors -------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads a torch tensor through torch's table of C functions, or through the
// tensor's attributes if torch has no table or the tensor's type is a subclass.
// Either way, a tensor is refused if its memory does not contain its values
// (sparse, meta, lazily negated, a subclass that redefines operations), or if
// autograd would have to follow the call.
//
//===----------------------------------------------------------------------===//

#include "DTypeNames.h"
#include "Errors.h"
#include "LoadedLibrary.h"
#include "Tensor.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace mlafix::python;

//===----------------------------------------------------------------------===//
// Lazy negation
//
// A view of any dtype and strides may be negated lazily: torch._neg_view(x), or
// the imaginary part of a conjugate. To tell whether a tensor is negated, the
// Python method is_neg takes tens of nanoseconds, and torch's C++ function
// takes five. The C++ function needs the at::Tensor in the Python object, which
// tensorIn finds by the object's layout in memory. So the function is only used
// if this layout and the function's answers are as expected (isAsExpected).
//
//===----------------------------------------------------------------------===//

namespace {

/// Returns the at::Tensor in a Python object of torch: the first member after
/// the object's header.
const void *tensorIn(PyObject *object) { return object + 1; }

/// True if tensorIn finds the object's at::Tensor. An at::Tensor consists of
/// one pointer, which torch also reports as `_cdata`.
bool holdsTensor(nb::handle object) {
  auto address = nb::cast<uintptr_t>(object.attr("_cdata"));
  return *static_cast<const uintptr_t *>(tensorIn(object.ptr())) == address;
}

/// The functions of torch that tell whether a tensor is negated lazily. `ask`
/// is null if torch's C++ function cannot be used.
struct TorchNegation {
  PyObject *isNeg = PyUnicode_InternFromString("is_neg");
  bool (*ask)(const void *tensor);

  TorchNegation() {
    // bool at::native::is_neg(const at::Tensor &)
    LoadedLibrary("libtorch_cpu.so")
        .find("_ZN2at6native6is_negERKNS_6TensorE", ask);
    if (ask && !isAsExpected())
      ask = nullptr;
  }

  bool isAsExpected() const {
    try {
      nb::handle torch(importedModule("torch"));
      nb::object plain = torch.attr("empty")(1, nb::arg("device") = "cpu");
      nb::object negated = torch.attr("_neg_view")(plain);
      return holdsTensor(plain) && holdsTensor(negated) &&
             !ask(tensorIn(plain.ptr())) && ask(tensorIn(negated.ptr()));
    } catch (const nb::python_error &) {
      return false;
    }
  }
};

} // namespace

/// Returns true for True, and releases the caller's reference. Throws the
/// pending exception for null.
static bool truth(PyObject *value) {
  nb::object owned = nb::steal(value);
  if (!owned.is_valid())
    nb::raise_python_error();
  return owned.ptr() == Py_True;
}

/// Returns tensor.is_neg(): true if the memory has the tensor's values with the
/// opposite sign. `isPlain` is true if the tensor was read through the table of
/// C functions, so that its type is torch.Tensor or Parameter.
static bool isNegated(PyObject *tensor, bool isPlain) {
  const TorchNegation &torch = lookedUp<TorchNegation>();
  if (isPlain && torch.ask)
    return torch.ask(tensorIn(tensor));
  return truth(PyObject_CallMethodObjArgs(tensor, torch.isNeg, nullptr));
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

namespace {

/// The functions and attributes of torch that every call uses. References are
/// never released.
struct Torch {
  PyObject *isGradEnabled;
  PyObject *requiresGrad; ///< the descriptor of Tensor.requires_grad
  descrgetfunc getRequiresGrad;

  Torch() {
    nb::object torch = nb::borrow(importedModule("torch"));
    nb::object tensor = torch.attr("Tensor");
    isGradEnabled = nb::object(torch.attr("is_grad_enabled")).release().ptr();
    requiresGrad = nb::object(tensor.attr("requires_grad")).release().ptr();
    getRequiresGrad = reinterpret_cast<descrgetfunc>(
        PyType_GetSlot(Py_TYPE(requiresGrad), Py_tp_descr_get));
  }

  /// Returns tensor.requires_grad, without a search in the bases of the type.
  PyObject *askRequiresGrad(PyObject *tensor) const {
    return getRequiresGrad(requiresGrad, tensor,
                           reinterpret_cast<PyObject *>(Py_TYPE(tensor)));
  }
};
const Torch &torch() { return lookedUp<Torch>(); }

std::string attributeText(nb::handle object, const char *attribute) {
  nb::object value = attributeOf(object.ptr(), attribute);
  return value.is_valid() ? textOf(value) : "unknown";
}

/// True if tensors that require grad must be refused. Asks torch for the grad
/// mode once per call.
bool gradMatters(Conversion &conversion) {
  if (conversion.ignoreGrad)
    return false;
  if (conversion.gradEnabled < 0)
    conversion.gradEnabled = truth(PyObject_CallNoArgs(torch().isGradEnabled));
  return conversion.gradEnabled > 0;
}

void refuseUnusable(PyObject *object, const ArgContext &place,
                    Conversion &conversion, bool isPlain) {
  if (gradMatters(conversion) && truth(torch().askRequiresGrad(object)))
    place.fail("expected a tensor that autograd does not follow, got one that "
               "requires grad (detach it, or call under torch.no_grad())");
  if (isNegated(object, isPlain))
    place.fail("expected a tensor whose memory holds its values, got a lazily "
               "negated view (call resolve_neg())");
}

/// Throws ArgumentError if the tensor's layout or device is unsupported.
void explain(PyObject *object, const ArgContext &place) {
  std::string layout = attributeText(object, "layout");
  if (layout != "torch.strided")
    place.fail("expected a strided tensor, got one of layout %s",
               layout.c_str());
  std::string device = attributeText(object, "device");
  if (device == "meta")
    place.fail("expected a tensor on a CPU or CUDA device, got one on meta, "
               "which has no memory (the operators in torch.ops take it)");
  if (device.compare(0, 3, "cpu") != 0 && device.compare(0, 4, "cuda") != 0)
    place.fail("expected a tensor on a CPU or CUDA device, got one on %s",
               device.c_str());
}

/// True if torch.vmap or another transform of torch.func wraps the tensor.
bool isOfTransform(PyObject *object) {
  PyObject *functorch = importedModule("torch._C._functorch");
  if (!functorch)
    return false;
  nb::object answer = nb::steal(PyObject_CallMethod(
      functorch, "is_functorch_wrapped_tensor", "O", object));
  clearException();
  return answer.is_valid() && answer.ptr() == Py_True;
}

/// Converts a dtype's name such as "torch.bfloat16" to MLAFIX_BF16. Returns 0
/// if mlafix lacks the dtype.
int32_t dtypeOf(std::string_view text) {
  constexpr std::string_view module = "torch.";
  return text.substr(0, module.size()) == module
             ? dtypeByName(text.substr(module.size()))
             : 0;
}

/// Throws ArgumentError for a subclass that redefines torch's operations. Such
/// a tensor may have no memory, or memory with another meaning.
void refuseRedefined(PyObject *object, const ArgContext &place) {
  nb::object module = nb::borrow(importedModule("torch"));
  nb::object type = nb::borrow(reinterpret_cast<PyObject *>(Py_TYPE(object)));
  nb::object own = nb::getattr(type, "__torch_dispatch__", nb::none());
  nb::object plain =
      nb::getattr(module.attr("Tensor"), "__torch_dispatch__", nb::none());
  if (!own.is(plain))
    place.fail("expected a plain torch tensor, got %s, which redefines torch's "
               "operations",
               typeName(object).c_str());
}

void readByAttributes(PyObject *object, const ArgContext &place,
                      TensorView &view) {
  refuseRedefined(object, place);
  explain(object, place);
  nb::handle tensor(object);
  std::string dtype = attributeText(tensor, "dtype");
  view.dtype = dtypeOf(dtype);
  if (view.dtype == 0)
    place.failOfDType(dtype.c_str());
  nb::object device = tensor.attr("device");
  bool onCpu = nb::cast<std::string>(device.attr("type")) == "cpu";
  view.device = onCpu ? mlafix_device{MLAFIX_CPU, 0}
                      : mlafix_device{MLAFIX_CUDA,
                                      nb::cast<int32_t>(device.attr("index"))};
  nb::tuple sizes(tensor.attr("shape")), strides(tensor.attr("stride")());
  if (sizes.size() > MLAFIX_MAX_DIMS)
    place.fail("expected at most %d dims, got %zu", MLAFIX_MAX_DIMS,
               sizes.size());
  view.ndim = static_cast<uint32_t>(sizes.size());
  for (uint32_t i = 0; i < view.ndim; ++i) {
    view.sizes[i] = nb::cast<int64_t>(sizes[i]);
    view.strides[i] = nb::cast<int64_t>(strides[i]);
  }
  view.data =
      reinterpret_cast<void *>(nb::cast<uintptr_t>(tensor.attr("data_ptr")()));
  view.readOnly = false;
}

} // namespace

void mlafix::python::readTorch(PyObject *object, const dlpack::ExchangeApi *api,
                               const ArgContext &place, Conversion &conversion,
                               TensorView &view) {
  if (api) {
    dlpack::Tensor tensor;
    if (api->view(object, &tensor) != 0) {
      // Replaces torch's message, which contains a C++ stack trace.
      clearException();
      explain(object, place);
      if (isOfTransform(object))
        place.fail("expected a tensor with memory of its own, got one of "
                   "torch.vmap or another transform of torch.func (call the "
                   "kernel outside of it)");
      place.fail(
          "expected %s, got a torch tensor of dtype %s that has no plain "
          "memory of its own",
          place.expected, attributeText(object, "dtype").c_str());
    }
    readDLPack(tensor, place, view);
  } else {
    readByAttributes(object, place, view);
  }
  refuseUnusable(object, place, conversion, api != nullptr);
  if (view.device.type != MLAFIX_CUDA)
    return;
  if (api && !conversion.streamApi)
    conversion.streamApi = api;
  else if (!api)
    conversion.torchStream = true;
}

void *mlafix::python::currentTorchStream(int32_t ordinal) {
  nb::object torch = nb::borrow(importedModule("torch"));
  nb::object handle =
      torch.attr("_C").attr("_cuda_getCurrentRawStream")(ordinal);
  return reinterpret_cast<void *>(nb::cast<uintptr_t>(handle));
}
