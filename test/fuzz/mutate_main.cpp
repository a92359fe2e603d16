//===- mutate_main.cpp - Drives a text fuzzer without libFuzzer -----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Replaces libFuzzer's main if the compiler is not Clang:
//
//   FUZZER [-runs=N] [-seed=S] [-crash=FILE] FILE...
//
// With -runs=0 (the default), the fuzzer gets each FILE once. Otherwise it also
// gets N inputs that are made from the files by changing tokens. The seed makes
// the changes repeatable. With -runs, a fuzzer that validates its input must
// accept every FILE, since inputs made from an invalid FILE would be invalid,
// too. If the process dies, the current input is written to the file of -crash.
//
//===----------------------------------------------------------------------===//

#include <cctype>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/// A fuzzer may define this to return true if its last input was valid. Valid
/// inputs are then changed further.
extern "C" __attribute__((weak)) bool mlafixFuzzAccepted();

using Tokens = std::vector<std::string>;

static std::string current;
static std::string crashPath = "crash-input";

/// Writes the current input to `crashPath`. Called when the process dies.
static void saveInput() {
  if (FILE *file = std::fopen(crashPath.c_str(), "wb")) {
    std::fwrite(current.data(), 1, current.size(), file);
    std::fclose(file);
    std::fprintf(stderr, "input saved to %s\n", crashPath.c_str());
  }
}

static void onSignal(int signal) {
  saveInput();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __sanitizer_set_death_callback(void (*callback)());
#endif

/// Splits a text into words, numbers, runs of blanks, and other characters.
static Tokens split(const std::string &text) {
  Tokens tokens;
  auto isWord = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  };
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (isWord(text[i]) || text[i] == '%' || text[i] == '!' || text[i] == '#')
      while (end < text.size() && isWord(text[end]))
        ++end;
    else if (std::isspace(static_cast<unsigned char>(text[i])))
      while (end < text.size() &&
             std::isspace(static_cast<unsigned char>(text[end])))
        ++end;
    tokens.push_back(text.substr(i, end - i));
    i = end;
  }
  return tokens;
}

namespace {
class Mutator {
public:
  Mutator(std::vector<Tokens> corpus, uint64_t seed)
      : corpus(std::move(corpus)), random(seed) {
    for (const Tokens &tokens : this->corpus)
      dictionary.insert(dictionary.end(), tokens.begin(), tokens.end());
  }

  std::string next() {
    Tokens tokens = corpus[below(corpus.size())];
    for (size_t i = 0, count = 1 + below(4); i != count && !tokens.empty(); ++i)
      mutate(tokens);
    std::string text;
    for (const std::string &token : tokens)
      text += token;
    return text;
  }

  /// Adds a valid input to the corpus. Once the corpus is full, replaces a
  /// random earlier addition.
  void keep(const std::string &text) {
    constexpr size_t most = 2000, longest = 1 << 15;
    if (text.size() > longest)
      return;
    if (corpus.size() < most)
      corpus.push_back(split(text));
    else
      corpus[most / 2 + below(most / 2)] = split(text);
  }

private:
  size_t below(size_t bound) { return random() % bound; }

  /// Returns a number literal near a limit of some type.
  std::string number() {
    static const char *const numbers[] = {"0",
                                          "1",
                                          "-1",
                                          "2",
                                          "3",
                                          "7",
                                          "16",
                                          "33",
                                          "64",
                                          "4096",
                                          "2147483647",
                                          "2147483648",
                                          "-2147483648",
                                          "4294967296",
                                          "9223372036854775807",
                                          "18446744073709551616",
                                          "0xFF800000",
                                          "1.0e+38",
                                          "?"};
    return numbers[below(std::size(numbers))];
  }

