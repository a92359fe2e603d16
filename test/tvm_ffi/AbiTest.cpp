//===- AbiTest.cpp - Our declarations match TVM-FFI's headers -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <cstddef>
#include <type_traits>

// lib/TvmFfi/Abi.h declares these functions again, with these types. The macros
// below rename the declarations there, so that both headers can be included.
static_assert(std::is_same<decltype(&TVMFFIEnvGetStream),
                           void *(*)(int32_t, int32_t)>::value);
static_assert(std::is_same<decltype(&TVMFFIErrorSetRaisedFromCStr),
                           void (*)(const char *, const char *)>::value);

#define TVMFFIEnvGetStream mlafixEnvGetStream
#define TVMFFIErrorSetRaisedFromCStr mlafixErrorSetRaised
#include "Abi.h"
#include "mlafix/DLPack.h"

namespace ours = mlafix::tvm_ffi;
namespace dlpack = mlafix::dlpack;

/// Returns true if constants of two enumerations have the same value.
template <typename A, typename B> constexpr bool same(A a, B b) {
  return static_cast<int>(a) == static_cast<int>(b);
}

static_assert(same(ours::typeNone, kTVMFFINone) &&
              same(ours::typeInt, kTVMFFIInt) &&
              same(ours::typeBool, kTVMFFIBool) &&
              same(ours::typeFloat, kTVMFFIFloat) &&
              same(ours::typeDLTensorPointer, kTVMFFIDLTensorPtr) &&
              same(ours::typeTensor, kTVMFFITensor));
static_assert(same(dlpack::codeInt, kDLInt) &&
              same(dlpack::codeUInt, kDLUInt) &&
              same(dlpack::codeFloat, kDLFloat) &&
              same(dlpack::codeBFloat, kDLBfloat) &&
              same(dlpack::codeBool, kDLBool) &&
              same(dlpack::codeFloat8E4M3FN, kDLFloat8_e4m3fn));
static_assert(sizeof(ours::Any) == sizeof(TVMFFIAny) &&
              offsetof(ours::Any, integer) == offsetof(TVMFFIAny, v_int64));
static_assert(sizeof(ours::Object) == sizeof(TVMFFIObject));
static_assert(
    sizeof(dlpack::Tensor) == sizeof(::DLTensor) &&
    offsetof(dlpack::Tensor, device) == offsetof(::DLTensor, device) &&
    offsetof(dlpack::Tensor, ndim) == offsetof(::DLTensor, ndim) &&
    offsetof(dlpack::Tensor, dtype) == offsetof(::DLTensor, dtype) &&
    offsetof(dlpack::Tensor, shape) == offsetof(::DLTensor, shape) &&
    offsetof(dlpack::Tensor, strides) == offsetof(::DLTensor, strides) &&
    offsetof(dlpack::Tensor, byteOffset) == offsetof(::DLTensor, byte_offset));
