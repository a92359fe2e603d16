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
