//===- Bound.cpp - A call bound once, launched many times -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Bound.h"
#include "Errors.h"
#include "python-bindings/shared/Finalization.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace mlafix::python;

namespace {

bool sameShape(const TensorView &a, const TensorView &b) {
  if (a.ndim != b.ndim)
    return false;
  for (uint32_t i = 0; i < a.ndim; ++i)
    if (a.sizes[i] != b.sizes[i] ||
        (a.sizes[i] > 1 && a.strides[i] != b.strides[i]))
      return false;
  return true;
}

std::string shapeText(const TensorView &view) {
  return "sizes " + listText(view.sizes, view.ndim) + " and strides " +
         listText(view.strides, view.ndim);
}

} // namespace

Bound::Bound(std::shared_ptr<const Signature> signature,
             std::shared_ptr<mlafix_unit> unit, mlafix_bound *bound,
             CallArgs &&args, nb::object tensors, uint32_t flags)
    : tensors(std::move(tensors)), signature(std::move(signature)),
      unit(std::move(unit)), handle(bound),
      conversion(std::move(args.conversion)), device(args.device),
      bytes(args.bytes) {
  conversion.ignoreGrad = flags & flagIgnoreGrad;
  for (uint32_t i = 0; i < args.count; ++i) {
    bool given = args.args[i].kind == MLAFIX_ARG_TENSOR &&
                 args.args[i].value.tensor != nullptr;
    present.push_back(given);
    shapes.push_back(given ? args.views[i] : TensorView{});
  }
}

void Bound::launch(nb::handle stream) const {
  void *where = readStream(stream.ptr(), conversion, device);
  mlafix_status status;
  if (device.type == MLAFIX_CPU && bytes >= releaseBytes) {
    ++inFlight;
    {
      ReleasedLock released;
      status = mlafix_bound_launch(handle.get(), where, 0);
    }
    --inFlight;
  } else {
    status = mlafix_bound_launch(handle.get(), where, 0);
  }
  check(status);
}

uint64_t Bound::newPointer(const ArgSpec &spec, nb::handle object,
                           uint32_t index, const ArgContext &place,
                           Conversion &fresh) const {
  if (object.is_none()) {
    if (present[index])
      place.fail("expected %s, as when it was bound, got None", place.expected);
    return 0;
  }
  if (!present[index])
    place.fail("expected None, as when it was bound, got %s",
               typeName(object).c_str());
  if (PyLong_Check(object.ptr())) {
    size_t address = PyLong_AsSize_t(object.ptr());
    if (address == static_cast<size_t>(-1) && PyErr_Occurred()) {
      PyErr_Clear();
      place.fail("expected a tensor or an address, got %s",
                 reprOf(object).c_str());
    }
    return address;
  }
  TensorView view;
  CallArgs::readView(spec, object.ptr(), place, fresh, view);
  const TensorView &was = shapes[index];
  if (view.dtype != was.dtype)
    place.fail("expected dtype %s, as when it was bound, got %s",
               dtypeName(was.dtype), dtypeName(view.dtype));
  if (!sameShape(view, was))
    place.fail("expected %s, as when it was bound, got %s",
               shapeText(was).c_str(), shapeText(view).c_str());
  if (!areSame(view.device, device))
    place.fail("expected a tensor on %s, as when it was bound, got one on %s",
               DeviceText(device).text, DeviceText(view.device).text);
  return reinterpret_cast<uintptr_t>(view.data);
}

void Bound::setPointers(nb::handle args) {
  if (inFlight > 0)
    throwArgumentError("kernel \"%s\": expected a bound call that is not being "
                       "launched, got one that another thread launches now",
                       signature->name.c_str());
  nb::tuple given = nb::steal<nb::tuple>(PySequence_Tuple(args.ptr()));
  if (!given.is_valid()) {
    clearException();
    throwArgumentError("kernel \"%s\": expected a tuple of arguments, got %s",
                       signature->name.c_str(), typeName(args).c_str());
  }
  const auto &specs = signature->args;
  if (given.size() > specs.size() || given.size() < signature->numRequired)
    throwArgumentError("kernel \"%s\": expected %zu arguments, got %zu",
                       signature->name.c_str(), specs.size(), given.size());
  Conversion fresh;
  fresh.ignoreGrad = conversion.ignoreGrad;
  void *pointers[MLAFIX_MAX_ARGS];
  mlafix_arg scalars[MLAFIX_MAX_ARGS];
  for (uint32_t i = 0; i < specs.size(); ++i) {
    ArgContext place = contextOf(*signature, specs[i]);
    nb::object object = i < given.size() ? nb::object(given[i]) : nb::none();
    pointers[i] = nullptr;
    if (specs[i].isMany())
      continue; // arguments with several tensors keep their pointers
    if (specs[i].isTensor())
      pointers[i] = reinterpret_cast<void *>(
          newPointer(specs[i], object, i, place, fresh));
    else
      readScalar(object.ptr(), specs[i], place, scalars[i]);
  }
  // All arguments are read. Only the checks of the runtime can fail now, and a
  // failed check leaves the bound call unchanged.
  check(mlafix_bound_set_args(handle.get(), pointers, scalars,
                              static_cast<uint32_t>(specs.size())));
  // Arguments with several tensors are not replaced, so their tensors must stay
  // alive.
  nb::list kept;
  for (size_t i = 0; i < specs.size(); ++i)
    kept.append(specs[i].isMany()  ? nb::object(tensors[i])
                : i < given.size() ? nb::object(given[i])
                                   : nb::none());
  tensors = nb::tuple(kept);
  conversion.keepAlive = std::move(fresh.keepAlive);
}

