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

/// True if `name` is an identifier in C and C++ and no keyword of either, nor a
/// macro of their headers.
bool isCName(llvm::StringRef name);

/// Distinct identifiers of one scope.
class CNames {
public:
  CNames() = default;
  explicit CNames(llvm::ArrayRef<llvm::StringRef> taken) {
    for (llvm::StringRef name : taken)
      used.insert(name);
  }

  /// The identifier for `wanted`: itself if it is one that is free. Otherwise
  /// each character that no identifier has becomes '_', a leading digit gets
  /// the prefix "arg", and '_' is appended until the name, and the name with
  /// each of `suffixes` behind it, is free.
  std::string make(llvm::StringRef wanted,
                   llvm::ArrayRef<llvm::StringRef> suffixes = {});

  /// Likewise for a name of which an identifier takes only the end: keywords
  /// are left as they are.
  std::string makeEnd(llvm::StringRef wanted);

private:
  llvm::StringSet<> used;
};

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_CNAMES_H
