//===- TorchTensor.cpp - torch tensors as tensors -------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// By torch's table of C functions where it has one, else by attributes. Both
// end in the same refusals: a tensor whose memory is not what it stands for
// (sparse, meta, a lazy negation, a subclass of its own making) is an error,
// and so is one that autograd would have to follow.
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
// Views of any dtype and strides may be negated lazily: torch._neg_view(x), the
// imaginary part of a conjugate. The Python method that tells takes tens of
// nanoseconds per tensor; torch's C++ function takes five. The C++ function is
// called if tensors are found to lie in their Python objects as it needs them.
//
//===----------------------------------------------------------------------===//

namespace {

/// The at::Tensor within torch's Python object. It is the first member after
/// the header.
const void *tensorIn(PyObject *object) { return object + 1; }

/// True if the object holds an at::Tensor at this place. The check compares its
/// pointer with the one that torch reports.
bool holdsTensor(nb::handle object) {
  auto address = nb::cast<uintptr_t>(object.attr("_cdata"));
  return *static_cast<const uintptr_t *>(tensorIn(object.ptr())) == address;
}

/// Queries torch about lazy negation.
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

/// tensor.is_neg(): whether the memory holds a torch tensor's values with the
/// opposite sign. `isPlain`: its type is torch.Tensor or Parameter.
static bool isNegated(PyObject *tensor, bool isPlain) {
  const TorchNegation &torch = lookedUp<TorchNegation>();
  if (isPlain && torch.ask)
    return torch.ask(tensorIn(tensor));
  nb::object answer =
      nb::steal(PyObject_CallMethodObjArgs(tensor, torch.isNeg, nullptr));
  if (!answer.is_valid())
    nb::raise_python_error();
  return answer.ptr() == Py_True;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

namespace {

/// The functions of torch that every call uses. References are never released.
struct Torch {
  PyObject *isGradEnabled;
  PyObject *requiresGrad; ///< the attribute's descriptor, and its getter
  descrgetfunc getRequiresGrad;

  Torch() {
    nb::object torch = nb::borrow(importedModule("torch"));
    nb::object tensor = torch.attr("Tensor");
    isGradEnabled = nb::object(torch.attr("is_grad_enabled")).release().ptr();
    requiresGrad = nb::object(tensor.attr("requires_grad")).release().ptr();
    getRequiresGrad = reinterpret_cast<descrgetfunc>(
        PyType_GetSlot(Py_TYPE(requiresGrad), Py_tp_descr_get));
  }

  /// tensor.requires_grad, without searching the bases of the type.
  PyObject *askRequiresGrad(PyObject *tensor) const {
    return getRequiresGrad(requiresGrad, tensor,
                           reinterpret_cast<PyObject *>(Py_TYPE(tensor)));
  }
};
const Torch &torch() { return lookedUp<Torch>(); }

std::string attributeText(nb::handle object, const char *attribute) {
  nb::object value = nb::steal(PyObject_GetAttrString(object.ptr(), attribute));
  if (value.is_valid())
    return textOf(value);
  clearException();
  return "unknown";
}

bool truth(PyObject *value) {
  nb::object owned = nb::steal(value);
  if (!owned.is_valid())
    nb::raise_python_error();
  return owned.ptr() == Py_True;
}

/// Asks for the grad mode once per call. If grad is disabled, as usual where
/// these kernels are used, no tensor is asked.
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

/// Throws the reason why torch does not describe the tensor. Returns if torch
/// gives none.
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

/// Converts "torch.bfloat16" to MLAFIX_BF16. 0 if mlafix has no such dtype.
int32_t dtypeOf(std::string_view text) {
  constexpr std::string_view module = "torch.";
  return text.substr(0, module.size()) == module
             ? dtypeByName(text.substr(module.size()))
             : 0;
}

/// Refuses subclasses that redefine operations. They have no memory of their
/// own, or memory with another meaning.
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
      // torch's own message contains a C++ stack trace.
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
