//===- UnitModule.cpp - Units and kernels in Python -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "UnitModule.h"
#include "Errors.h"
#include "mlafix/LaneGroups.h"
#include "python-bindings/shared/Finalization.h"

#include <charconv>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>

namespace nb = nanobind;
using namespace mlafix::python;

namespace {

using Kernels = nb::typed<nb::list, KernelInfo>;
using NamedValues = nb::typed<nb::dict, nb::str, nb::any>;

Unit loadUnit(nb::object path) {
  nb::bytes encoded;
  PyObject *raw = nullptr;
  if (!PyUnicode_FSConverter(path.ptr(), &raw))
    throw nb::python_error();
  encoded = nb::steal<nb::bytes>(raw);
  mlafix_unit *unit = nullptr;
  mlafix_status status;
  {
    ReleasedLock released;
    status = mlafix_unit_load_file(encoded.c_str(), nullptr, &unit);
  }
  check(status);
  return Unit::adopt(unit);
}

/// Returns a str argument in UTF-8. For other objects, throws ArgumentError
/// with a message that contains `expected`.
std::string textArgument(nb::handle object, const char *name,
                         const char *expected) {
  std::string text;
  if (!nb::try_cast<std::string>(object, text))
    throwArgumentError("argument \"%s\": expected %s, got %s", name, expected,
                       reprOf(object).c_str());
  return text;
}

mlafix_device deviceOf(nb::handle object) {
  return parseDevice(
      textArgument(object, "device", "\"cpu\", \"cuda\" or \"cuda:N\""));
}

Unit unitFromBytes(nb::handle data) {
  nb::bytes bytes;
  if (!nb::try_cast<nb::bytes>(data, bytes))
    throwArgumentError("argument \"data\": expected bytes, got %s",
                       typeName(data).c_str());
  mlafix_unit *unit = nullptr;
  check(mlafix_unit_load_memory(bytes.data(), bytes.size(), nullptr, &unit));
  return Unit::adopt(unit);
}

KernelInfo findKernel(const Unit &unit, nb::handle given, nb::object bindings) {
  std::string name = textArgument(given, "name", "a kernel's name");
  const mlafix_kernel *kernel = nullptr;
  check(mlafix_unit_find_kernel(unit.handle.get(), name.c_str(),
                                bindingsText(bindings).c_str(), &kernel));
  return {unit.handle, kernel};
}

Kernels kernelsOf(const Unit &unit) {
  Kernels all;
  for (uint32_t i = 0; i < mlafix_unit_num_kernels(unit.handle.get()); ++i)
    all.append(nb::cast(
        KernelInfo{unit.handle, mlafix_unit_kernel_at(unit.handle.get(), i)}));
  return all;
}

/// Parses "D=128,T=bf16" into {"D": "128", "T": "bf16"}.
nb::typed<nb::dict, nb::str, nb::str> bindingsDict(const KernelInfo &kernel) {
  nb::typed<nb::dict, nb::str, nb::str> out;
  std::string_view rest = mlafix_kernel_bindings(kernel.handle);
  while (!rest.empty()) {
    std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    // The unit's loader has checked that names and values contain neither '='
    // nor ','.
    size_t equals = one.find('=');
    out[nb::str(one.data(), equals)] =
        nb::str(one.data() + equals + 1, one.size() - equals - 1);
  }
  return out;
}

nb::object sizeOrNone(int64_t size) {
  return size < 0 ? nb::object(nb::none()) : nb::object(nb::int_(size));
}

nb::dict describeArg(const mlafix_arg_info &info) {
  static const char *const accesses[] = {"", "read", "write", "update",
                                         "absent"};
  nb::dict out;
  out["name"] = info.name;
  bool isPeers = info.kind == MLAFIX_ARG_PEERS;
  bool isList = info.kind == MLAFIX_ARG_LIST;
  bool isTensor = info.kind == MLAFIX_ARG_TENSOR;
  out["kind"] = isPeers    ? "peers"
                : isList   ? "list"
                : isTensor ? "tensor"
                           : "scalar";
  out["dtype"] = info.dtype_name;
  if (!isTensor && !isPeers && !isList) {
    if (info.at_most)
      out["at_most"] = info.at_most;
    return out;
  }
  nb::list dims, shape, strides;
  for (uint32_t i = 0; i < info.ndim; ++i) {
    dims.append(info.dims[i]);
    shape.append(sizeOrNone(info.shape[i]));
    strides.append(sizeOrNone(info.strides[i]));
  }
  out["dims"] = dims;
  out["shape"] = shape;
  out["strides"] = strides;
  out["access"] = accesses[info.access];
  out["optional"] = info.optional != 0;
  return out;
}

nb::typed<nb::list, NamedValues> argsOf(const KernelInfo &kernel) {
  nb::typed<nb::list, NamedValues> out;
  for (uint32_t i = 0; i < mlafix_kernel_num_args(kernel.handle); ++i) {
    mlafix_arg_info info = MLAFIX_ARG_INFO_INIT;
    check(mlafix_kernel_arg_info(kernel.handle, i, &info));
    out.append(describeArg(info));
  }
  return out;
}

/// Returns the compiler's proofs in the unit, in the form of Kernel.report but
/// without times and source locations.
NamedValues reportOf(const KernelInfo &kernel) {
  nb::list args;
  int64_t last = -1;
  nb::list answers;
  for (uint32_t i = 0; i < mlafix_kernel_num_proofs(kernel.handle); ++i) {
    mlafix_proof_info proof = MLAFIX_PROOF_INFO_INIT;
    check(mlafix_kernel_proof(kernel.handle, i, &proof));
    if (proof.arg != last) {
      mlafix_arg_info arg = MLAFIX_ARG_INFO_INIT;
      check(mlafix_kernel_arg_info(kernel.handle, proof.arg, &arg));
      answers = nb::list();
      nb::dict entry;
      entry["name"] = arg.name;
      entry["answers"] = answers;
      args.append(entry);
      last = proof.arg;
    }
    nb::dict answer;
    answer["question"] = proof.question;
    answer["verdict"] = proof.verdict;
    if (*proof.reason)
      answer["reason"] = proof.reason;
    if (*proof.element)
      answer["element"] = proof.element;
    answers.append(answer);
  }
  NamedValues out;
  out["kernel"] = mlafix_kernel_name(kernel.handle);
  out["args"] = args;
  return out;
}

nb::typed<nb::list, nb::str> targetsOf(const KernelInfo &kernel) {
  nb::typed<nb::list, nb::str> out;
  for (uint32_t i = 0; i < mlafix_kernel_num_targets(kernel.handle); ++i)
    out.append(mlafix_kernel_target(kernel.handle, i));
  return out;
}

NamedValues codeOn(const KernelInfo &kernel, nb::handle device) {
  mlafix_code_info info = MLAFIX_CODE_INFO_INIT;
  check(mlafix_kernel_code_info(kernel.handle, deviceOf(device), &info));
  NamedValues out;
  out["target"] = info.target;
  out["format"] = info.format;
  out["assembler"] = info.assembler;
  out["num_variants"] = info.num_variants;
  return out;
}

std::string deviceTarget(nb::handle device) {
  char name[MLAFIX_MAX_TARGET_NAME];
  check(mlafix_device_target(deviceOf(device), name, sizeof(name)));
  return name;
}

/// Adds to Unit the methods of a mapping from names to kernels, and a property
/// that is the manifest as text.
void bindContents(nb::class_<Unit> &unit) {
  unit.def(
          "__getitem__",
          [](nb::handle unit, nb::handle name) {
            return nb::module_::import_("mlafix._launcher.unit")
                .attr("UnitKernel")(unit, name);
          },
          nb::call_guard<Call>(), nb::arg("name"),
          nb::sig("def __getitem__(self, name: str) -> typing.Any"),
          "The kernel of that name, a mlafix.UnitKernel, to be called as "
          "kernels are: unit[\"merge\"](out, lse, parts, part_lses). Raises "
          "UnitError if there is none.")
      .def(
          "__contains__",
          [](const Unit &unit, nb::handle object) {
            // An object that is not a str in UTF-8 is no kernel's name.
            std::string_view name;
            if (!nb::try_cast<std::string_view>(object, name))
              return false;
            for (uint32_t i = 0; i < mlafix_unit_num_kernels(unit.handle.get());
                 ++i)
              if (name == mlafix_kernel_name(
                              mlafix_unit_kernel_at(unit.handle.get(), i)))
                return true;
            return false;
          },
          nb::arg("name").none(),
          nb::sig("def __contains__(self, name: object) -> bool"))
      .def(
          "__iter__",
          [](const Unit &unit) {
            nb::dict names;
            for (uint32_t i = 0; i < mlafix_unit_num_kernels(unit.handle.get());
                 ++i)
              names[mlafix_kernel_name(
                  mlafix_unit_kernel_at(unit.handle.get(), i))] = nb::none();
            return nb::iter(names);
          },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[str]"),
          "The names of its kernels, each once, in the order of the file.")
      .def_prop_ro(
          "manifest",
          [](const Unit &unit) {
            size_t size = 0;
            const char *text = mlafix_unit_manifest(unit.handle.get(), &size);
            return nb::str(text, size);
          },
          "Text in JSON: docs/UnitFormat.md.");
}

} // namespace

