//===- Npy.cpp - Arrays in numpy's .npy files -----------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Npy.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

using namespace mlafix::run;

namespace {

/// The contents of the dictionary at the start of an .npy file.
struct NpyHeader {
  std::string descr; ///< numpy's name of the dtype, for example "<f4"
  bool fortranOrder = false;
  std::vector<int64_t> shape;
};

/// Parses a header, which is a Python dictionary with three keys: `{'descr':
/// '<f4', 'fortran_order': False, 'shape': (3, 4), }`. Throws
/// std::runtime_error for other text.
class HeaderParser {
public:
  explicit HeaderParser(const std::string &text) : text(text) {}

  NpyHeader parse() {
    NpyHeader header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      std::string key = parseString();
      expect(':');
      if (key == "descr") {
        if (peek() == '[')
          error("a plain dtype", "a structured one");
        header.descr = parseString();
        descr = true;
      } else if (key == "fortran_order") {
        header.fortranOrder = parseBool();
        order = true;
      } else if (key == "shape") {
        header.shape = parseTuple();
        shape = true;
      } else {
        error("the keys descr, fortran_order and shape", "\"" + key + "\"");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!descr || !order || !shape)
      error("the keys descr, fortran_order and shape", "fewer");
    return header;
  }

private:
  [[noreturn]] static void error(const std::string &expected,
                                 const std::string &got) {
    throw std::runtime_error("expected " + expected + " in the header, got " +
                             got);
  }

  char peek() {
    while (next < text.size() && (text[next] == ' ' || text[next] == '\n'))
      ++next;
    return next < text.size() ? text[next] : '\0';
  }
  bool accept(char c) {
    if (peek() != c)
      return false;
    ++next;
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      error(std::string("'") + c + "'",
            next < text.size() ? "'" + text.substr(next, 8) + "'" : "its end");
  }

  std::string parseString() {
    char quote = peek();
    if (quote != '\'' && quote != '"')
      error("a string", "'" + text.substr(next, 8) + "'");
    size_t end = text.find(quote, next + 1);
    if (end == text.npos)
      error("the end of a string", "none");
    std::string result = text.substr(next + 1, end - next - 1);
    next = end + 1;
    return result;
  }

  bool parseBool() {
    peek();
    for (bool value : {true, false}) {
      std::string word = value ? "True" : "False";
      if (text.compare(next, word.size(), word) == 0) {
        next += word.size();
        return value;
      }
    }
    error("True or False", "'" + text.substr(next, 8) + "'");
  }

