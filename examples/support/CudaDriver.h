//===- CudaDriver.h - tables of CUDA driver functions -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Macros for a table of driver functions: a struct of pointers to them. The
// file that defines the struct lists the functions in a macro of its own,
// LIST(X), as X(name, (parameters)). In the struct, LIST(SUPPORT_DRIVER_MEMBER)
// declares the pointers. In the struct's constructor, LIST(SUPPORT_DRIVER_LOAD)
// sets them. All functions return a CUresult, which is an int. Building needs
// no CUDA toolkit.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_EXAMPLES_SUPPORT_CUDADRIVER_H
#define MLAFIX_EXAMPLES_SUPPORT_CUDADRIVER_H

namespace support {

/// Returns the function `Name` of libcuda.so.1. Throws std::runtime_error if
/// there is no driver, or if the driver has no such function.
void *findDriverFunction(const char *Name);

} // namespace support

#define SUPPORT_DRIVER_MEMBER(NAME, PARAMS) int(*NAME) PARAMS = nullptr;
#define SUPPORT_DRIVER_LOAD(NAME, PARAMS)                                      \
  NAME = reinterpret_cast<int(*) PARAMS>(support::findDriverFunction(#NAME));

#endif // MLAFIX_EXAMPLES_SUPPORT_CUDADRIVER_H