std::string mlafix::python::bindingsText(nb::handle bindings) {
  if (bindings.is_none())
    return "";
  if (!nb::isinstance<nb::dict>(bindings))
    throwArgumentError("argument \"bindings\": expected a dict such as "
                       "{\"D\": 128, \"T\": \"bf16\"}, got %s",
                       typeName(bindings).c_str());
  std::string out;
  for (auto [name, value] : nb::borrow<nb::dict>(bindings)) {
    if (!out.empty())
      out += ',';
    out += textOf(name);
    out += '=';
    out += textOf(value);
  }
  return out;
}

mlafix_device mlafix::python::parseDevice(std::string_view text) {
  if (text == "cpu")
    return {MLAFIX_CPU, 0};
  if (text == "cuda")
    return {MLAFIX_CUDA, 0};
  int32_t ordinal = 0;
  if (text.substr(0, 5) == "cuda:") {
    auto [end, error] =
        std::from_chars(text.data() + 5, text.data() + text.size(), ordinal);
    if (error == std::errc() && end == text.data() + text.size() &&
        ordinal >= 0)
      return {MLAFIX_CUDA, ordinal};
  }
  throwArgumentError("argument \"device\": expected \"cpu\", \"cuda\" or "
                     "\"cuda:N\", got \"%.*s\"",
                     static_cast<int>(text.size()), text.data());
}

