//===- PortableLibc.cpp - What an older C library lacks -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// This file is linked into the compiler that is built for distribution. LLVM
// was built with a C library that has the function below, but the machine on
// which the compiler runs may have an older C library without it.
//
//===----------------------------------------------------------------------===//

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <sys/random.h>

/// Returns random bits, with which LLVM names temporary files. glibc has this
/// function only since 2.36.
extern "C" uint32_t arc4random() noexcept {
  uint32_t bits = 0;
  while (getrandom(&bits, sizeof(bits), 0) != sizeof(bits))
    if (errno != EINTR)
      std::abort();
  return bits;
}
