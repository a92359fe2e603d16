//===- Run.cpp - Running a kernel on arrays -------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Run.h"

#include "DeviceMemory.h"
#include "Npy.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

using namespace mlafix;
using namespace mlafix::run;

namespace {

[[noreturn]] void wrong(const std::string &argument, const std::string &what) {
  throw std::runtime_error("argument \"" + argument + "\": " + what);
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "scalar" : text;
}

/// Returns the indices, for example "1, 0", of the element at row-major
/// position `position`.
std::string indicesText(int64_t position, const std::vector<int64_t> &shape) {
  std::string text;
  for (size_t dim = shape.size(); dim-- > 0; position /= shape[dim])
    text = std::to_string(position % shape[dim]) + (text.empty() ? "" : ", ") +
           text;
  return text;
}

Scalar parseScalar(const mlafix_arg_info &info, const std::string &text) {
  const char *begin = text.c_str();
  char *end = nullptr;
  errno = 0;
  if (info.kind == MLAFIX_ARG_BOOL) {
    if (text == "true" || text == "1")
      return true;
    if (text == "false" || text == "0")
      return false;
    wrong(info.name, "expected true or false, got \"" + text + "\"");
  }
  if (info.kind == MLAFIX_ARG_F32) {
    float value = std::strtof(begin, &end);
    if (*end || end == begin)
      wrong(info.name, "expected a number, got \"" + text + "\"");
    return value;
  }
  long long value = std::strtoll(begin, &end, 10);
  if (*end || end == begin || errno == ERANGE ||
      (info.kind == MLAFIX_ARG_I32 && value != static_cast<int32_t>(value)))
    wrong(info.name, std::string("expected an integer that fits ") +
                         info.dtype_name + ", got \"" + text + "\"");
  return static_cast<int64_t>(value);
}

/// The arrays and scalars of one run, on the host.
class Arguments {
public:
  /// Reads the inputs and allocates the outputs. The outputs begin as 0xff
  /// bytes. In the second run of --debug (`isSecond`), the highest bit of each
  /// output element begins as 0.
  Arguments(const Kernel &kernel, const Options &options, bool isSecond = false)
      : kernel(kernel), options(options), isSecond(isSecond),
        arrays(kernel.numArgs()), present(kernel.numArgs(), false) {
    rejectUnknownNames();
    readInputs();
    requireInputs();
    makeOutputs();
  }

  void run() {
    std::vector<std::unique_ptr<DeviceMemory>> memory(arrays.size());
    std::vector<Arg> values;
    for (uint32_t i = 0; i < arrays.size(); ++i)
      values.push_back(makeArg(i, memory[i]));
    kernel.launch(values, options.device, nullptr, MLAFIX_LAUNCH_DEEP_CHECKS);
    for (uint32_t i = 0; i < arrays.size(); ++i)
      if (memory[i] && kernel.arg(i).access != MLAFIX_READ)
        memory[i]->download();
  }

  /// Describes the arguments of the launch. The result points to arrays of this
  /// object. Throws std::runtime_error for a wrong or missing scalar.
  std::vector<LaunchValue> describe() const {
    std::vector<LaunchValue> values;
    for (uint32_t i = 0; i < arrays.size(); ++i) {
      mlafix_arg_info info = kernel.arg(i);
      LaunchValue value;
      value.name = info.name;
      if (present[i]) {
        value.array = &arrays[i];
      } else if (info.kind != MLAFIX_ARG_TENSOR) {
        value.scalar = readScalar(info);
      }
      values.push_back(std::move(value));
    }
    return values;
  }

  /// For each output with elements that no row writes, prints the first of
  /// these elements and their number. `second` has the arguments of a second
  /// run, with other initial values of the outputs. An element that still has
  /// its initial value in both runs counts as not written. Returns true if
  /// there is one.
  bool reportUnwritten(const Arguments &second) const {
    bool isAny = false;
    for (uint32_t i = 0; i < arrays.size(); ++i) {
      mlafix_arg_info info = kernel.arg(i);
      if (!present[i] || info.access != MLAFIX_WRITE ||
          options.args.count(info.name))
        continue;
      int64_t first = 0, count = 0;
      size_t size = mlafix_dtype_size(arrays[i].dtype);
      for (size_t at = 0; at < arrays[i].bytes.size(); at += size)
        if (isAsFilled(i, at, size) && second.isAsFilled(i, at, size) &&
            count++ == 0)
          first = static_cast<int64_t>(at / size);
      if (count == 0)
        continue;
      isAny = true;
      std::printf("%s[%s]: no row writes it (%lld elements in all)\n",
                  info.name, indicesText(first, arrays[i].sizes).c_str(),
                  static_cast<long long>(count));
    }
    return isAny;
  }

