//===- Call.cpp - Kernels as functions of TVM-FFI -------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Abi.h"
#include "mlafix/DLPack.h"
#include "mlafix/RoundToF32.h"
#include "mlafix/runtime.h"
#include "mlafix/runtime/tvm_ffi.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

using namespace mlafix::tvm_ffi;
namespace dlpack = mlafix::dlpack;

namespace {

/// An exception with the kind of error that TVM-FFI reports, such as
/// "TypeError".
struct Failure {
  const char *kind;
  std::string message;
};

/// The arguments of a call: as TVM-FFI gives them, and as the runtime gets
/// them.
struct Call {
  const Any *given;
  uint32_t count;
  std::array<mlafix_tensor, MLAFIX_MAX_ARGS> tensors;
  std::array<mlafix_arg, MLAFIX_MAX_ARGS> args;
  mlafix_device device = {MLAFIX_CPU, 0};
};

void check(mlafix_status status) {
  if (status != MLAFIX_OK)
    throw Failure{status == MLAFIX_INVALID_ARGUMENT ? "ValueError"
                                                    : "RuntimeError",
                  mlafix_last_error()};
}

const char *typeName(const Any &value) {
  switch (value.typeIndex) {
  case typeNone:
    return "None";
  case typeInt:
    return "int";
  case typeBool:
    return "bool";
  case typeFloat:
    return "float";
  case typeDLTensorPointer:
  case typeTensor:
    return "a tensor";
  default:
    return "another object";
  }
}

const dlpack::Tensor *tensorOf(const Any &value) {
  if (value.typeIndex == typeDLTensorPointer)
    return static_cast<const dlpack::Tensor *>(value.pointer);
  if (value.typeIndex == typeTensor)
    return reinterpret_cast<const dlpack::Tensor *>(
        static_cast<const Object *>(value.pointer) + 1);
  return nullptr;
}

[[noreturn]] void throwWrong(const char *kind, const mlafix_kernel *kernel,
                             const std::string &argument,
                             const std::string &expected,
                             const std::string &got) {
  throw Failure{kind, "kernel \"" + std::string(mlafix_kernel_name(kernel)) +
                          "\": argument \"" + argument + "\": expected " +
                          expected + ", got " + got};
}

std::string describeDType(const dlpack::DataType &dtype) {
  if (int32_t known = dlpack::dtypeOf(dtype))
    return mlafix_dtype_name(static_cast<mlafix_dtype>(known));
  return "elements of DLPack's type code " + std::to_string(dtype.code) +
         " with " + std::to_string(dtype.bits) + " bits, " +
         std::to_string(dtype.lanes) + (dtype.lanes == 1 ? " lane" : " lanes");
}

mlafix_tensor readTensor(const mlafix_kernel *kernel,
                         const mlafix_arg_info &info,
                         const dlpack::Tensor &given) {
  mlafix_tensor tensor = MLAFIX_TENSOR_INIT;
  tensor.dtype = dlpack::dtypeOf(given.dtype);
  if (!tensor.dtype)
    throwWrong("TypeError", kernel, info.name, info.dtype_name,
               describeDType(given.dtype));
  tensor.ndim = static_cast<uint32_t>(given.ndim);
  tensor.device = {given.device.type, given.device.id};
  tensor.data =
      given.data ? static_cast<char *>(given.data) + given.byteOffset : nullptr;
  tensor.sizes = given.shape;
  tensor.strides = given.strides;
  return tensor;
}

/// Rounds a number to one digit and an exponent, for a message. Such text has
/// no decimal point, which a locale could change.
std::string roundedText(double number) {
  char text[16];
  std::snprintf(text, sizeof(text), "%.0e", number);
  return text;
}

mlafix_arg readScalar(const mlafix_kernel *kernel, const mlafix_arg_info &info,
                      const Any &given) {
  bool isInt = given.typeIndex == typeInt;
  switch (info.kind) {
  case MLAFIX_ARG_I64:
    if (isInt)
      return mlafix_i64_arg(given.integer);
    break;
  case MLAFIX_ARG_I32:
    if (isInt && given.integer == static_cast<int32_t>(given.integer))
      return mlafix_i32_arg(static_cast<int32_t>(given.integer));
    if (isInt)
      throwWrong("ValueError", kernel, info.name, "an integer of 32 bits",
                 std::to_string(given.integer));
    break;
  case MLAFIX_ARG_F32:
    if (given.typeIndex == typeFloat) {
      if (mlafix::overflowsF32(given.real))
        throwWrong("ValueError", kernel, info.name,
                   "a number that an f32 holds", roundedText(given.real));
      return mlafix_f32_arg(mlafix::roundToF32(given.real));
    }
    if (isInt)
      return mlafix_f32_arg(mlafix::roundToF32(given.integer));
    break;
  default:
    if (given.typeIndex == typeBool)
      return mlafix_bool_arg(given.integer != 0);
  }
  throwWrong("TypeError", kernel, info.name,
             info.kind == MLAFIX_ARG_F32    ? "float"
             : info.kind == MLAFIX_ARG_BOOL ? "bool"
                                            : "int",
             typeName(given));
}

/// True if a bool tensor may be passed for this argument: its dtype is u8, and
/// the kernel only reads it. The kernel then cannot store a byte that is no
/// bool.
bool takesFlags(const mlafix_arg_info &info) {
  return info.dtype == MLAFIX_U8 && info.access == MLAFIX_READ;
}

void readArgument(const mlafix_kernel *kernel, uint32_t index, Call &call) {
  mlafix_arg_info info = MLAFIX_ARG_INFO_INIT;
  check(mlafix_kernel_arg_info(kernel, index, &info));
  const Any &given = call.given[index];
  if (info.kind == MLAFIX_ARG_PEERS || info.kind == MLAFIX_ARG_LIST)
    throwWrong("TypeError", kernel, info.name,
               "a kernel of scalars and single tensors",
               "one with an argument of several");
  if (info.kind != MLAFIX_ARG_TENSOR) {
    call.args[index] = readScalar(kernel, info, given);
    return;
  }
  call.args[index] = mlafix_tensor_arg(nullptr);
  if (given.typeIndex == typeNone)
    return;
  const dlpack::Tensor *tensor = tensorOf(given);
  if (!tensor)
    throwWrong("TypeError", kernel, info.name,
               info.optional ? "a tensor or None" : "a tensor",
               typeName(given));
  call.tensors[index] = readTensor(kernel, info, *tensor);
  if (takesFlags(info) && call.tensors[index].dtype == MLAFIX_BOOL)
    call.tensors[index].dtype = MLAFIX_U8;
  call.args[index] = mlafix_tensor_arg(&call.tensors[index]);
}

/// A property of an argument for which a specialisation may reject a call. The
/// values are in the order in which findMismatch() checks the properties.
enum class Aspect { Tensor, Absence, DType, Rank, Size };

/// The first reason why a specialisation cannot run a call.
struct Mismatch {
  uint32_t argument;
  Aspect aspect;
  uint32_t dim; ///< index of the dim, if `aspect` is Size

