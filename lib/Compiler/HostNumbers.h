//===- HostNumbers.h - default number settings while in scope ---*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_COMPILER_HOSTNUMBERS_H
#define MLAFIX_LIB_COMPILER_HOSTNUMBERS_H

#include <cfenv>
#include <locale.h>

namespace mlafix {

/// Makes number handling independent of the host program's settings. While in
/// scope, this thread uses the "C" locale, rounds to nearest, keeps subnormals
/// and traps no floating-point exception. This matters because LLVM prints
/// doubles with printf, and passes fold constants with host floats.
class DefaultNumbers {
public:
  DefaultNumbers() : locale(uselocale(plainLocale())) {
    std::fegetenv(&arithmetic);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultNumbers() {
    std::fesetenv(&arithmetic);
    uselocale(locale);
  }
  DefaultNumbers(const DefaultNumbers &) = delete;
  DefaultNumbers &operator=(const DefaultNumbers &) = delete;

private:
  /// Returns the "C" locale, or null if out of memory. With null, the thread
  /// keeps its locale.
  static locale_t plainLocale() {
    static locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    return plain;
  }

  locale_t locale;
  std::fenv_t arithmetic;
};

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_HOSTNUMBERS_H
