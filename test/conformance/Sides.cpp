//===- Sides.cpp - rows of partial states to merge ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Sides.h"

#include <algorithm>
#include <cmath>

using namespace conformance;

static uint32_t signBit(Float Type) { return 1u << (8 * byteWidth(Type) - 1); }

/// -0.0, the smallest denormal, Inf, NaN, and ordinary numbers.
static uint32_t oddBits(Float Type, uint64_t Choice) {
  switch (Choice % 6) {
  case 0:
    return signBit(Type);
  case 1:
    return 1;
  case 2:
    return fromDouble(Type, -INFINITY);
  case 3:
    return fromDouble(Type, NAN);
  default:
    return fromDouble(Type, 1.5);
  }
}

Sides::Sides(Float Type, int64_t Rows, int64_t Count, int64_t D, uint64_t Seed,
             int64_t FirstRow)
    : Type(Type), Rows(Rows), Count(Count), D(D), Bits(Rows * Count * D),
      Lses(Rows * Count) {
  for (int64_t Row = 0; Row < Rows; ++Row)
    fillRow(Row, hash(Seed) ^ hash(FirstRow + Row));
}

namespace {
/// The values that a payload is filled with.
enum class Content { Values, AllNaN, AllInf, Odd };

/// One side of a row.
struct OneSide {
  double Lse;
  Content What = Content::Values;
};
} // namespace

/// Side `I` of a row of a mix, whose lse would be `Lse` were it an ordinary
/// one.
static OneSide mixSide(Mix What, int64_t I, int64_t Chosen, double Center,
                       double Lse) {
  double Empty = I % 2 ? INFINITY : -INFINITY;
  switch (What) {
  case Mix::AllLive:
  case Mix::HugeLse:
  case Mix::Count:
    break;
  case Mix::AllEmpty:
    return {Empty, I % 3 ? Content::AllNaN : Content::AllInf};
  case Mix::OneLive:
    return I == Chosen ? OneSide{Lse, Content::Odd}
                       : OneSide{Empty, Content::AllNaN};
  case Mix::HalfEmpty:
    if (I % 2 == Chosen % 2)
      return {-INFINITY, Content::AllInf};
    break;
  case Mix::OneDominates:
    if (I != Chosen)
      return {Lse - 2000, Content::AllNaN};
    break;
  case Mix::Cancelling:
    return {Center};
  case Mix::FaultyLse:
    return {I == Chosen ? NAN : Lse};
  }
  return {Lse};
}

void Sides::fillRow(int64_t Row, uint64_t Seed) {
  Random R(Seed);
  Mix What = Mix(R.below(uint64_t(Mix::Count)));
  double Center = R.uniform(-20, 20);
  if (What == Mix::HugeLse)
    Center += Center > 0 ? 1e5 : -1e5;
  int64_t Chosen = Count ? int64_t(R.below(uint64_t(Count))) : 0;
  for (int64_t I = 0; I < Count; ++I) {
    OneSide Side = mixSide(What, I, Chosen, Center, Center + R.uniform(-5, 5));
    Lses[Row * Count + I] = float(Side.Lse);
    // Narrowing is slow: a few values a side are plenty.
    uint32_t Unit[16];
    for (uint32_t &Value : Unit)
      Value = fromDouble(Type, R.uniform(-4, 4));
    for (int64_t E = 0; E < D; ++E) {
      uint32_t &Bit = Bits[(Row * Count + I) * D + E];
      switch (Side.What) {
      case Content::Values:
        Bit = Unit[R.below(16)];
        break;
      case Content::AllNaN:
        Bit = fromDouble(Type, NAN);
        break;
      case Content::AllInf:
        Bit = fromDouble(Type, E % 2 ? INFINITY : -INFINITY);
        break;
      case Content::Odd:
        Bit = oddBits(Type, R.next());
        break;
      }
      if (What == Mix::Cancelling && I % 2)
        Bit = Bits[(Row * Count + I - 1) * D + E] ^ signBit(Type);
    }
  }
}