static void bindKernelInfo(nb::module_ &module) {
  nb::class_<KernelInfo>(module, "KernelInfo", "One kernel of a unit.")
      .def_prop_ro("name",
                   [](const KernelInfo &kernel) {
                     return mlafix_kernel_name(kernel.handle);
                   })
      .def_prop_ro("bindings", bindingsDict,
                   "What it was compiled for: {\"D\": \"128\", ...}.")
      .def_prop_ro("args", argsOf,
                   "One dict an argument, as in docs/UnitFormat.md; None for a "
                   "size or a stride that may be any.")
      .def_prop_ro("targets", targetsOf, "Targets that it has code for.")
      .def("report", reportOf,
           "What the compiler has proved, as mlafix.Kernel.report() has it, "
           "less times and places; no argument in a unit of an older "
           "compiler.")
      .def("code", codeOn, nb::arg("device").none(),
           nb::sig("def code(self, device: str) -> dict[str, typing.Any]"),
           "Which code runs on the device: target, format, assembler, "
           "num_variants. Prepares it there.")
      .def("__repr__", [](const KernelInfo &kernel) {
        return std::string("<mlafix kernel ") +
               mlafix_kernel_name(kernel.handle) + " [" +
               mlafix_kernel_bindings(kernel.handle) + "]>";
      });
}

