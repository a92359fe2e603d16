//===- CNames.h - names that C and C++ accept -------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_CNAMES_H
#define MLAFIX_LIB_TARGET_CNAMES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include <string>

namespace mlafix::target {

/// Returns true if `name` is a valid identifier in C and C++. Keywords of
/// either language and macros of their standard headers are not valid.
bool isCName(llvm::StringRef name);

/// Assigns distinct C identifiers within one scope.
class CNames {
public:
  CNames() = default;
  explicit CNames(llvm::ArrayRef<llvm::StringRef> taken) {
    for (llvm::StringRef name : taken)
      used.insert(name);
  }

  /// Returns `wanted` if it is a valid identifier that is not in use yet.
  /// Otherwise replaces invalid characters by '_' and puts "arg" before a
  /// leading digit. Then appends '_' until neither the name nor the name
  /// followed by one of `suffixes` is in use.
  std::string make(llvm::StringRef wanted,
                   llvm::ArrayRef<llvm::StringRef> suffixes = {});

  /// Like make(), but for the end of a longer identifier, where keywords are
  /// valid.
  std::string makeEnd(llvm::StringRef wanted);

private:
  llvm::StringSet<> used;
};

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_CNAMES_H
