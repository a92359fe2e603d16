//===- Dispatcher.cpp - From a Python call to the specialised kernel ------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Dispatcher.h"
#include "EmptyTensor.h"
#include "Errors.h"
#include "python-bindings/shared/Finalization.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace mlafix::python;

Dispatcher::Dispatcher(const std::string &name, nb::str signature,
                       nb::object resolve, nb::object views,
                       nb::object specialize)
    : resolve(std::move(resolve)),
      signature(std::make_shared<Signature>(
          Signature::parse(name, signature, views, specialize))) {
  if (!PyCallable_Check(this->resolve.ptr()))
    throwArgumentError("argument \"resolve\": expected a function, got %s",
                       typeName(this->resolve).c_str());
}

Dispatcher::Entry Dispatcher::resolveEntry(const CallArgs &call) {
  nb::dict bindings = call.bindings(*signature);
  nb::dict all = nb::cast<nb::dict>(bindings.attr("copy")());
  all.attr("update")(call.presence(*signature));
  nb::object answer = resolve(all, call.device.type, call.device.ordinal);
  if (KernelInfo kernel; nb::try_cast<KernelInfo>(answer, kernel))
    return {kernel.unit, kernel.handle};
  Unit unit;
  if (!nb::try_cast<Unit>(answer, unit))
    throwUnitError(
        "kernel \"%s\": expected a Unit or a KernelInfo from resolve, got %s",
        signature->name.c_str(), typeName(answer).c_str());
  auto find = [&](const nb::dict &wanted, const mlafix_kernel **kernel) {
    return mlafix_unit_find_kernel(unit.handle.get(), signature->name.c_str(),
                                   bindingsText(wanted).c_str(), kernel);
  };
  // If the unit has no kernel for exactly the optional arguments that are
  // present, take the kernel that leaves optional arguments open. It can run
  // every call.
  const mlafix_kernel *kernel = nullptr;
  if (find(all, &kernel) != MLAFIX_OK)
    check(find(bindings, &kernel));
  return {unit.handle, kernel};
}

Dispatcher::Entry Dispatcher::find(nb::handle args, uint32_t flags,
                                   CallArgs &call) {
  watches.check();
  call.read(*signature, args.ptr(), flags);
  auto found = table.find(call.key);
  if (__builtin_expect(found != table.end(), 1))
    return found->second;
  // `resolve` may release the GIL, so another thread may have resolved the same
  // call. The first entry stays.
  Entry entry = resolveEntry(call);
  return table.emplace(call.key, std::move(entry)).first->second;
}

void Dispatcher::launch(nb::handle args, nb::handle stream, uint32_t flags) {
  CallArgs call;
  // An object with __dlpack__ must know the stream before it exports a tensor.
  if (!stream.is_none())
    call.conversion.producerStream =
        readStream(stream.ptr(), call.conversion, {MLAFIX_CUDA, 0});
  Entry entry = find(args, flags, call);
  check(start(entry, call, findStream(stream, call), flags));
}

void *Dispatcher::findStream(nb::handle stream, const CallArgs &call) {
  return stream.is_none() ? readStream(Py_None, call.conversion, call.device)
                          : call.conversion.producerStream;
}

mlafix_status Dispatcher::start(const Entry &entry, const CallArgs &call,
                                void *stream, uint32_t flags) {
  if (call.device.type == MLAFIX_CPU && call.bytes >= releaseBytes) {
    ReleasedLock released;
    return mlafix_launch(entry.kernel, call.args, call.count, call.device,
                         stream, flags & runtimeFlags);
  }
  return mlafix_launch(entry.kernel, call.args, call.count, call.device, stream,
                       flags & runtimeFlags);
}

/// True if torch's own dispatcher need not see an argument: it is a plain
/// tensor, a list of plain tensors, or not a tensor.
static bool isPlain(const ArgSpec &spec, PyObject *object) {
  if (object == Py_None)
    return true;
  if (spec.isTensor())
    return plainTorchApi(Py_TYPE(object));
  return !spec.isMany() || arePlain(object);
}

