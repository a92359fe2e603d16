//===- TextCheck.cpp - checks a text against the parser's limits ----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The tokens are those of MLIR's lexer. If the role of a token is ambiguous
// ('<' and '>', for example), the check assumes the deeper nesting.
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/TextCheck.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;
using namespace mlafix;

StringRef mlafix::dropByteOrderMark(StringRef source) {
  source.consume_front("\xef\xbb\xbf");
  return source;
}

namespace {

struct Token {
  enum Kind {
    End,
    Open,      // ( [ { < {-#
    Close,     // ) ] } > #-}
    Operator,  // + - * mod floordiv ceildiv
    Separator, // , = :
    Alias,     // #name !name
    Number,
    Word, // a name, string, %value or @symbol
    Other // ->, >=, ? and similar
  };
  Kind kind;
  StringRef text;
};

class Lexer {
public:
  explicit Lexer(StringRef source) : source(source) {}

  size_t offsetOf(const Token &token) const {
    return token.text.data() - source.data();
  }

  Token next() {
    skipBlanks();
    if (at == source.size())
      return {Token::End, source.substr(at)};
    char first = source[at];
    StringRef rest = source.substr(at);
    if (rest.starts_with("{-#") || rest.starts_with("#-}"))
      return take(first == '{' ? Token::Open : Token::Close, 3);
    if (rest.starts_with("->") || rest.starts_with(">="))
      return take(Token::Other, 2);
    if (first == '"')
      return take(Token::Word, stringLength(rest));
    if (StringRef("#!%^@").contains(first))
      return prefixed(rest);
    if (isDigit(first))
      return take(Token::Number, numberLength(rest));
    if (isAlpha(first) || first == '_')
      return word(rest);
    return take(punctuation(first), 1);
  }

private:
  void skipBlanks() {
    while (at != source.size()) {
      if (source.substr(at).starts_with("//"))
        at = std::min(source.find('\n', at), source.size());
      else if (isSpace(source[at]) || source[at] == '\0')
        ++at;
      else
        return;
    }
  }

  Token take(Token::Kind kind, size_t length) {
    Token token{kind, source.substr(at, length)};
    at += token.text.size();
    return token;
  }

  static Token::Kind punctuation(char c) {
    if (StringRef("([{<").contains(c))
      return Token::Open;
    if (StringRef(")]}>").contains(c))
      return Token::Close;
    if (StringRef("+-*").contains(c))
      return Token::Operator;
    return StringRef(",=:").contains(c) ? Token::Separator : Token::Other;
  }

  /// Returns the length of a string up to its closing quote, or to where MLIR's
  /// lexer stops.
  static size_t stringLength(StringRef text) {
    size_t end = 1;
    while (end < text.size() && text[end] != '"' &&
           !StringRef("\n\v\f").contains(text[end]))
      end += text[end] == '\\' ? 2 : 1;
    return end + 1;
  }

  Token prefixed(StringRef text) {
    if (text.starts_with("@\""))
      return take(Token::Word, 1 + stringLength(text.drop_front()));
    auto isPart = [](char c) {
      return isAlnum(c) || StringRef("$._-").contains(c);
    };
    StringRef name = text.drop_front();
    bool isNumbered = !name.empty() && isDigit(name[0]);
    size_t end =
        1 + (isNumbered ? name.take_while(isDigit) : name.take_while(isPart))
                .size();
    // A name with a dot is an attribute or a type of a dialect, not an alias.
    bool isAlias = (text[0] == '#' || text[0] == '!') &&
                   !text.take_front(end).contains('.');
    return take(isAlias ? Token::Alias : Token::Word, end);
  }

  Token word(StringRef text) {
    text = text.take_while(
        [](char c) { return isAlnum(c) || StringRef("_$.").contains(c); });
    bool isOperator = text == "mod" || text == "floordiv" || text == "ceildiv";
    return take(isOperator ? Token::Operator : Token::Word, text.size());
  }

  static size_t numberLength(StringRef text) {
    if (text.starts_with("0x") && text.size() > 2 && isHexDigit(text[2]))
      return 2 + text.drop_front(2).take_while(isHexDigit).size();
    StringRef rest = text.drop_while(isDigit);
    if (!rest.consume_front("."))
      return text.size() - rest.size();
    rest = rest.drop_while(isDigit);
    StringRef exponent = rest;
    if (exponent.consume_front("e") || exponent.consume_front("E")) {
      if (!exponent.consume_front("-"))
        exponent.consume_front("+");
      if (!exponent.empty() && isDigit(exponent[0]))
        rest = exponent.drop_while(isDigit);
    }
    return text.size() - rest.size();
  }

  StringRef source;
  size_t at = 0;
};

/// The cost of an alias after expansion: its nesting and its tokens.
struct Cost {
  unsigned depth = 0;
  uint64_t tokens = 0;
};

class Check {
public:
  explicit Check(StringRef source) : lexer(source) {}

