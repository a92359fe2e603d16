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

/// True if `name` is a C and C++ identifier, but no keyword of either or macro
/// of their headers.
bool isCName(llvm::StringRef name);

/// Assigns distinct identifiers within one scope.
class CNames {
public:
  CNames() = default;
  explicit CNames(llvm::ArrayRef<llvm::StringRef> taken) {
    for (llvm::StringRef name : taken)
      used.insert(name);
  }

  /// The identifier for `wanted`: itself if valid and free. Otherwise invalid
  /// characters become '_', a leading digit gets the prefix "arg", and '_' is
  /// appended until the name, with and without each of `suffixes`, is free.
  std::string make(llvm::StringRef wanted,
                   llvm::ArrayRef<llvm::StringRef> suffixes = {});

  /// As make(), for the last part of an identifier, where keywords are allowed.
  std::string makeEnd(llvm::StringRef wanted);

private:
  llvm::StringSet<> used;
};

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_CNAMES_H