  void writeOutputs() const {
    for (uint32_t i = 0; i < arrays.size(); ++i) {
      mlafix_arg_info info = kernel.arg(i);
      auto out = options.outs.find(info.name);
      if (out != options.outs.end()) {
        writeNpy(out->second, arrays[i]);
        std::printf("%s: %s %s -> %s\n", info.name, info.dtype_name,
                    shapeText(arrays[i].sizes).c_str(), out->second.c_str());
      } else if (present[i] && info.access != MLAFIX_READ) {
        std::printf("%s: written but not kept (no --out %s=FILE)\n", info.name,
                    info.name);
      }
    }
  }

private:
  void rejectUnknownNames() const {
    std::map<std::string, int32_t>
        known; // by name: the access of an argument, 0 for a scalar
    std::string names;
    for (uint32_t i = 0; i < kernel.numArgs(); ++i) {
      known[kernel.arg(i).name] = kernel.arg(i).access;
      names += std::string(i ? ", " : "") + kernel.arg(i).name;
    }
    auto require = [&](const char *option, const std::string &name) {
      if (!known.count(name))
        throw std::runtime_error(
            std::string(option) + ": expected an argument of kernel \"" +
            kernel.name() + "\" (" + names + "), got \"" + name + "\"");
    };
    for (const auto &arg : options.args)
      require("--arg", arg.first);
    for (const auto &shape : options.shapes)
      require("--shape", shape.first);
    for (const auto &out : options.outs) {
      require("--out", out.first);
      if (known[out.first] != MLAFIX_WRITE && known[out.first] != MLAFIX_UPDATE)
        throw std::runtime_error("--out: expected an argument that the kernel "
                                 "writes, got \"" +
                                 out.first + "\"");
    }
  }

  void readInputs() {
    for (uint32_t i = 0; i < arrays.size(); ++i) {
      mlafix_arg_info info = kernel.arg(i);
      auto given = options.args.find(info.name);
      if (info.kind != MLAFIX_ARG_TENSOR || given == options.args.end())
        continue;
      arrays[i] = readNpy(given->second, static_cast<mlafix_dtype>(info.dtype));
      present[i] = true;
      if (arrays[i].sizes.size() != info.ndim)
        wrong(info.name, "expected " + std::to_string(info.ndim) +
                             " dims, got shape " + shapeText(arrays[i].sizes));
      for (uint32_t d = 0; d < info.ndim; ++d)
        if (*info.dims[d]) // the launch reports inputs whose sizes differ
          dims.emplace(info.dims[d], arrays[i].sizes[d]);
    }
  }

  void requireInputs() const {
    for (uint32_t i = 0; i < arrays.size(); ++i) {
      mlafix_arg_info info = kernel.arg(i);
      if (info.kind != MLAFIX_ARG_TENSOR || present[i] ||
          info.access == MLAFIX_WRITE ||
          (info.optional && !options.outs.count(info.name)))
        continue;
      wrong(info.name, std::string("expected --arg ") + info.name +
                           "=FILE.npy, since the kernel reads it or leaves "
                           "some of it as it is, got none");
    }
  }

