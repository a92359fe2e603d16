//===- PortableLibc.cpp - What an older C library lacks -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Linked into the compiler that travels: LLVM was built with a C library that
// has these functions, and the machine that runs it may have an older one.
//
//===----------------------------------------------------------------------===//

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <sys/random.h>

/// Random bits. LLVM names temporary files with them; glibc has this function
/// only since 2.36.
extern "C" uint32_t arc4random() noexcept {
  uint32_t bits = 0;
  while (getrandom(&bits, sizeof(bits), 0) != sizeof(bits))
    if (errno != EINTR)
      std::abort();
  return bits;
}