  std::vector<int64_t> parseTuple() {
    std::vector<int64_t> values;
    expect('(');
    while (!accept(')')) {
      int64_t value = 0;
      char digit = peek();
      if (digit < '0' || digit > '9' || values.size() == 64)
        error("a tuple of sizes", "'" + text.substr(next, 8) + "'");
      for (; next < text.size() && text[next] >= '0' && text[next] <= '9';
           ++next)
        if (__builtin_mul_overflow(value, int64_t(10), &value) ||
            __builtin_add_overflow(value, int64_t(text[next] - '0'), &value))
          error("sizes that fit 64 bits", "a larger one");
      accept('L'); // the suffix of Python 2's long integers
      values.push_back(value);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  const std::string &text;
  size_t next = 0;
};

constexpr char magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};
constexpr size_t maxHeaderBytes = 1 << 20;
constexpr uint64_t maxDataBytes = uint64_t(1) << 44;

/// Returns the names of a dtype in .npy headers. The first one is used for
/// writing.
std::vector<std::string> descrs(mlafix_dtype dtype) {
  switch (dtype) {
  case MLAFIX_BF16:
    return {"<V2", "|V2", "V2", "<u2", "bfloat16"};
  case MLAFIX_F16:
    return {"<f2"};
  case MLAFIX_F32:
    return {"<f4"};
  case MLAFIX_F8E4M3FN:
    return {"|V1", "<V1", "V1", "|u1", "<u1", "float8_e4m3fn"};
  case MLAFIX_F8E5M2:
    return {"<f1", "|V1", "<V1", "V1", "|u1", "<u1", "float8_e5m2"};
  case MLAFIX_F8E8M0:
    return {"|V1", "<V1", "V1", "|u1", "<u1", "float8_e8m0fnu"};
  case MLAFIX_F4E2M1:
    throw std::runtime_error(
        "expected elements of whole bytes, which .npy files have, got f4e2m1");
  case MLAFIX_I32:
    return {"<i4"};
  case MLAFIX_I64:
    return {"<i8"};
  case MLAFIX_I8:
    return {"|i1", "<i1"};
  case MLAFIX_U8:
    return {"|u1", "<u1"};
  case MLAFIX_BOOL:
    return {"|b1", "<b1"};
  }
  return {};
}

std::string readBytes(std::istream &file, size_t count) {
  std::string bytes(count, '\0');
  file.read(&bytes[0], static_cast<std::streamsize>(count));
  if (static_cast<size_t>(file.gcount()) != count)
    throw std::runtime_error(
        "expected a whole .npy header, got a file that ends within it");
  return bytes;
}

NpyHeader readHeader(std::istream &file) {
  std::string start = readBytes(file, 8);
  if (std::memcmp(start.data(), magic, sizeof(magic)) != 0)
    throw std::runtime_error("expected an .npy file, got something else");
  int version = static_cast<unsigned char>(start[6]);
  if (version < 1 || version > 3)
    throw std::runtime_error("expected .npy version 1, 2 or 3, got " +
                             std::to_string(version));
  std::string length = readBytes(file, version == 1 ? 2 : 4);
  size_t headerBytes = 0;
  for (size_t i = 0; i < length.size(); ++i)
    headerBytes |= static_cast<size_t>(static_cast<unsigned char>(length[i]))
                   << (8 * i);
  if (headerBytes > maxHeaderBytes)
    throw std::runtime_error("expected a header of at most " +
                             std::to_string(maxHeaderBytes) + " bytes, got " +
                             std::to_string(headerBytes));
  std::string text = readBytes(file, headerBytes);
  return HeaderParser(text).parse();
}

uint64_t dataBytes(const std::vector<int64_t> &shape, uint64_t elementBytes) {
  uint64_t bytes = elementBytes;
  bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  for (int64_t size : shape)
    if (__builtin_mul_overflow(bytes, empty ? 1 : static_cast<uint64_t>(size),
                               &bytes) ||
        bytes > maxDataBytes)
      throw std::runtime_error("expected an array that fits memory, got a "
                               "larger shape");
  return empty ? 0 : bytes;
}

/// Reads the data in pieces of 64 MiB, so that memory is only allocated as data
/// arrives. A header may promise much more data than exists. The size of the
/// file does not tell, since the file may be a pipe, which has no size.
void readData(std::istream &file, uint64_t bytes, std::vector<char> &data) {
  constexpr uint64_t pieceBytes = 64 << 20;
  while (data.size() < bytes) {
    size_t begin = data.size();
    data.resize(begin + std::min(bytes - begin, pieceBytes));
    auto wanted = static_cast<std::streamsize>(data.size() - begin);
    file.read(data.data() + begin, wanted);
    if (file.gcount() == wanted)
      continue;
    if (file.bad())
      throw std::runtime_error("expected " + std::to_string(bytes) +
                               " bytes of data, got a read error");
    auto present = begin + static_cast<uint64_t>(file.gcount());
    throw std::runtime_error("expected " + std::to_string(bytes) +
                             " bytes of data, got " + std::to_string(present) +
                             " (is it truncated?)");
  }
}

Array readArray(std::istream &file, mlafix_dtype dtype) {
  NpyHeader header = readHeader(file);
  std::vector<std::string> spellings = descrs(dtype);
  if (std::find(spellings.begin(), spellings.end(), header.descr) ==
      spellings.end())
    throw std::runtime_error(
        std::string("expected dtype ") + mlafix_dtype_name(dtype) +
        ", which is '" + spellings.front() + "', got '" + header.descr + "'");
  Array array;
  array.dtype = dtype;
  array.sizes = header.shape;
  array.fortranOrder = header.fortranOrder;
  uint64_t bytes = dataBytes(header.shape, mlafix_dtype_size(dtype));
  readData(file, bytes, array.bytes);
  return array;
}

} // namespace

int64_t Array::numElements() const {
  return static_cast<int64_t>(bytes.size() / mlafix_dtype_size(dtype));
}

std::vector<int64_t> Array::strides() const {
  std::vector<int64_t> result(sizes.size());
  int64_t stride = 1;
  for (size_t k = 0; k < sizes.size(); ++k) {
    size_t dim = fortranOrder ? k : sizes.size() - 1 - k;
    result[dim] = stride;
    stride *= std::max<int64_t>(sizes[dim], 1);
  }
  return result;
}

Array mlafix::run::readNpy(const std::string &path, mlafix_dtype dtype) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error("cannot open \"" + path +
                             "\": " + std::strerror(errno));
  try {
    return readArray(file, dtype);
  } catch (const std::runtime_error &error) {
    throw std::runtime_error("\"" + path + "\": " + error.what());
  }
}

void mlafix::run::writeNpy(const std::string &path, const Array &array) {
  std::string header =
      "{'descr': '" + descrs(array.dtype).front() +
      "', 'fortran_order': " + (array.fortranOrder ? "True" : "False") +
      ", 'shape': (";
  for (int64_t size : array.sizes)
    header += std::to_string(size) + ",";
  header += "), }";
  // Spaces and a newline end the header, so that the data starts at a multiple
  // of 64 bytes.
  size_t head = sizeof(magic) + 2 + 2;
  header.append((64 - (head + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file.write(magic, sizeof(magic));
  char rest[4] = {1, 0, static_cast<char>(header.size() & 0xff),
                  static_cast<char>(header.size() >> 8)};
  file.write(rest, sizeof(rest));
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  file.write(array.bytes.data(),
             static_cast<std::streamsize>(array.bytes.size()));
  file.close();
  if (!file)
    throw std::runtime_error("cannot write \"" + path +
                             "\": " + std::strerror(errno));
}