bool Dispatcher::readAllocating(nb::handle args, CallArgs &call,
                                nb::object &outputs) {
  call.begin(*signature, args.ptr(), 0);
  outputs =
      nb::steal(PyTuple_New(static_cast<Py_ssize_t>(signature->numOutputs)));
  if (!outputs.is_valid())
    nb::raise_python_error();
  // The placeholders of outputs. The outputs are allocated after all inputs are
  // read.
  const NewTensor *wanted[MLAFIX_MAX_ARGS] = {};
  for (uint32_t i = 0; i < call.count; ++i) {
    PyObject *object = CallArgs::argument(args.ptr(), i);
    bool isOutput = i < signature->numOutputs;
    if (isOutput && (wanted[i] = as<NewTensor>(object)))
      continue;
    if (!isPlain(signature->args[i], object))
      return false;
    if (const SizeOf *size = as<SizeOf>(object)) {
      if (!call.readSize(*signature, i, size->arg, size->dim))
        return false;
      continue;
    }
    call.readArg(*signature, i, object);
    if (isOutput)
      NB_TUPLE_SET_ITEM(outputs.ptr(), i, Py_NewRef(object));
  }
  for (uint32_t i = 0; i < signature->numOutputs; ++i) {
    if (!wanted[i])
      continue;
    nb::object made = allocate(*signature, call, args, i, *wanted[i]);
    if (!made.is_valid())
      return false;
    NB_TUPLE_SET_ITEM(outputs.ptr(), i, made.release().ptr());
  }
  call.finish(*signature);
  return true;
}

nb::object Dispatcher::tryLaunch(nb::handle args, nb::handle stream) {
  try {
    CallArgs call;
    nb::object outputs;
    watches.check();
    if (!isTorchUnwatched() || !readAllocating(args, call, outputs))
      return nb::none();
    auto found = table.find(call.key);
    if (found == table.end())
      return nb::none();
    Entry entry = found->second;
    if (!stream.is_none())
      call.conversion.producerStream =
          readStream(stream.ptr(), call.conversion, {MLAFIX_CUDA, 0});
    mlafix_status status = start(entry, call, findStream(stream, call), 0);
    if (status == MLAFIX_INVALID_ARGUMENT)
      return nb::none();
    check(status);
    return outputs;
  } catch (nb::python_error &error) {
    // For a wrong argument, return None. The caller then takes its slower path,
    // which reports the error.
    if (!error.matches(classOfArgumentErrors()))
      throw;
    return nb::none();
  }
}

Bound Dispatcher::bind(nb::handle args, uint32_t flags) {
  CallArgs call;
  Entry entry = find(args, flags, call);
  mlafix_bound *bound = nullptr;
  check(mlafix_bind(entry.kernel, call.args, call.count, call.device,
                    flags & runtimeFlags, &bound));
  return Bound(signature, entry.unit, bound, std::move(call), nb::borrow(args),
               flags);
}

KernelInfo Dispatcher::prepare(nb::handle args) {
  CallArgs call;
  Entry entry = find(args, 0, call);
  check(mlafix_unit_prepare(entry.unit.get(), call.device));
  return {entry.unit, entry.kernel};
}

void Dispatcher::clear() { table.clear(); }

namespace {

int traverseDispatcher(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self))
    return 0;
  auto *dispatcher = nb::inst_ptr<Dispatcher>(self);
  Py_VISIT(dispatcher->resolve.ptr());
  return dispatcher->watches.traverse(visit, arg);
}

int clearDispatcher(PyObject *self) {
  if (!nb::inst_ready(self))
    return 0;
  auto *dispatcher = nb::inst_ptr<Dispatcher>(self);
  dispatcher->resolve = nb::none();
  dispatcher->watches.clear();
  return 0;
}

PyType_Slot dispatcherSlots[] = {
    {Py_tp_traverse, reinterpret_cast<void *>(traverseDispatcher)},
    {Py_tp_clear, reinterpret_cast<void *>(clearDispatcher)},
    {0, nullptr}};

} // namespace

