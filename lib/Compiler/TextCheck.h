//===- TextCheck.h - what a text may make the parser do ---------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// MLIR's parser recurses for each level of nesting without a limit. Aliases
// expand to more levels and more text than the source has, and parsing a number
// takes quadratic time. Kernels stay far below these limits.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_COMPILER_TEXTCHECK_H
#define MLAFIX_LIB_COMPILER_TEXTCHECK_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace mlafix {

namespace text_limits {
/// Limit of nested brackets after alias expansion. Operators of affine
/// expressions count too, since each adds a level of recursion.
constexpr unsigned nesting = 250;
/// Limit of the characters of a number.
constexpr unsigned numberLength = 256;
/// Limit of the tokens of an expanded alias.
constexpr unsigned aliasTokens = 10000;
/// Limit of the tokens of the whole text after alias expansion.
constexpr unsigned tokens = 10000000;
} // namespace text_limits

struct TextError {
  size_t offset; ///< offset in the text
  std::string message;
};

/// `source` without the byte order mark that some editors put in front.
llvm::StringRef dropByteOrderMark(llvm::StringRef source);

/// The first location in `source` (MLIR text) that exceeds a limit; nullopt if
/// none does.
std::optional<TextError> checkText(llvm::StringRef source);

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_TEXTCHECK_H
