//===- TextCheck.h - checks a text against the parser's limits --*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Checks that MLIR's parser can handle a text in limited time and stack space.
// The parser recurses for each level of nesting, without a limit. Aliases
// expand to more levels and more text than the source has. Parsing a number
// takes quadratic time. Kernels stay far below the limits.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_COMPILER_TEXTCHECK_H
#define MLAFIX_LIB_COMPILER_TEXTCHECK_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace mlafix {

namespace text_limits {
/// The most nested brackets after alias expansion. Operators of affine
/// expressions count as well, since each adds a level of recursion.
constexpr unsigned nesting = 250;
/// The most characters of a number.
constexpr unsigned numberLength = 256;
/// The most tokens of an expanded alias.
constexpr unsigned aliasTokens = 10000;
/// The most tokens of the whole text after alias expansion.
constexpr unsigned tokens = 10000000;
} // namespace text_limits

struct TextError {
  size_t offset; ///< position in the text, in bytes
  std::string message;
};

/// Returns `source` without the byte order mark that some editors put in front.
llvm::StringRef dropByteOrderMark(llvm::StringRef source);

/// Returns the first place in `source` (MLIR text) that exceeds a limit;
/// nullopt if there is none.
std::optional<TextError> checkText(llvm::StringRef source);

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_TEXTCHECK_H
