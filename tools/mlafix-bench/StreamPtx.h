//===- StreamPtx.h - PTX of the stream kernels ------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The roof of a GPU: kernels that read so many streams and write one, with as
// little besides as possible. They are written out as PTX, for the driver to
// assemble: a roof that came from our own compiler would sink with its
// mistakes, and one that came from nvcc would need it on every machine.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_BENCH_STREAMPTX_H
#define MLAFIX_BENCH_STREAMPTX_H

#include <string>
#include <vector>

namespace mlafix::bench {

/// One form: `packs` accesses of 16 bytes a thread and stream, side by side
/// over a block of `threads`.
struct StreamForm {
  int packs, threads;
};

/// The forms worth trying for so many streams read.
std::vector<StreamForm> streamForms(int reads);

constexpr int maxStreamReads = 16;

/// "stream_2r_1w_x4".
std::string streamEntry(int reads, int packs);

/// A module of every stream kernel, and of one that does nothing, "empty".
/// Parameters of a stream kernel: u64 from, u64 to, u64 bytes of one stream
/// and from one to the next, u64 packs of 16 bytes of one stream.
std::string streamModule();

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_STREAMPTX_H
