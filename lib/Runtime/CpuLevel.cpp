//===- CpuLevel.cpp - The level of CPU code for this machine --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Finds the highest level of CPU code (mlafix/Targets.def) that this machine
// supports. On x86-64, the level is read from CPUID and not from
// __builtin_cpu_supports(), because the names that the latter accepts depend on
// the compiler and its version.
// AArch64 has only one level, and all processors that run Linux have it.
//
//===----------------------------------------------------------------------===//

#include "Unit.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

using namespace mlafix::runtime;

#if defined(__x86_64__)
namespace {

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

/// Returns the registers of a CPUID leaf. They are all zero if the processor
/// lacks the leaf.
Registers cpuid(unsigned leaf) {
  Registers out;
  if (!__get_cpuid_count(leaf, 0, &out.eax, &out.ebx, &out.ecx, &out.edx))
    return Registers();
  return out;
}

constexpr unsigned bit(int index) { return 1u << index; }

bool hasAll(unsigned bits, unsigned wanted) {
  return (bits & wanted) == wanted;
}

/// Returns the mask of register sets that the operating system saves (XCR0), or
/// 0 if XGETBV, the instruction that reads this mask, is not enabled.
unsigned savedRegisters() {
  constexpr unsigned osxsave = bit(27);
  if (!hasAll(cpuid(1).ecx, osxsave))
    return 0;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

} // namespace

int mlafix::runtime::machineLevel() {
  constexpr unsigned avxState = bit(1) | bit(2);
  constexpr unsigned avx512State = avxState | bit(5) | bit(6) | bit(7);
  constexpr unsigned fma = bit(12), movbe = bit(22), avx = bit(28),
                     f16c = bit(29); // of leaf 1, ecx
  constexpr unsigned lzcnt = bit(5); // of leaf 0x80000001, ecx
  constexpr unsigned bmi1 = bit(3), avx2 = bit(5), bmi2 = bit(8),
                     avx512f = bit(16), avx512dq = bit(17), avx512cd = bit(28),
                     avx512bw = bit(30), avx512vl = bit(31); // of leaf 7, ebx
  unsigned saved = savedRegisters(), extended = cpuid(7).ebx;
  if (!hasAll(saved, avxState) ||
      !hasAll(cpuid(1).ecx, fma | movbe | avx | f16c) ||
      !hasAll(cpuid(0x80000001).ecx, lzcnt) ||
      !hasAll(extended, bmi1 | avx2 | bmi2))
    return 0;
  bool hasV4 =
      hasAll(saved, avx512State) &&
      hasAll(extended, avx512f | avx512dq | avx512cd | avx512bw | avx512vl);
  return hasV4 ? 4 : 3;
}
#else
int mlafix::runtime::machineLevel() { return *machineArchitecture ? 0 : -1; }
#endif