  auto order() const { return std::make_tuple(argument, aspect, dim); }
};

/// Returns the first mismatch between the call's tensors and what `kernel`
/// expects (Aspect). Returns nullopt if all tensors match.
std::optional<Mismatch> findMismatch(const mlafix_kernel *kernel,
                                     const Call &call) {
  for (uint32_t i = 0; i < call.count; ++i) {
    mlafix_arg_info info = MLAFIX_ARG_INFO_INIT;
    check(mlafix_kernel_arg_info(kernel, i, &info));
    const Any &given = call.given[i];
    const dlpack::Tensor *tensor = tensorOf(given);
    if (info.kind != MLAFIX_ARG_TENSOR)
      continue;
    if (!tensor) {
      if (!info.optional || given.typeIndex != typeNone)
        return Mismatch{i, Aspect::Tensor, 0};
      continue;
    }
    if (info.access == MLAFIX_ABSENT)
      return Mismatch{i, Aspect::Absence, 0};
    int32_t dtype = dlpack::dtypeOf(tensor->dtype);
    bool isFlag = takesFlags(info) && dtype == MLAFIX_BOOL;
    if (dtype != info.dtype && !isFlag)
      return Mismatch{i, Aspect::DType, 0};
    if (static_cast<uint32_t>(tensor->ndim) != info.ndim)
      return Mismatch{i, Aspect::Rank, 0};
    for (uint32_t dim = 0; dim < info.ndim; ++dim)
      if (info.shape[dim] >= 0 && info.shape[dim] != tensor->shape[dim])
        return Mismatch{i, Aspect::Size, dim};
  }
  return std::nullopt;
}

/// Returns what a specialisation expects of the argument that does not match.
std::string describeExpected(const mlafix_arg_info &info,
                             const Mismatch &mismatch) {
  switch (mismatch.aspect) {
  case Aspect::Tensor:
    return info.optional ? "a tensor or None" : "a tensor";
  case Aspect::Absence:
    return "None";
  case Aspect::DType:
    return info.dtype_name;
  case Aspect::Rank:
    return std::to_string(info.ndim) + " dims";
  case Aspect::Size:
    break;
  }
  return std::to_string(info.shape[mismatch.dim]);
}

std::string describeGiven(const Any &given, const Mismatch &mismatch) {
  const dlpack::Tensor *tensor = tensorOf(given);
  switch (mismatch.aspect) {
  case Aspect::Tensor:
  case Aspect::Absence:
    return typeName(given);
  case Aspect::DType:
    return describeDType(tensor->dtype);
  case Aspect::Rank:
    return std::to_string(tensor->ndim);
  case Aspect::Size:
    break;
  }
  return std::to_string(tensor->shape[mismatch.dim]);
}

/// Reports that no specialisation matches the call. The message is about the
/// specialisations that come closest to a match: those whose first mismatch
/// comes last (Mismatch::order). For the argument that does not match, the
/// message lists what these specialisations expect.
[[noreturn]] void failToSelect(mlafix_embedded *embedded,
                               const uint32_t *indices, uint32_t numIndices,
                               const Call &call) {
  std::optional<Mismatch> last;
  std::vector<std::string> expected;
  std::string held, name;
  const mlafix_kernel *kernel = nullptr;
  for (uint32_t i = 0; i < numIndices; ++i) {
    check(mlafix_embedded_kernel(embedded, indices[i], &kernel));
    held += (held.empty() ? "" : "; ") +
            std::string(mlafix_kernel_bindings(kernel));
    std::optional<Mismatch> here = findMismatch(kernel, call);
    if (!here || (last && here->order() < last->order()))
      continue;
    if (!last || last->order() < here->order())
      expected.clear();
    last = here;
    mlafix_arg_info info = MLAFIX_ARG_INFO_INIT;
    check(mlafix_kernel_arg_info(kernel, here->argument, &info));
    name = info.name;
    std::string text = describeExpected(info, *here);
    if (std::find(expected.begin(), expected.end(), text) == expected.end())
      expected.push_back(std::move(text));
  }
  std::string choice;
  for (const std::string &text : expected)
    choice += (choice.empty() ? "" : " or ") + text;
  if (last->aspect == Aspect::Size)
    choice = "size " + choice + " in dim " + std::to_string(last->dim);
  throwWrong(last->aspect == Aspect::Tensor ? "TypeError" : "ValueError",
             kernel, name, choice,
             describeGiven(call.given[last->argument], *last) +
                 "; there are the specialisations " + held);
}

/// Returns the first specialisation that matches a call. If there is only one,
/// compares only the number of arguments, since readArgument and the launch
/// report any other mismatch.
const mlafix_kernel *select(mlafix_embedded *embedded, const uint32_t *indices,
                            uint32_t numIndices, const Call &call) {
  for (uint32_t i = 0; i < numIndices; ++i) {
    const mlafix_kernel *kernel = nullptr;
    check(mlafix_embedded_kernel(embedded, indices[i], &kernel));
    uint32_t wanted = mlafix_kernel_num_args(kernel);
    if (call.count != wanted)
      throw Failure{"TypeError",
                    "kernel \"" + std::string(mlafix_kernel_name(kernel)) +
                        "\": expected " + std::to_string(wanted) +
                        " arguments, got " + std::to_string(call.count)};
    if (numIndices == 1 || !findMismatch(kernel, call))
      return kernel;
  }
  failToSelect(embedded, indices, numIndices, call);
}

void run(mlafix_embedded *embedded, const uint32_t *indices,
         uint32_t numIndices, Call &call) {
  const mlafix_kernel *kernel = select(embedded, indices, numIndices, call);
  for (uint32_t i = 0; i < call.count; ++i)
    readArgument(kernel, i, call);
  // Use the device of the first tensor. If another tensor is on a different
  // device, the launch fails with an error.
  for (uint32_t i = 0; i < call.count; ++i)
    if (const dlpack::Tensor *tensor = tensorOf(call.given[i])) {
      call.device = {tensor->device.type, tensor->device.id};
      break;
    }
  void *stream = call.device.type == MLAFIX_CUDA
                     ? TVMFFIEnvGetStream(call.device.type, call.device.ordinal)
                     : nullptr;
  check(mlafix_launch(kernel, call.args.data(), call.count, call.device, stream,
                      0));
}

} // namespace

extern "C" int mlafix_tvm_ffi_call(mlafix_embedded *embedded,
                                   const uint32_t *indices,
                                   uint32_t num_indices, const void *args,
                                   int32_t num_args, void *result) noexcept {
  try {
    Call call;
    call.given = static_cast<const Any *>(args);
    call.count = static_cast<uint32_t>(num_args);
    run(embedded, indices, num_indices, call);
    auto *any = static_cast<Any *>(result);
    any->typeIndex = typeNone;
    any->padding = 0;
    any->integer = 0;
    return 0;
  } catch (const Failure &failure) {
    TVMFFIErrorSetRaisedFromCStr(failure.kind, failure.message.c_str());
  } catch (const std::exception &error) {
    TVMFFIErrorSetRaisedFromCStr("RuntimeError", error.what());
  }
  return -1;
}
