//===- EmptyTensor.cpp - Tensors that torch allocates ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// By torch's own functions, so that the tensors are torch's in every respect.
// Most of what such a call costs in Python is the way to it: attributes, tuples
// of sizes, dtype and device objects, keywords. torch's C interface for
// compiled models takes numbers instead. (That of DLPack makes tensors that
// Tensor.record_stream has no effect on.)
//
//===----------------------------------------------------------------------===//

#include "EmptyTensor.h"
#include "Errors.h"

#include <dlfcn.h>
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

/// torch's C interface for compiled models (torch/csrc/inductor/aoti_torch/c/
/// shim.h), and the function by which torch makes a tensor's Python object.
class TorchLibrary {
public:
  TorchLibrary() {
    // They are loaded: this opens nothing.
    void *core = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
    void *python = dlopen("libtorch_python.so", RTLD_NOW | RTLD_NOLOAD);
    if (!core || !python)
      return;
    auto code = [&](const std::string &name) -> int32_t {
      auto ask = reinterpret_cast<int32_t (*)()>(
          dlsym(core, ("aoti_torch_" + name).c_str()));
      return ask ? ask() : -1;
    };
    for (int32_t dtype = 0; dtype < maxDTypes; ++dtype)
      dtypes[dtype] = torchName(dtype)
                          ? code(std::string("dtype_") + torchName(dtype))
                          : -1;
    cpu = code("device_type_cpu");
    cuda = code("device_type_cuda");
    find(core, "aoti_torch_empty_strided", empty);
    find(core, "aoti_torch_delete_tensor_object", destroy);
    // PyObject *THPVariable_Wrap(const at::TensorBase &)
    find(python, "_Z16THPVariable_WrapRKN2at10TensorBaseE", wrap);
  }

  /// The tensor; null where the interface lacks something, or has failed.
  nb::object make(const Shape &shape) const {
    int32_t dtype = dtypes[shape.dtype];
    int32_t device = shape.device.type == MLAFIX_CPU ? cpu : cuda;
    if (!empty || !destroy || !wrap || dtype < 0 || device < 0)
      return {};
    void *tensor = nullptr;
    int32_t status;
    {
      // An allocator may call back into Python from another thread.
      nb::gil_scoped_release unlocked;
      status = empty(shape.ndim, shape.sizes, shape.strides, dtype, device,
                     shape.device.ordinal, &tensor);
    }
    if (status)
      return {};
    nb::object object = nb::steal(wrap(tensor));
    destroy(tensor); // A reference, of which the object has another.
    if (!object.is_valid())
      nb::raise_python_error();
    return object;
  }

private:
  template <typename Function>
  static void find(void *library, const char *name, Function *&function) {
    function = reinterpret_cast<Function *>(dlsym(library, name));
  }

  int32_t dtypes[maxDTypes] = {}; ///< by mlafix_dtype; -1: has none
  int32_t cpu = -1, cuda = -1;
  int32_t (*empty)(int64_t ndim, const int64_t *sizes, const int64_t *strides,
                   int32_t dtype, int32_t deviceType, int32_t deviceIndex,
                   void **tensor) = nullptr;
  int32_t (*destroy)(void *tensor) = nullptr;
  PyObject *(*wrap)(const void *tensor) = nullptr;
};

/// What is asked of torch, looked up once. References are kept for ever: the
/// process does, too.
struct Torch {
  nb::handle module;
  TorchLibrary library;
  PyObject *emptyLike;
  PyObject *dispatchModes, *functionModes, *tracing;

  Torch() : module(importedModule("torch")) {
    nb::object internal = module.attr("_C");
    auto keep = [](nb::object object) { return object.release().ptr(); };
    emptyLike = keep(module.attr("empty_like"));
    dispatchModes = keep(internal.attr("_len_torch_dispatch_stack"));
    functionModes = keep(internal.attr("_len_torch_function_stack"));
    tracing = keep(internal.attr("_get_tracing_state"));
  }
};

const Torch &torch() {
  // No variable with a guard: who waits for it keeps the interpreter's lock,
  // which the thread that fills the variable in may want.
  static const Torch *found = nullptr;
  if (!found) {
    auto made = std::make_unique<Torch>();
    if (!found)
      found = made.release();
  }
  return *found;
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

nb::list makeList(const int64_t *values, uint32_t count) {
  nb::list list;
  for (uint32_t i = 0; i < count; ++i)
    list.append(values[i]);
  return list;
}

/// Through Python, which raises what keeps torch from it.
nb::object makeStrided(const Shape &shape) {
  nb::handle module = torch().module;
  nb::object device = shape.device.type == MLAFIX_CPU
                          ? module.attr("device")("cpu")
                          : module.attr("device")("cuda", shape.device.ordinal);
  return module.attr("empty_strided")(
      makeList(shape.sizes, shape.ndim), makeList(shape.strides, shape.ndim),
      nb::arg("dtype") = module.attr(torchName(shape.dtype)),
      nb::arg("device") = device);
}

} // namespace

bool mlafix::python::canAllocate(int32_t dtype) {
  return torchName(dtype) != nullptr;
}

nb::object mlafix::python::makeEmpty(const Shape &shape) {
  nb::object made = torch().library.make(shape);
  return made.is_valid() ? made : makeStrided(shape);
}

nb::object mlafix::python::makeLike(PyObject *other) {
  nb::object made =
      nb::steal(PyObject_Vectorcall(torch().emptyLike, &other, 1, nullptr));
  if (!made.is_valid())
    nb::raise_python_error();
  return made;
}

bool mlafix::python::isTorchUnwatched() {
  static bool isLoaded = false;
  if (!isLoaded && !(isLoaded = importedModule("torch") != nullptr))
    return false;
  return isZero(torch().dispatchModes) && isZero(torch().functionModes) &&
         call(torch().tracing).is_none();
}