static void bindDevices(nb::module_ &module) {
  module.def("device_target", deviceTarget, nb::arg("device").none(),
             nb::sig("def device_target(device: str) -> str"),
             "Name of the compiler's target for \"cpu\" or \"cuda:N\": "
             "\"x86-64-v3\", \"sm_90\". Raises DriverError.");
  module.def(
      "share_lanes",
      [](int64_t lanes, int64_t pieces, int64_t threads, int64_t chip,
         int64_t most, int64_t chunk, int64_t leastThreads,
         int64_t threadsPerSm) {
        mlafix::GroupedGrid grid =
            mlafix::shareLanes({most, chunk, leastThreads, threadsPerSm}, lanes,
                               pieces, threads, chip);
        return std::tuple(grid.groups, grid.groupThreads, grid.blocks);
      },
      nb::arg("lanes"), nb::arg("pieces"), nb::arg("threads"),
      nb::arg("multiprocessors"), nb::kw_only(), nb::arg("most"),
      nb::arg("chunk"), nb::arg("least_threads"), nb::arg("threads_per_sm"),
      "How a launch of `lanes` lanes, with the numbers of a manifest's "
      "\"groups\", shares rows: lane groups for each row, threads of a group "
      "in a block, blocks.");
  module.def("cuda_device_count", [] {
    int32_t count = 0;
    return mlafix_cuda_device_count(&count) == MLAFIX_OK ? count : 0;
  });
}

void mlafix::python::bindUnits(nb::module_ &module) {
  bindKernelInfo(module);
  nb::class_<Unit> unit(
      module, "Unit",
      "Compiled kernels for several targets, from a .mlafix file. "
      "A unit is code: load none that you do not trust.");
  bindContents(unit);
  unit.def_static("load", loadUnit, nb::call_guard<Call>(),
                  nb::arg("path").none(),
                  nb::sig("def load(path: str | os.PathLike[str]) -> Unit"),
                  "Load a unit from a file. Touches no CUDA driver. Raises "
                  "UnitError.")
      .def_static("from_bytes", unitFromBytes, nb::arg("data").none(),
                  nb::sig("def from_bytes(data: bytes) -> Unit"),
                  "Load a unit from memory. Raises UnitError.")
      .def_prop_ro("kernels", kernelsOf, "In the order of the file.")
      .def("kernel", findKernel, nb::arg("name").none(),
           nb::arg("bindings") = nb::none(),
           nb::sig("def kernel(self, name: str, bindings: "
                   "collections.abc.Mapping[str, object] | None = None) -> "
                   "KernelInfo"),
           "The kernel of that name; bindings choose among several. Raises "
           "UnitError if there is none, ArgumentError if several match.")
      .def_prop_ro("producer",
                   [](const Unit &unit) {
                     return mlafix_unit_producer(unit.handle.get());
                   })
      .def(
          "prepare",
          [](const Unit &unit, nb::handle device) {
            mlafix_device wanted = deviceOf(device);
            mlafix_status status;
            {
              ReleasedLock released;
              status = mlafix_unit_prepare(unit.handle.get(), wanted);
            }
            check(status);
          },
          nb::call_guard<Call>(), nb::arg("device").none(),
          nb::sig("def prepare(self, device: str) -> None"),
          "Load the code on \"cpu\" or \"cuda:N\" now and not at the first "
          "launch. Raises UnitError, DriverError.")
      .def("__repr__", [](const Unit &unit) {
        return "<mlafix unit of " +
               std::to_string(mlafix_unit_num_kernels(unit.handle.get())) +
               " kernels>";
      });
  bindDevices(module);
}
