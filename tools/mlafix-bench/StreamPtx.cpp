//===- StreamPtx.cpp - PTX of the stream kernels --------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "StreamPtx.h"

#include <sstream>

using namespace mlafix::bench;

namespace {

const int packCounts[] = {1, 2, 4};
const int blockSizes[] = {128, 256, 512, 1024};
/// Reads in flight beyond this only cost registers.
constexpr int maxInFlight = 16;

std::string registers(int first) {
  std::ostringstream text;
  text << "{%r" << first << ", %r" << first + 1 << ", %r" << first + 2 << ", %r"
       << first + 3 << "}";
  return text.str();
}

/// Registers: %r0-%r3 indices; then, for pack p and stream r, four from
/// 4 + 4 * (p * max(reads, 1) + r) on. %d0 from, %d1 to, %d2 step from stream
/// to stream, %d3 count, %d4 first pack; %d(8 + p) byte offsets.
void writeKernel(std::ostream &out, int reads, int packs) {
  int streams = reads ? reads : 1;
  auto data = [&](int p, int r) { return 4 + 4 * (p * streams + r); };
  out << ".visible .entry " << streamEntry(reads, packs)
      << "(.param .u64 from, .param .u64 to, .param .u64 step, "
         ".param .u64 count)\n{\n"
      << "  .reg .pred %p<" << packs << ">;\n  .reg .b32 %r<" << data(packs, 0)
      << ">;\n  .reg .b64 %d<" << 9 + packs << ">;\n"
      << "  ld.param.u64 %d0, [from];\n  cvta.to.global.u64 %d0, %d0;\n"
      << "  ld.param.u64 %d1, [to];\n  cvta.to.global.u64 %d1, %d1;\n"
      << "  ld.param.u64 %d2, [step];\n  ld.param.u64 %d3, [count];\n"
      << "  mov.u32 %r0, %ctaid.x;\n  mov.u32 %r1, %ntid.x;\n"
      << "  mov.u32 %r2, %tid.x;\n"
      << "  mul.lo.u32 %r3, %r1, " << packs << ";\n"
      << "  mul.wide.u32 %d4, %r0, %r3;\n"
      << "  cvt.u64.u32 %d5, %r2;\n  add.u64 %d4, %d4, %d5;\n"
      << "  cvt.u64.u32 %d6, %r1;\n";
  for (int p = 0; p < packs; ++p)
    out << "  setp.lt.u64 %p" << p << ", %d4, %d3;\n"
        << "  shl.b64 %d" << 8 + p << ", %d4, 4;\n"
        << "  add.u64 %d4, %d4, %d6;\n";
  for (int r = 0; r < reads; ++r) {
    for (int p = 0; p < packs; ++p)
      out << "  add.u64 %d7, %d0, %d" << 8 + p << ";\n"
          << "  @%p" << p << " ld.global.v4.u32 " << registers(data(p, r))
          << ", [%d7];\n";
    out << "  add.u64 %d0, %d0, %d2;\n";
  }
  for (int p = 0; p < packs; ++p) {
    for (int lane = 0; lane < 4; ++lane) {
      int sum = data(p, 0) + lane;
      if (!reads)
        out << "  mov.u32 %r" << sum << ", " << 0x3f803f80 + lane << ";\n";
      for (int r = 1; r < reads; ++r)
        out << "  xor.b32 %r" << sum << ", %r" << sum << ", %r"
            << data(p, r) + lane << ";\n";
    }
    out << "  add.u64 %d7, %d1, %d" << 8 + p << ";\n"
        << "  @%p" << p << " st.global.v4.u32 [%d7], " << registers(data(p, 0))
        << ";\n";
  }
  out << "  ret;\n}\n";
}

bool isWorthTrying(int reads, int packs) {
  return packs == 1 || reads * packs <= maxInFlight;
}

} // namespace

std::vector<StreamForm> mlafix::bench::streamForms(int reads) {
  std::vector<StreamForm> forms;
  for (int packs : packCounts)
    for (int threads : blockSizes)
      // A thread of 1024 may hold 64 registers.
      if (isWorthTrying(reads, packs) && (threads < 1024 || reads * packs <= 8))
        forms.push_back({packs, threads});
  return forms;
}

std::string mlafix::bench::streamEntry(int reads, int packs) {
  return "stream_" + std::to_string(reads) + "r_1w_x" + std::to_string(packs);
}

std::string mlafix::bench::streamModule() {
  std::ostringstream out;
  out << ".version 7.0\n.target sm_75\n.address_size 64\n"
      << ".visible .entry empty()\n{\n  ret;\n}\n";
  for (int reads = 0; reads <= maxStreamReads; ++reads)
    for (int packs : packCounts)
      if (isWorthTrying(reads, packs))
        writeKernel(out, reads, packs);
  return out.str();
}