static void bindLaunches(nb::class_<Dispatcher> &dispatcher) {
  dispatcher
      .def("__call__", &Dispatcher::launch, nb::call_guard<Call>(),
           nb::arg("args"), nb::arg("stream").none() = nb::none(),
           nb::arg("flags") = 0,
           nb::sig("def __call__(self, args: tuple[object, ...], stream: "
                   "object | None = None, flags: int = 0) -> None"),
           "Check the arguments, a tuple, and launch on their device. Tensors: "
           "numpy arrays, torch tensors, objects with __dlpack__; None leaves "
           "an optional one out. CUDA: enqueued on `stream` (None: torch's "
           "current stream where torch tensors are passed, else the legacy "
           "default stream); nothing waits. CPU: done on return. Raises "
           "ArgumentError, UnitError, DriverError, and what `resolve` raises; "
           "then nothing was launched.")
      .def("try_launch", &Dispatcher::tryLaunch, nb::call_guard<Call>(),
           nb::arg("args"), nb::arg("stream").none() = nb::none(),
           nb::sig("def try_launch(self, args: tuple[object, ...], stream: "
                   "object | None = None) -> tuple[typing.Any, ...] | None"),
           "The short way, for plain torch tensors while no mode or tracer of "
           "torch watches: outputs may be a NewTensor, and are allocated. "
           "Returns the tuple of outputs; or None, with nothing launched, for "
           "any other call, a wrong one, and one that was not resolved yet. "
           "Raises DriverError.");
}

void mlafix::python::bindDispatcher(nb::module_ &module) {
  nb::class_<Dispatcher> dispatcher(
      module, "Dispatcher",
      "A kernel that is specialised by what it is called with.\n\n"
      "signature: JSON text, as mlafix._compiler.signature gives it.\n"
      "resolve(bindings, device_type, ordinal) -> Unit or KernelInfo: called "
      "once for each "
      "new combination of upper-case dims, dtypes, optional arguments that are "
      "given and device. An optional argument is bound to \"present\" or "
      "\"absent\"; a unit in which it is open will do.\n"
      "views: {argument: permutation of its dims}, applied to what is passed.\n"
      "specialize: lower-case dims to bind as well.",
      nb::type_slots(dispatcherSlots));
  dispatcher.def(
      nb::init<const std::string &, nb::str, nb::object, nb::object,
               nb::object>(),
      nb::arg("name"), nb::arg("signature"), nb::arg("resolve"),
      nb::arg("views") = nb::none(), nb::arg("specialize") = nb::none(),
      nb::sig("def __init__(self, name: str, signature: str, resolve: "
              "collections.abc.Callable[[dict[str, str], int, int], Unit | "
              "KernelInfo], views: collections.abc.Mapping[str, "
              "collections.abc.Sequence[int]] | None = None, specialize: "
              "collections.abc.Sequence[str] | None = None) -> None"));
  bindLaunches(dispatcher);
  dispatcher
      .def("bind", &Dispatcher::bind, nb::call_guard<Call>(), nb::arg("args"),
           nb::arg("flags") = 0,
           nb::sig("def bind(self, args: tuple[object, ...], flags: int = 0) "
                   "-> Bound"),
           "The same checks, once: a Bound to launch many times.")
      .def("prepare", &Dispatcher::prepare, nb::call_guard<Call>(),
           nb::arg("args"),
           nb::sig("def prepare(self, args: tuple[object, ...]) -> KernelInfo"),
           "Resolve and load what such a call would run, without launching.")
      .def(
          "watch",
          [](Dispatcher &self, nb::list names, nb::object changed) {
            self.watches.set(std::move(names), std::move(changed));
          },
          nb::arg("names"), nb::arg("changed"),
          nb::sig("def watch(self, names: list[tuple[typing.Any, ...]], "
                  "changed: collections.abc.Callable[[], "
                  "list[tuple[typing.Any, ...]]]) -> None"),
          "Compare names before each call. A tuple (holder, key, value) is an "
          "item of a dict, the attribute `key` of another object, or the "
          "elements of a list (key None, value a tuple of them); (holder, key) "
          "is an item that a dict does not have. Where one is another object, "
          "`changed()` raises, or returns the names to compare from then on.")
      .def_prop_ro("num_specializations", &Dispatcher::numSpecializations)
      .def("clear", &Dispatcher::clear,
           "Forget what was resolved: the next calls ask again.");
  module.attr("DEEP_CHECKS") = static_cast<int>(MLAFIX_LAUNCH_DEEP_CHECKS);
  module.attr("NO_DEPENDENT") = static_cast<int>(MLAFIX_LAUNCH_NO_DEPENDENT);
  module.attr("ASSUME_DISJOINT") =
      static_cast<int>(MLAFIX_LAUNCH_ASSUME_DISJOINT);
  module.attr("IGNORE_GRAD") = static_cast<int>(flagIgnoreGrad);
}
