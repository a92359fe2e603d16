//===- CNames.cpp - names that C and C++ accept ---------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/CNames.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace mlafix::target;

/// Names that a generated C or C++ identifier must not have: the keywords of
/// C23 and C++20, and names that standard headers or compilers are likely to
/// define as macros.
static constexpr StringLiteral reserved[] = {
    // clang-format off
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor",
    "bool", "break", "case", "catch", "char", "char16_t", "char32_t", "char8_t",
    "class", "co_await", "co_return", "co_yield", "compl", "concept", "const",
    "const_cast", "consteval", "constexpr", "constinit", "continue", "decltype",
    "default", "delete", "do", "double", "dynamic_cast", "else", "enum",
    "explicit", "export", "extern", "false", "float", "for", "friend", "goto",
    "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept",
    "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private",
    "protected", "public", "register", "reinterpret_cast", "requires",
    "restrict", "return", "short", "signed", "sizeof", "static",
    "static_assert", "static_cast", "struct", "switch", "template", "this",
    "thread_local", "throw", "true", "try", "typedef", "typeid", "typename",
    "typeof", "typeof_unqual", "union", "unsigned", "using", "virtual", "void",
    "volatile", "wchar_t", "while", "xor", "xor_eq",
    "BUFSIZ", "EOF", "HUGE_VAL", "I", "INFINITY", "NAN", "NULL", "RAND_MAX",
    "assert", "complex", "errno", "i386", "imaginary", "linux", "noreturn",
    "offsetof", "stderr", "stdin", "stdout", "unix",
    // clang-format on
};

static bool isIdentifierCharacter(char c) { return isAlnum(c) || c == '_'; }

bool mlafix::target::isCName(StringRef name) {
  return !name.empty() && !isDigit(name.front()) &&
         all_of(name, isIdentifierCharacter) && !is_contained(reserved, name);
}

static std::string withIdentifierCharacters(StringRef name) {
  std::string text(name);
  for (char &c : text)
    if (!isIdentifierCharacter(c))
      c = '_';
  return text;
}

std::string CNames::make(StringRef wanted, ArrayRef<StringRef> suffixes) {
  std::string name = withIdentifierCharacters(wanted);
  if (name.empty() || isDigit(name.front()))
    name.insert(0, "arg");
  auto isFree = [&] {
    return isCName(name) && !used.contains(name) &&
           none_of(suffixes, [&](StringRef suffix) {
             return used.contains(name + suffix.str());
           });
  };
  while (!isFree())
    name += '_';
  used.insert(name);
  for (StringRef suffix : suffixes)
    used.insert(name + suffix.str());
  return name;
}

std::string CNames::makeEnd(StringRef wanted) {
  std::string name = withIdentifierCharacters(wanted);
  while (!used.insert(name).second)
    name += '_';
  return name;
}