nb::typed<nb::dict, nb::str, nb::any> Bound::launchInfo() const {
  mlafix_launch_info info = MLAFIX_LAUNCH_INFO_INIT;
  check(mlafix_bound_launch_info(handle.get(), &info));
  nb::dict out;
  out["entry"] = info.entry;
  out["variant"] = info.variant;
  out["rows"] = info.rows;
  out["grid"] = info.grid_x;
  out["block"] = info.block_x;
  out["dependent"] = info.dependent != 0;
  out["num_params"] = info.num_params;
  out["function"] = reinterpret_cast<uintptr_t>(info.function);
  out["kernel_params"] = reinterpret_cast<uintptr_t>(info.kernel_params);
  nb::list slots;
  for (uint32_t i = 0; i < info.num_slots; ++i)
    slots.append(info.slots[i]);
  out["slots"] = slots;
  out["bytes_read"] = info.bytes_read;
  out["bytes_written"] = info.bytes_written;
  out["bandwidth"] = info.bandwidth;
  out["target"] = info.target;
  out["kernel"] = info.kernel;
  out["bindings"] = info.bindings;
  nb::list versions;
  for (uint32_t i = 0; i < info.num_variants; ++i) {
    mlafix_variant_info version = MLAFIX_VARIANT_INFO_INIT;
    check(mlafix_bound_variant_info(handle.get(), i, &version));
    versions.append(nb::make_tuple(version.entry, version.refused));
  }
  out["versions"] = versions;
  return out;
}

namespace {

int traverseBound(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self))
    Py_VISIT(nb::inst_ptr<Bound>(self)->tensors.ptr());
  return 0;
}

int clearBound(PyObject *self) {
  if (nb::inst_ready(self))
    nb::inst_ptr<Bound>(self)->tensors = nb::none();
  return 0;
}

PyType_Slot boundSlots[] = {
    {Py_tp_traverse, reinterpret_cast<void *>(traverseBound)},
    {Py_tp_clear, reinterpret_cast<void *>(clearBound)},
    {0, nullptr}};

} // namespace

void mlafix::python::bindBound(nb::module_ &module) {
  nb::class_<Bound>(module, "Bound",
                    "A call whose arguments were checked once, to launch many "
                    "times. Keeps its tensors alive.",
                    nb::type_slots(boundSlots))
      .def("__call__", &Bound::launch, nb::call_guard<Call>(),
           nb::arg("stream").none() = nb::none(),
           "Launch. `stream`: None (torch's current stream where torch tensors "
           "were bound, else the legacy default stream), an integer handle, or "
           "an object with cuda_stream or __cuda_stream__.")
      .def("set_pointers", &Bound::setPointers, nb::call_guard<Call>(),
           nb::arg("args"),
           nb::sig("def set_pointers(self, args: tuple[object, ...]) -> None"),
           "New tensors, of the same dtypes, sizes, strides and device, or "
           "their addresses as integers (which must stay valid); new scalars. "
           "Raises ArgumentError and leaves the call as it was.")
      .def_prop_ro("launch_info", &Bound::launchInfo,
                   "What a launch hands to the driver: entry, variant, rows, "
                   "grid, block, dependent, num_params, function, "
                   "kernel_params, slots; bytes_read, bytes_written, and the "
                   "memory's bandwidth in bytes a second (0: unknown); "
                   "target: of the code; versions: the entry of each code "
                   "version, and why it does "
                   "not take the call (\"\" if it does).")
      .def(
          "explain",
          [](const Bound &bound) {
            return nb::module_::import_("mlafix._reports.explanation")
                .attr("CallExplanation")
                .attr("of")(bound.launchInfo());
          },
          nb::call_guard<Call>(), nb::sig("def explain(self) -> typing.Any"),
          "Why a launch runs the code that it runs, a CallExplanation: code "
          "versions, grid, bytes.");
}