  void makeOutputs() {
    for (uint32_t i = 0; i < arrays.size(); ++i) {
      mlafix_arg_info info = kernel.arg(i);
      if (info.kind != MLAFIX_ARG_TENSOR || present[i])
        continue;
      bool wanted = options.outs.count(info.name) != 0;
      if (info.optional && !wanted)
        continue;
      Array &array = arrays[i];
      array.dtype = static_cast<mlafix_dtype>(info.dtype);
      array.sizes = outputShape(info);
      uint64_t bytes = mlafix_dtype_size(array.dtype);
      for (int64_t size : array.sizes)
        if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size),
                                   &bytes) ||
            bytes > (uint64_t(1) << 44))
          wrong(info.name, "expected an array that fits memory, got shape " +
                               shapeText(array.sizes));
      array.bytes.assign(bytes, '\xff');
      size_t size = mlafix_dtype_size(array.dtype);
      for (size_t at = size - 1; isSecond && at < bytes; at += size)
        array.bytes[at] = '\x7f';
      present[i] = true;
    }
  }

  std::vector<int64_t> outputShape(const mlafix_arg_info &info) const {
    auto given = options.shapes.find(info.name);
    if (given != options.shapes.end()) {
      if (given->second.size() != info.ndim)
        wrong(info.name, "expected --shape with " + std::to_string(info.ndim) +
                             " sizes, got " + shapeText(given->second));
      return given->second;
    }
    std::vector<int64_t> shape;
    for (uint32_t d = 0; d < info.ndim; ++d) {
      auto known = dims.find(info.dims[d]);
      if (info.shape[d] >= 0)
        shape.push_back(info.shape[d]);
      else if (*info.dims[d] && known != dims.end())
        shape.push_back(known->second);
      else
        wrong(info.name, std::string("expected --shape ") + info.name +
                             "=..., since no input gives the size of dim " +
                             std::to_string(d) + " (\"" + info.dims[d] +
                             "\"), got none");
    }
    return shape;
  }

  /// Returns true if an element of an output still has its initial value.
  bool isAsFilled(uint32_t index, size_t at, size_t size) const {
    const auto &bytes = arrays[index].bytes;
    for (size_t i = 0; i < size; ++i)
      if (static_cast<unsigned char>(bytes[at + i]) !=
          (isSecond && i + 1 == size ? 0x7f : 0xff))
        return false;
    return true;
  }

  /// Returns the value of a scalar argument. Throws std::runtime_error if the
  /// argument is a list of tensors or has one tensor per rank.
  Scalar readScalar(const mlafix_arg_info &info) const {
    if (info.kind == MLAFIX_ARG_PEERS || info.kind == MLAFIX_ARG_LIST)
      wrong(info.name,
            "expected a kernel of scalars and single tensors, got an "
            "argument of several tensors");
    auto given = options.args.find(info.name);
    if (given == options.args.end())
      wrong(info.name,
            std::string("expected --arg ") + info.name + "=VALUE, got none");
    return parseScalar(info, given->second);
  }

  Arg makeArg(uint32_t index, std::unique_ptr<DeviceMemory> &memory) {
    mlafix_arg_info info = kernel.arg(index);
    if (info.kind != MLAFIX_ARG_TENSOR)
      return std::visit([](auto value) { return Arg(value); },
                        readScalar(info));
    if (!present[index])
      return Tensor::none();
    Array &array = arrays[index];
    memory = std::make_unique<DeviceMemory>(options.device, array.bytes.data(),
                                            array.bytes.size());
    return Tensor::strided(memory->data(), array.dtype, array.sizes,
                           array.strides(), options.device);
  }

  const Kernel &kernel;
  const Options &options;
  bool isSecond;
  std::vector<Array> arrays; ///< one per argument; not used for scalars
  std::vector<bool> present;
  std::map<std::string, int64_t> dims;
};

Kernel chooseKernel(const Unit &unit, const Options &options) {
  std::string name = options.kernel;
  if (name.empty()) {
    std::vector<Kernel> all = unit.kernels();
    if (all.empty())
      throw std::runtime_error("expected a kernel in the unit, got none");
    name = all.front().name();
    for (const Kernel &kernel : all)
      if (kernel.name() != name)
        throw std::runtime_error(
            "expected --kernel NAME, since the unit holds several (see "
            "--list), got none");
  }
  return unit.kernel(name, options.bindings);
}

} // namespace