  std::optional<TextError> run();

private:
  /// An open bracket, and the number of operators inside it since the last
  /// separator. The first level is the text itself.
  struct Level {
    char open;
    unsigned operators = 0;
  };

  void note(const Token &token, const Token &following);
  void open(char bracket);
  void close(char bracket);
  void addOperators(unsigned count) {
    levels.back().operators += count;
    depth += count;
  }
  void clearOperators() {
    depth -= levels.back().operators;
    levels.back().operators = 0;
  }
  void count(Cost cost);
  void beginAlias(StringRef name);
  void followAlias(const Token &token);
  std::optional<TextError> findExcess(const Token &token) const;

  Lexer lexer;
  SmallVector<Level> levels = {{'\0'}};
  unsigned depth = 0, deepest = 0;
  uint64_t tokens = 0;

  StringMap<Cost> aliases;
  Cost *defined = nullptr; ///< alias whose value is being read; else null
  bool isComplete = false; ///< true if the alias's value may end here
};

} // namespace

void Check::count(Cost cost) {
  unsigned reached = depth + cost.depth;
  deepest = std::max(deepest, reached);
  tokens += cost.tokens;
  if (!defined)
    return;
  defined->depth = std::max(defined->depth, reached);
  defined->tokens += cost.tokens;
}

void Check::open(char bracket) {
  levels.push_back({bracket});
  ++depth;
}

/// Closes the level that `bracket` ends. A '<' or '>' may be a comparison, so:
///
///   - levels of a '<' without a '>' are closed with the level around them
///   - a `bracket` without an open counterpart is ignored
void Check::close(char bracket) {
  constexpr StringLiteral opens = "([{<", closes = ")]}>";
  char opened = opens[closes.find(bracket)];
  size_t found = levels.size() - 1;
  if (opened != '<')
    while (levels[found].open == '<')
      --found;
  if (found == 0 || levels[found].open != opened)
    return;
  while (levels.size() > found) {
    clearOperators();
    levels.pop_back();
    --depth;
  }
}

void Check::beginAlias(StringRef name) {
  defined = &aliases[name];
  *defined = Cost();
  isComplete = false;
}

/// Detects where the value of an alias ends. At the top level, two adjacent
/// operands without an operator or separator belong to two statements.
void Check::followAlias(const Token &token) {
  if (!defined || levels.size() != 1)
    return;
  switch (token.kind) {
  case Token::Alias:
  case Token::Number:
  case Token::Word:
    if (isComplete)
      defined = nullptr;
    isComplete = true;
    return;
  case Token::Open:
    if (token.text.size() > 1) // the resource section of the file begins
      defined = nullptr;
    return;
  default:
    isComplete = false;
  }
}

void Check::note(const Token &token, const Token &following) {
  bool isDefinition = token.kind == Token::Alias && levels.size() == 1 &&
                      following.text == "=" && !(defined && !isComplete);
  if (isDefinition)
    return beginAlias(token.text);
  followAlias(token);
  Cost cost{0, 1};
  switch (token.kind) {
  case Token::Open:
    open(token.text[0]);
    break;
  case Token::Close:
    close(token.text.back());
    if (levels.size() == 1)
      isComplete = true;
    break;
  case Token::Operator:
    addOperators(1);
    break;
  case Token::Separator:
    clearOperators();
    break;
  case Token::Alias:
    if (auto known = aliases.find(token.text);
        known != aliases.end() && &known->second != defined)
      cost = {known->second.depth, known->second.tokens + 1};
    break;
  default:
    break;
  }
  count(cost);
}

std::optional<TextError> Check::findExcess(const Token &token) const {
  auto fail = [&](const Twine &message) {
    return TextError{lexer.offsetOf(token), message.str()};
  };
  if (token.kind == Token::Number &&
      token.text.size() > text_limits::numberLength)
    return fail("expected a number of at most " +
                Twine(text_limits::numberLength) + " characters, got one of " +
                Twine(token.text.size()));
  if (deepest > text_limits::nesting)
    return fail(
        "expected brackets and operators nested at most " +
        Twine(text_limits::nesting) +
        " deep, with aliases replaced by what they stand for, got more");
  if (defined && defined->tokens > text_limits::aliasTokens)
    return fail("expected aliases that stand for at most " +
                Twine(text_limits::aliasTokens) + " tokens, got more");
  if (tokens > text_limits::tokens)
    return fail("expected at most " + Twine(text_limits::tokens) +
                " tokens, with aliases replaced by what they stand for, got "
                "more");
  return std::nullopt;
}

std::optional<TextError> Check::run() {
  for (Token token = lexer.next(), following; token.kind != Token::End;
       token = following) {
    following = lexer.next();
    note(token, following);
    if (auto error = findExcess(token))
      return error;
  }
  return std::nullopt;
}

std::optional<TextError> mlafix::checkText(StringRef source) {
  return Check(source).run();
}
