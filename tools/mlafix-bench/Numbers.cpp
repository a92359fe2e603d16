//===- Numbers.cpp - Converts and generates elements ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Numbers.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

using namespace mlafix::bench;

namespace {

template <typename T> T read(const void *data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  return value;
}

template <typename T> void write(void *data, T value) {
  std::memcpy(data, &value, sizeof(T));
}

/// A float format that is built like those of IEEE 754: its numbers of exponent
/// and mantissa bits, and whether it has infinities.
struct Format {
  int exponent, mantissa;
  bool hasInfinity;
  int bias() const { return (1 << (exponent - 1)) - 1; }
};
constexpr Format bf16 = {8, 7, true}, f16 = {5, 10, true},
                 f8e4m3 = {4, 3, false}, f32 = {8, 23, true};

double decode(Format format, uint32_t bits) {
  int top = (1 << format.exponent) - 1;
  int exponent = int(bits >> format.mantissa) & top;
  int mantissa = int(bits) & ((1 << format.mantissa) - 1);
  double sign = (bits >> (format.exponent + format.mantissa)) & 1 ? -1.0 : 1.0;
  if (exponent == top && format.hasInfinity)
    return mantissa ? NAN : sign * INFINITY;
  if (exponent == top && mantissa == (1 << format.mantissa) - 1)
    return NAN;
  if (exponent == 0)
    return sign * std::ldexp(mantissa, 1 - format.bias() - format.mantissa);
  return sign * std::ldexp(mantissa + (1 << format.mantissa),
                           exponent - format.bias() - format.mantissa);
}

/// Converts 32 random bits to the bits of a value with a magnitude from 0.25 to
/// 4.
uint32_t payloadBits(Format format, uint32_t random) {
  uint32_t exponent = format.bias() - 2 + (random >> 20) % 4;
  uint32_t mantissa = random & ((1u << format.mantissa) - 1);
  return (random >> 31) << (format.exponent + format.mantissa) |
         exponent << format.mantissa | mantissa;
}

uint32_t mix(uint32_t value) {
  value = (value ^ (value >> 16)) * 0x7feb352du;
  value = (value ^ (value >> 15)) * 0x846ca68bu;
  return value ^ (value >> 16);
}

Format formatOf(mlafix_dtype type) {
  switch (type) {
  case MLAFIX_BF16:
    return bf16;
  case MLAFIX_F16:
    return f16;
  case MLAFIX_F8E4M3FN:
    return f8e4m3;
  default:
    return f32;
  }
}

[[noreturn]] void unknown(mlafix_dtype type) {
  throw std::logic_error(std::string("expected a dtype that cases use, got ") +
                         mlafix_dtype_name(type));
}

} // namespace

double mlafix::bench::toDouble(mlafix_dtype type, const void *data) {
  switch (type) {
  case MLAFIX_BF16:
    return decode(bf16, read<uint16_t>(data));
  case MLAFIX_F16:
    return decode(f16, read<uint16_t>(data));
  case MLAFIX_F8E4M3FN:
    return decode(f8e4m3, read<uint8_t>(data));
  case MLAFIX_F32:
    return read<float>(data);
  case MLAFIX_I32:
    return read<int32_t>(data);
  case MLAFIX_I64:
    return double(read<int64_t>(data));
  case MLAFIX_U8:
  case MLAFIX_BOOL:
    return read<uint8_t>(data);
  default:
    unknown(type);
  }
}

void mlafix::bench::fromDouble(mlafix_dtype type, double value, void *data) {
  switch (type) {
  case MLAFIX_F32:
    return write(data, float(value));
  case MLAFIX_I32:
    return write(data, int32_t(value));
  case MLAFIX_I64:
    return write(data, int64_t(value));
  case MLAFIX_U8:
  case MLAFIX_BOOL:
    return write(data, uint8_t(value));
  default:
    unknown(type);
  }
}

double mlafix::bench::unitInLastPlace(mlafix_dtype type, double value) {
  Format format = formatOf(type);
  int exponent = 0, least = 1 - format.bias(); // of normal numbers
  std::frexp(value, &exponent); // value = m * 2^exponent, 0.5 <= m < 1
  return std::ldexp(1.0, std::max(exponent - 1, least) - format.mantissa);
}

std::vector<char> mlafix::bench::makePattern(mlafix_dtype type,
                                             Content content) {
  size_t width = mlafix_dtype_size(type);
  std::vector<char> pattern(width * patternPeriod);
  for (int64_t i = 0; i < patternPeriod; ++i) {
    char *at = pattern.data() + i * width;
    uint32_t random = mix(uint32_t(i) * 2 + (content == Content::Lse));
    if (content == Content::Lse)
      write(at, float(random * (6.0 / 4294967296.0) - 3));
    else if (type == MLAFIX_F32)
      write(at, float(decode(f32, payloadBits(f32, random))));
    else if (type == MLAFIX_BF16)
      write(at, uint16_t(payloadBits(bf16, random)));
    else if (type == MLAFIX_F16)
      write(at, uint16_t(payloadBits(f16, random)));
    else
      unknown(type);
  }
  return pattern;
}

int64_t mlafix::bench::patternStart(int buffer, int64_t set) {
  return (buffer * 1237 + set * 331) % (patternPeriod / 64) * 64;
}
