//===- TextCheck.h - what a text may make the parser do ---------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// MLIR's parser calls itself for each level of nesting and has only the stack
// to stop it; aliases make more levels, and more text, than stand there; and a
// number takes time with the square of its length. Kernels stay far below these
// limits.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_COMPILER_TEXTCHECK_H
#define MLAFIX_LIB_COMPILER_TEXTCHECK_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace mlafix {

namespace text_limits {
/// Brackets within each other, aliases replaced by what they stand for. The
/// operators of an affine expression count, too: it nests at each.
constexpr unsigned nesting = 250;
/// Characters of a number.
constexpr unsigned numberLength = 256;
/// Tokens that an alias stands for.
constexpr unsigned aliasTokens = 10000;
/// Tokens of the whole, aliases replaced.
constexpr unsigned tokens = 10000000;
} // namespace text_limits

struct TextError {
  size_t offset; ///< in the text
  std::string message;
};

/// `source` without the byte order mark that some editors put in front.
llvm::StringRef dropByteOrderMark(llvm::StringRef source);

/// The first location of `source`, MLIR text, that exceeds a limit.
std::optional<TextError> checkText(llvm::StringRef source);

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_TEXTCHECK_H