bool mlafix::run::runKernel(const Unit &unit, const Options &options,
                            const Follow &follow) {
  Kernel kernel = chooseKernel(unit, options);
  Arguments arguments(kernel, options);
  bool isRight =
      !options.debug || !follow || follow(kernel.name(), arguments.describe());
  // Prepare the kernel first, so that the measured time is that of the kernel
  // and the copies.
  mlafix_code_info code = kernel.code(options.device);
  auto start = std::chrono::steady_clock::now();
  arguments.run();
  std::chrono::duration<double, std::milli> time =
      std::chrono::steady_clock::now() - start;
  std::printf("%s [%s] on %s: %s code for %s, %.3f ms with copies\n",
              kernel.name(), kernel.bindings(),
              options.device.type == MLAFIX_CPU
                  ? "cpu"
                  : ("cuda:" + std::to_string(options.device.ordinal)).c_str(),
              code.format, code.target, time.count());
  arguments.writeOutputs();
  if (!options.debug)
    return true;
  Arguments second(kernel, options, /*isSecond=*/true);
  second.run();
  return !arguments.reportUnwritten(second) && isRight;
}

//===----------------------------------------------------------------------===//
// Kernels and their signatures
//===----------------------------------------------------------------------===//

namespace {

/// Describes a tensor's dims by their names and fixed sizes: "[n, H=128,
/// D=128]".
std::string describeShape(const mlafix_arg_info &arg) {
  std::string text = "[";
  for (uint32_t i = 0; i < arg.ndim; ++i) {
    std::string name = arg.dims[i];
    std::string size = arg.shape[i] < 0 ? "" : std::to_string(arg.shape[i]);
    text += i ? ", " : "";
    text += name.empty() ? (size.empty() ? "?" : size)
                         : name + (size.empty() ? "" : "=" + size);
  }
  return text + "]";
}

std::string describeStrides(const mlafix_arg_info &arg) {
  std::string text = "[";
  for (uint32_t i = 0; i < arg.ndim; ++i)
    text += (i ? ", " : "") +
            (arg.strides[i] < 0 ? "?" : std::to_string(arg.strides[i]));
  return text + "]";
}

std::string describeArg(const mlafix_arg_info &arg) {
  static const char *const access[] = {"", "read", "write", "update", "absent"};
  std::string text = std::string(arg.name) + ": ";
  bool isPeers = arg.kind == MLAFIX_ARG_PEERS;
  bool isList = arg.kind == MLAFIX_ARG_LIST;
  if (arg.kind != MLAFIX_ARG_TENSOR && !isPeers && !isList) {
    text += arg.dtype_name;
    return arg.at_most ? text + ", from 0 to " + arg.at_most : text;
  }
  text += std::string(isPeers  ? "of each rank, "
                      : isList ? "a list, each "
                               : "") +
          access[arg.access] + " " + arg.dtype_name + describeShape(arg);
  if (arg.ndim > 0)
    text += ", strides " + describeStrides(arg);
  return arg.optional && arg.access != MLAFIX_ABSENT ? text + ", optional"
                                                     : text;
}

} // namespace

void mlafix::run::listKernels(const Unit &unit) {
  for (const Kernel &kernel : unit.kernels()) {
    std::string title = kernel.name();
    if (*kernel.bindings())
      title += std::string(" [") + kernel.bindings() + "]";
    title += "  for";
    for (uint32_t i = 0; i < mlafix_kernel_num_targets(kernel.get()); ++i)
      title +=
          std::string(i ? ", " : " ") + mlafix_kernel_target(kernel.get(), i);
    std::printf("%s\n", title.c_str());
    for (uint32_t i = 0; i < kernel.numArgs(); ++i)
      std::printf("  %s\n", describeArg(kernel.arg(i)).c_str());
    for (uint32_t i = 0; i < mlafix_kernel_num_aliases(kernel.get()); ++i) {
      uint32_t a = 0, b = 0;
      check(mlafix_kernel_alias(kernel.get(), i, &a, &b));
      std::printf("  %s may be %s\n", kernel.arg(a).name, kernel.arg(b).name);
    }
    for (const mlafix_proof_info &proof : kernel.proofs())
      if (std::string(proof.verdict) != "proved")
        std::printf("  %s: %s: %s%s%s\n", kernel.arg(proof.arg).name,
                    proof.question, proof.verdict, *proof.reason ? ": " : "",
                    proof.reason);
  }
}