ExpectedRow Sides::expected(int64_t Row, int64_t First, int64_t Last,
                            Storage As) const {
  std::vector<Side> All;
  for (int64_t I = First; I < Last; ++I)
    All.push_back(side(Row, I));
  return mergeReference(Type, D, All, As);
}

Layout conformance::spread(std::vector<int64_t> Sizes, Spread How, int Operand,
                           bool IsPayload, int64_t ElementBytes) {
  Layout L = Layout::contiguous(Sizes);
  if (How == Spread::Dense)
    return L;
  if (How == Spread::Misaligned) {
    L.Offset = 1;
    return L;
  }
  // Gaps of whole packs keep the aligned variants in use.
  int64_t Gap = How == Spread::Gaps ? (16 + 16 * Operand) / ElementBytes
                                    : 1 + 2 * Operand;
  int64_t Stride = IsPayload ? 1 : 2;
  for (size_t Dim = Sizes.size(); Dim-- > 0;) {
    L.Strides[Dim] = Stride;
    int64_t Extent = std::max<int64_t>(Sizes[Dim], 1) * Stride;
    if (How == Spread::Gaps && IsPayload) // to whole packs
      Extent = (Extent * ElementBytes + 15) / 16 * 16 / ElementBytes;
    Stride = Extent + Gap;
  }
  return L;
}

TestTensor conformance::payloadTensor(Float Type, std::vector<int64_t> Sizes,
                                      Spread How, int Operand) {
  return TestTensor(device(), dtypeOf(Type),
                    spread(std::move(Sizes), How, Operand, /*IsPayload=*/true,
                           int64_t(byteWidth(Type))));
}

TestTensor conformance::lseTensor(std::vector<int64_t> Sizes, Spread How,
                                  int Operand) {
  return TestTensor(
      device(), MLAFIX_F32,
      spread(std::move(Sizes), How, Operand, /*IsPayload=*/false, 4));
}

void conformance::launchOn(const mlafix::Kernel &Code,
                           const std::vector<mlafix::Arg> &Arguments,
                           const std::vector<TestTensor *> &Tensors) {
  for (TestTensor *Tensor : Tensors)
    Tensor->upload();
  Code.launch(Arguments, device().handle(), device().stream(), LaunchFlags);
  device().synchronize();
  for (TestTensor *Tensor : Tensors)
    Tensor->download();
}

testing::AssertionResult conformance::nothingElseWritten(
    const std::vector<const TestTensor *> &Inputs,
    const std::vector<const TestTensor *> &Outputs) {
  for (size_t I = 0; I < Inputs.size(); ++I)
    if (std::string Why = Inputs[I]->unchanged(); !Why.empty())
      return testing::AssertionFailure()
             << "input " << I << " was written: " << Why;
  for (size_t I = 0; I < Outputs.size(); ++I)
    if (std::string Why = Outputs[I]->guardsIntact(); !Why.empty())
      return testing::AssertionFailure()
             << "output " << I << ": written beside its elements: " << Why;
  return testing::AssertionSuccess();
}

const std::vector<HeadShape> &conformance::libraryShapes() {
  static const std::vector<HeadShape> Shapes = {
#define MLAFIX_LIBRARY_SHAPE(H, D) {H, D},
#include "LibraryShapes.def"
  };
  return Shapes;
}

std::string StateCase::bindings(const char *TypeName) const {
  return "H=" + std::to_string(Shape.H) + ",D=" + std::to_string(Shape.D) +
         "," + TypeName + "=" + spelling(Type) + (BaseTwo ? ",B=2" : "");
}

std::vector<StateCase> conformance::stateCases() {
  std::vector<StateCase> All;
  for (HeadShape Shape : libraryShapes())
    for (Float Type : StateTypes)
      All.push_back({Shape, Type, false});
  for (Float Type : StateTypes)
    All.push_back({{16, 128}, Type, true});
  return All;
}

std::string
conformance::caseName(const testing::TestParamInfo<StateCase> &Info) {
  return "H" + std::to_string(Info.param.Shape.H) + "_D" +
         std::to_string(Info.param.Shape.D) + "_" + spelling(Info.param.Type) +
         (Info.param.BaseTwo ? "_base2" : "");
}