  void mutate(Tokens &tokens) {
    size_t at = below(tokens.size());
    size_t length =
        1 + below(std::min<size_t>(tokens.size() - at, 1 + below(12)));
    auto begin = tokens.begin() + at, end = begin + length;
    switch (below(9)) {
    case 0: // delete some tokens
      tokens.erase(begin, end);
      break;
    case 1: { // duplicate some tokens
      Tokens copy(begin, end);
      tokens.insert(end, copy.begin(), copy.end());
      break;
    }
    case 2: // replace a token by a word
    case 3:
      tokens[at] = dictionary[below(dictionary.size())];
      break;
    case 4: // swap two tokens
      std::swap(tokens[at], tokens[below(tokens.size())]);
      break;
    case 5: // replace the next number, from this token on
      while (at + 1 < tokens.size() &&
             !std::isdigit(static_cast<unsigned char>(tokens[at][0])))
        ++at;
      tokens[at] = number();
      break;
    case 6: { // insert a piece of another text
      const Tokens &other = corpus[below(corpus.size())];
      size_t from = below(other.size());
      size_t count = 1 + below(std::min<size_t>(other.size() - from, 24));
      Tokens piece(other.begin() + from, other.begin() + from + count);
      tokens.insert(begin, piece.begin(), piece.end());
      break;
    }
    case 7: { // repeat a piece many times
      std::string piece, text;
      for (auto token = begin; token != end; ++token)
        piece += *token;
      for (size_t i = 0, count = 1 + below(2000); i != count; ++i)
        text += piece;
      tokens.insert(begin, text);
      break;
    }
    default: // change a character
      if (!tokens[at].empty())
        tokens[at][below(tokens[at].size())] =
            static_cast<char>(below(4) ? 32 + below(95) : below(256));
    }
  }

  std::vector<Tokens> corpus;
  Tokens dictionary;
  std::mt19937_64 random;
};
} // namespace

static bool run(std::string input) {
  current = std::move(input);
  // Copies the input to a buffer of exactly its size, so that AddressSanitizer
  // detects reads past its end.
  std::vector<uint8_t> bytes(current.begin(), current.end());
  return LLVMFuzzerTestOneInput(bytes.data(), bytes.size()) == 0;
}

static void saveInputOnCrash() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback(saveInput);
#else
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    std::signal(signal, onSignal);
#endif
  std::signal(SIGABRT, onSignal);
  std::signal(SIGALRM, onSignal);
}

int main(int argc, char **argv) {
  unsigned long runs = 0, seed = 1;
  std::vector<const char *> files;
  std::vector<std::string> texts;
  for (int i = 1; i < argc; ++i) {
    if (!std::strncmp(argv[i], "-runs=", 6)) {
      runs = std::strtoul(argv[i] + 6, nullptr, 10);
    } else if (!std::strncmp(argv[i], "-seed=", 6)) {
      seed = std::strtoul(argv[i] + 6, nullptr, 10);
    } else if (!std::strncmp(argv[i], "-crash=", 7)) {
      crashPath = argv[i] + 7;
    } else {
      std::ifstream file(argv[i], std::ios::binary);
      if (!file) {
        std::fprintf(stderr, "cannot read %s\n", argv[i]);
        return 2;
      }
      files.push_back(argv[i]);
      texts.emplace_back(std::istreambuf_iterator<char>(file),
                         std::istreambuf_iterator<char>());
    }
  }
  if (texts.empty()) {
    std::fprintf(stderr, "expected at least one file, got none\n");
    return 2;
  }
  saveInputOnCrash();
  std::vector<Tokens> corpus;
  for (size_t i = 0; i < texts.size(); ++i) {
    alarm(60); // no input may take a minute
    run(texts[i]);
    if (runs && mlafixFuzzAccepted && !mlafixFuzzAccepted()) {
      std::fprintf(stderr, "%s: expected a valid input, got a refusal\n",
                   files[i]);
      return 1;
    }
    corpus.push_back(split(texts[i]));
  }
  Mutator mutator(std::move(corpus), seed);
  unsigned long valid = 0;
  for (unsigned long i = 1; i <= runs; ++i) {
    alarm(60);
    run(mutator.next());
    if (mlafixFuzzAccepted && mlafixFuzzAccepted()) {
      mutator.keep(current);
      ++valid;
    }
    if (i % 10000 == 0)
      std::fprintf(stderr, "%lu inputs, %lu valid\n", i, valid);
  }
  std::fprintf(stderr, "%zu files and %lu inputs made from them: no crash\n",
               texts.size(), runs);
}
