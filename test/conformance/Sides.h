//===- Sides.h - rows of partial states to merge ----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The inputs of the kernels that merge any number of states, and what they must
// give: rows of sides in every mix of live and dead ones, with garbage wherever
// nobody may look.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TEST_CONFORMANCE_SIDES_H
#define MLAFIX_TEST_CONFORMANCE_SIDES_H

#include "Harness.h"
#include "Reference.h"
#include "TestTensor.h"

namespace conformance {

/// The contents of the sides of one row.
enum class Mix {
  AllLive,      ///< Ordinary values.
  AllEmpty,     ///< -inf and +inf in turn, payloads NaN and Inf.
  OneLive,      ///< One side of -0.0, denormals, Inf and NaN; the rest empty.
  HalfEmpty,    ///< Live and empty in turn.
  OneDominates, ///< The others' weights underflow, their payloads are NaN.
  HugeLse,      ///< |lse| about 1e5.
  Cancelling,   ///< Equal weights, signs in turn.
  FaultyLse,    ///< NaN in one live lse.
  Count
};

/// \p Count sides for each of \p Rows rows of D elements.
class Sides {
public:
  /// Row R holds what row \p FirstRow + R of any larger set with this seed
  /// does.
  Sides(Float Type, int64_t Rows, int64_t Count, int64_t D, uint64_t Seed = 1,
        int64_t FirstRow = 0);

  const uint32_t *payload(int64_t Row, int64_t I) const {
    return &Bits[(Row * Count + I) * D];
  }
  float lse(int64_t Row, int64_t I) const { return Lses[Row * Count + I]; }
  Side side(int64_t Row, int64_t I) const {
    return {payload(Row, I), lse(Row, I)};
  }
  /// The result of merging sides [First, Last) of a row.
  ExpectedRow expected(int64_t Row, int64_t First, int64_t Last,
                       Storage As) const;

  const Float Type;
  const int64_t Rows, Count, D;

private:
  void fillRow(int64_t Row, uint64_t Seed);
  std::vector<uint32_t> Bits;
  std::vector<float> Lses;
};

/// How a tensor lies in memory.
enum class Spread { Dense, Misaligned, Gaps, OddGaps };
constexpr Spread AllSpreads[] = {Spread::Dense, Spread::Misaligned,
                                 Spread::Gaps, Spread::OddGaps};

/// A layout of these sizes; no two operands have the same gaps. The last dim
/// keeps stride 1 where \p IsPayload.
Layout spread(std::vector<int64_t> Sizes, Spread How, int Operand,
              bool IsPayload, int64_t ElementBytes);

/// A tensor of \p Type with that layout.
TestTensor payloadTensor(Float Type, std::vector<int64_t> Sizes, Spread How,
                         int Operand);
/// An f32 tensor with that layout.
TestTensor lseTensor(std::vector<int64_t> Sizes, Spread How, int Operand);

/// Writes one payload row, or reads it, at \p At without the last index.
template <typename... Index>
void setRow(TestTensor &To, const uint32_t *Bits, int64_t D, Index... At) {
  for (int64_t I = 0; I < D; ++I)
    To.set({At..., I}, Bits[I]);
}

/// The bits of an element that nobody wrote.
inline uint32_t poisonBits(Float Type) {
  return uint32_t(-1) >> (32 - 8 * byteWidth(Type));
}

/// Holds one row of a result against what it must be, poison included. \p Lse
/// may be null.
template <typename... Index>
testing::AssertionResult rowMatches(const ExpectedRow &Row, Float Type,
                                    const TestTensor &Out,
                                    const TestTensor *Lse, Index... At) {
  std::string Why;
  for (size_t I = 0; I < Row.Payload.size(); ++I) {
    uint32_t Bits = Out.get({At..., int64_t(I)});
    if (Bits == poisonBits(Type))
      return testing::AssertionFailure() << "out[" << I << "] is poison still";
    if (!matches(Type, Row.Payload[I], Bits, Why))
      return testing::AssertionFailure() << "out[" << I << "]: " << Why;
  }
  if (Lse && Lse->get({At...}) == poisonBits(Float::F32))
    return testing::AssertionFailure() << "out_lse is poison still";
  if (Lse && !matches(Float::F32, Row.Lse, Lse->get({At...}), Why))
    return testing::AssertionFailure() << "out_lse: " << Why;
  return testing::AssertionSuccess();
}

/// Uploads, launches with deep checks, waits, downloads.
void launchOn(const mlafix::Kernel &Code,
              const std::vector<mlafix::Arg> &Arguments,
              const std::vector<TestTensor *> &Tensors);

/// That the inputs are as they were, and of the outputs only elements changed.
testing::AssertionResult
nothingElseWritten(const std::vector<const TestTensor *> &Inputs,
                   const std::vector<const TestTensor *> &Outputs);

/// The types that states are stored in.
constexpr Float StateTypes[] = {Float::BF16, Float::F16, Float::F32};

/// Every shape that the library's kernels are compiled for here.
const std::vector<HeadShape> &libraryShapes();

/// One specialisation of a kernel of the library that merges states.
struct StateCase {
  HeadShape Shape;
  Float Type;
  bool BaseTwo;

  /// "H=16,D=128,T=bf16", and ",B=2"; \p TypeName says whose type it is.
  std::string bindings(const char *TypeName = "T") const;
};
/// All shapes in all types; one shape in base 2 as well.
std::vector<StateCase> stateCases();
std::string caseName(const testing::TestParamInfo<StateCase> &Info);

} // namespace conformance

#endif // MLAFIX_TEST_CONFORMANCE_SIDES_H
