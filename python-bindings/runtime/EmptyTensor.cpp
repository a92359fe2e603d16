//===- EmptyTensor.cpp - Tensors that torch allocates ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// torch's own functions allocate, so that the tensors are ordinary torch
// tensors. In Python, most of the time of such a call goes into its arguments:
// tuples of sizes, dtype and device objects, keywords. This file calls torch's
// C interface for compiled models, which takes numbers instead. This file does
// not use the allocator of torch's DLPack interface, since Tensor.record_stream
// has no effect on the tensors of that allocator.
//
//===----------------------------------------------------------------------===//

#include "EmptyTensor.h"
#include "Errors.h"
#include "LoadedLibrary.h"
#include "python-bindings/shared/Finalization.h"

#include <memory>
#include <string>

namespace nb = nanobind;
using namespace mlafix::python;

namespace {

constexpr int maxDTypes = 16;

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

/// Allocates tensors through torch's C interface for compiled models,
/// torch/csrc/inductor/aoti_torch/c/shim.h, and through the function that makes
/// their Python objects.
class Allocator {
public:
  Allocator() {
    LoadedLibrary core("libtorch_cpu.so");
    auto code = [&](const std::string &name) {
      int32_t (*ask)();
      core.find(("aoti_torch_" + name).c_str(), ask);
      return ask ? ask() : -1;
    };
    for (int32_t dtype = 0; dtype < maxDTypes; ++dtype)
      dtypes[dtype] = torchName(dtype)
                          ? code(std::string("dtype_") + torchName(dtype))
                          : -1;
    cpu = code("device_type_cpu");
    cuda = code("device_type_cuda");
    core.find("aoti_torch_empty_strided", empty);
    core.find("aoti_torch_get_data_ptr", address);
    core.find("aoti_torch_delete_tensor_object", destroy);
    // PyObject *THPVariable_Wrap(const at::TensorBase &)
    LoadedLibrary("libtorch_python.so")
        .find("_Z16THPVariable_WrapRKN2at10TensorBaseE", wrap);
  }

  /// Makes a tensor as `view` describes it, and sets `view.data`. Returns null
  /// if torch lacks a function or the dtype, or if the C interface reports an
  /// error. Throws if the Python object cannot be made.
  nb::object make(TensorView &view) const {
    int32_t dtype = dtypes[view.dtype];
    int32_t device = view.device.type == MLAFIX_CPU ? cpu : cuda;
    if (!empty || !address || !destroy || !wrap || dtype < 0 || device < 0)
      return {};
    void *tensor = nullptr;
    int32_t status;
    {
      // The allocator may run Python code in another thread, which needs the
      // lock.
      ReleasedLock unlocked;
      status = empty(view.ndim, view.sizes, view.strides, dtype, device,
                     view.device.ordinal, &tensor);
    }
    if (status)
      return {};
    nb::object object = nb::steal(wrap(tensor));
    status = address(tensor, &view.data);
    destroy(tensor); // drops our reference; the Python object has its own
    if (!object.is_valid())
      nb::raise_python_error();
    return status ? nb::object() : object;
  }

private:
  /// torch's number for each mlafix_dtype; -1 if the interface lacks the dtype
  int32_t dtypes[maxDTypes] = {};
  int32_t cpu = -1, cuda = -1;
  int32_t (*empty)(int64_t ndim, const int64_t *sizes, const int64_t *strides,
                   int32_t dtype, int32_t deviceType, int32_t deviceIndex,
                   void **tensor) = nullptr;
  int32_t (*address)(void *tensor, void **data) = nullptr;
  int32_t (*destroy)(void *tensor) = nullptr;
  PyObject *(*wrap)(const void *tensor) = nullptr;
};

bool isZero(PyObject *function) {
  return PyLong_AsLong(nb::handle(function)().ptr()) == 0;
}

PyObject *keep(nb::object object) { return object.release().ptr(); }

/// Tells whether a mode or tracer watches this thread's calls of torch. Uses
/// torch's C++ functions, or their Python equivalents if torch does not export
/// all of them.
class Watchers {
public:
  explicit Watchers(nb::handle internal)
      : pythonDispatch(keep(internal.attr("_len_torch_dispatch_stack"))),
        pythonFunctions(keep(internal.attr("_len_torch_function_stack"))),
        pythonTracing(keep(internal.attr("_get_tracing_state"))) {
    LoadedLibrary core("libtorch_cpu.so"), base("libc10.so");
    // c10::impl::TorchDispatchModeTLS::stack_len()
    base.find("_ZN3c104impl20TorchDispatchModeTLS9stack_lenEv", dispatch);
    // at::impl::PythonTorchFunctionTLS::stack_len()
    core.find("_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv", functions);
    // const std::shared_ptr<TracingState>
    // &torch::jit::tracer::getTracingState()
    core.find("_ZN5torch3jit6tracer15getTracingStateEv", tracing);
  }

  bool areNone() const {
    if (dispatch && functions && tracing)
      return dispatch() == 0 && functions() == 0 && !tracing();
    return isZero(pythonDispatch) && isZero(pythonFunctions) &&
           nb::handle(pythonTracing)().is_none();
  }

private:
  int64_t (*dispatch)();
  int64_t (*functions)();
  const std::shared_ptr<void> &(*tracing)();
  PyObject *pythonDispatch, *pythonFunctions, *pythonTracing;
};

/// The objects and functions of torch that this file uses. References are never
/// released.
struct Torch {
  nb::handle module;
  Allocator allocator;
  Watchers watchers;
  PyObject *emptyLike;

  Torch()
      : module(importedModule("torch")), watchers(module.attr("_C")),
        emptyLike(keep(module.attr("empty_like"))) {}
};

const Torch &torch() { return lookedUp<Torch>(); }

nb::list makeList(const int64_t *values, uint32_t count) {
  nb::list list;
  for (uint32_t i = 0; i < count; ++i)
    list.append(values[i]);
  return list;
}

/// Allocates a tensor as `view` describes it with torch.empty_strided, and sets
/// `view.data`. Throws torch's exception if torch cannot.
nb::object makeStrided(TensorView &view) {
  nb::handle module = torch().module;
  nb::object device = view.device.type == MLAFIX_CPU
                          ? module.attr("device")("cpu")
                          : module.attr("device")("cuda", view.device.ordinal);
  nb::object made = module.attr("empty_strided")(
      makeList(view.sizes, view.ndim), makeList(view.strides, view.ndim),
      nb::arg("dtype") = module.attr(torchName(view.dtype)),
      nb::arg("device") = device);
  auto address = nb::cast<uintptr_t>(made.attr("data_ptr")());
  view.data = reinterpret_cast<void *>(address);
  return made;
}

} // namespace

bool mlafix::python::canAllocate(int32_t dtype) {
  return torchName(dtype) != nullptr;
}

nb::object mlafix::python::makeEmpty(TensorView &view) {
  nb::object made = torch().allocator.make(view);
  return made.is_valid() ? made : makeStrided(view);
}

nb::object mlafix::python::makeLike(PyObject *other) {
  return nb::handle(torch().emptyLike)(nb::handle(other));
}

bool mlafix::python::isTorchUnwatched() {
  static bool isLoaded = false;
  if (!isLoaded && !(isLoaded = importedModule("torch") != nullptr))
    return false;
  return torch().watchers.areNone();
}
