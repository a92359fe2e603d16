//===- CudaDriver.h - tables of CUDA driver functions -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A table is a struct with a list FUNCTIONS(X) of X(name, (parameters)):
// FUNCTIONS(SUPPORT_DRIVER_MEMBER) declares the pointers, and
// FUNCTIONS(SUPPORT_DRIVER_LOAD), in a constructor, finds them. All return a
// CUresult, an int. Building needs no CUDA toolkit.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_EXAMPLES_SUPPORT_CUDADRIVER_H
#define MLAFIX_EXAMPLES_SUPPORT_CUDADRIVER_H

namespace support {

/// The function `Name` of libcuda.so.1. Throws std::runtime_error where there
/// is no driver, or no such function in it.
void *findDriverFunction(const char *Name);

} // namespace support

#define SUPPORT_DRIVER_MEMBER(NAME, PARAMS) int(*NAME) PARAMS = nullptr;
#define SUPPORT_DRIVER_LOAD(NAME, PARAMS)                                      \
  NAME = reinterpret_cast<int(*) PARAMS>(support::findDriverFunction(#NAME));

#endif // MLAFIX_EXAMPLES_SUPPORT_CUDADRIVER_H
