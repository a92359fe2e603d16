//===- TestUnit.h - Loads test units and makes test calls -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TEST_TESTUNIT_H
#define MLAFIX_TEST_TESTUNIT_H

#include "UnitWriter.h"

#include "mlafix/runtime.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace mlafix::test {

inline Unit load(const UnitWriter &writer) {
  std::vector<uint8_t> bytes = writer.finish();
  return Unit::load(bytes.data(), bytes.size());
}

/// Returns the error that `body` throws. Returns MLAFIX_OK and "" if it throws
/// none.
template <typename Body> Error errorOf(Body body) {
  try {
    body();
  } catch (const Error &error) {
    return error;
  }
  return Error(MLAFIX_OK, "");
}

/// Expects that `body` fails with `status`, and with all `words` in its
/// message.
template <typename Body>
void expectError(mlafix_status status, const std::vector<std::string> &words,
                 Body body) {
  Error error = errorOf(body);
  EXPECT_EQ(error.status(), status)
      << mlafix_status_name(error.status()) << ": " << error.what();
  for (const std::string &word : words)
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
        << "no \"" << word << "\" in: " << error.what();
}

/// Expects that the unit does not load, with all `words` in the message.
inline void expectBadUnit(const UnitWriter &writer,
                          const std::vector<std::string> &words,
                          mlafix_status status = MLAFIX_BAD_UNIT) {
  std::vector<uint8_t> bytes = writer.finish();
  expectError(status, words, [&] { Unit::load(bytes.data(), bytes.size()); });
}

/// Arguments of add_bias (UnitWriter.h), valid until a test changes them.
struct AddBiasCall {
  int64_t rows;
  mlafix_device device;
  std::vector<float> outData, inData, scaleData;
  std::vector<Arg> args;

  explicit AddBiasCall(int64_t rows = 8, mlafix_device device = cpu())
      : rows(rows), device(device), outData(4 * rows + 4, -1.0f),
        inData(4 * rows + 4), scaleData(rows + 1) {
    for (size_t i = 0; i < inData.size(); ++i)
      inData[i] = static_cast<float>(i);
    args = {tensor(out()), tensor(in()), Tensor::none(), 0.5f, rows};
  }

  // The addresses are multiples of 16, since malloc aligns to 16 bytes.
  float *out() { return outData.data(); }
  float *in() { return inData.data(); }

  Tensor tensor(float *data) const {
    return Tensor::strided(data, MLAFIX_F32, {rows, 4}, {4, 1}, device);
  }
  void launch(const Kernel &kernel, void *stream = nullptr,
              uint32_t flags = 0) const {
    kernel.launch(args, device, stream, flags);
  }
  /// Returns success if out = in + 0.5 in every row, and nothing past the end
  /// was written.
  ::testing::AssertionResult isDone() const {
    for (int64_t i = 0; i < 4 * rows; ++i)
      if (outData[i] != inData[i] + 0.5f)
        return ::testing::AssertionFailure()
               << "element " << i << " is " << outData[i];
    for (size_t i = 4 * rows; i < outData.size(); ++i)
      if (outData[i] != -1.0f)
        return ::testing::AssertionFailure() << "wrote past the end at " << i;
    return ::testing::AssertionSuccess();
  }
  bool isUntouched() const {
    for (float value : outData)
      if (value != -1.0f)
        return false;
    return true;
  }
};

/// Expects that launching, validating and binding the call each fail with all
/// `words`, and that nothing is launched.
inline void expectRefused(const Kernel &kernel, const AddBiasCall &call,
                          const std::vector<std::string> &words) {
  expectError(MLAFIX_INVALID_ARGUMENT, words, [&] { call.launch(kernel); });
  expectError(MLAFIX_INVALID_ARGUMENT, words,
              [&] { kernel.validate(call.args, call.device); });
  expectError(MLAFIX_INVALID_ARGUMENT, words,
              [&] { kernel.bind(call.args, call.device); });
  EXPECT_TRUE(call.isUntouched());
}

} // namespace mlafix::test

#endif // MLAFIX_TEST_TESTUNIT_H
