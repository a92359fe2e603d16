//===- Blank.cpp - rows of which some are blanked -------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Blank.h"

using namespace conformance;

BlankRows::BlankRows(const StateCase &Case, int64_t N, Spread How,
                     bool RowsFirst)
    : Case(Case), N(N), RowsFirst(RowsFirst),
      Out(payloadTensor(Case.Type, {N, Case.Shape.H, Case.Shape.D}, How, 0)),
      Lse(lseTensor(RowsFirst ? std::vector<int64_t>{N, Case.Shape.H}
                              : std::vector<int64_t>{Case.Shape.H, N},
                    How, 0)) {
  refill();
}

uint32_t BlankRows::payloadBits(int64_t T, int64_t H, int64_t I) const {
  uint32_t Bits = uint32_t(hash((T * Case.Shape.H + H) * Case.Shape.D + I + 1));
  return Case.Type == Float::F32 ? Bits : Bits & 0xffff;
}

uint32_t BlankRows::lseBits(int64_t T, int64_t H) const {
  return uint32_t(hash(T * 131 + H + 5));
}

void BlankRows::refill() {
  for (int64_t T = 0; T < N; ++T)
    for (int64_t H = 0; H < Case.Shape.H; ++H) {
      if (RowsFirst)
        Lse.set({T, H}, lseBits(T, H));
      else
        Lse.set({H, T}, lseBits(T, H));
      for (int64_t I = 0; I < Case.Shape.D; ++I)
        Out.set({T, H, I}, payloadBits(T, H, I));
    }
  Out.upload();
  Lse.upload();
}

testing::AssertionResult
BlankRows::check(const std::function<bool(int64_t)> &IsDead, bool WithOut,
                 bool WithLse) const {
  for (int64_t T = 0; T < N; ++T)
    for (int64_t H = 0; H < Case.Shape.H; ++H) {
      auto Differs = [&](const std::string &What, uint32_t Expected,
                         uint32_t Got) {
        return testing::AssertionFailure()
               << (IsDead(T) ? "dead" : "live") << " row (token " << T
               << ", head " << H << "): " << What << ": expected bits 0x"
               << std::hex << Expected << ", got 0x" << Got;
      };
      for (int64_t I = 0; I < Case.Shape.D; ++I) {
        uint32_t Expected = WithOut && IsDead(T) ? 0 : payloadBits(T, H, I);
        if (uint32_t Got = Out.get({T, H, I}); Got != Expected)
          return Differs("out[" + std::to_string(I) + "]", Expected, Got);
      }
      uint32_t Expected = WithLse && IsDead(T) ? 0xff800000u : lseBits(T, H);
      if (uint32_t Got = RowsFirst ? Lse.get({T, H}) : Lse.get({H, T});
          Got != Expected)
        return Differs("lse", Expected, Got);
    }
  return nothingElseWritten({}, {&Out, &Lse});
}

TestTensor conformance::intTensor(const std::vector<int32_t> &Values) {
  TestTensor Tensor(device(), MLAFIX_I32,
                    Layout::contiguous({int64_t(Values.size())}));
  for (size_t I = 0; I < Values.size(); ++I)
    Tensor.setInt({int64_t(I)}, Values[I]);
  return Tensor;
}
