//===- StreamPtx.h - PTX of the stream kernels ------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The roof of a GPU: kernels that read so many streams and write one, with as
// little besides as possible. They are written out as PTX, for the driver to
// assemble: a roof from the library's own compiler would share its weaknesses,
// and one from nvcc would need nvcc on every machine.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_BENCH_STREAMPTX_H
#define MLAFIX_BENCH_STREAMPTX_H

#include <cstdint>
#include <string>
#include <vector>

namespace mlafix::bench {

/// A shape: each thread makes `packs` accesses of 16 bytes per stream; packs
/// are strided by the block of `threads`.
struct StreamShape {
  int packs, threads;
};

/// The shapes to try for a number of streams read.
std::vector<StreamShape> streamShapes(int reads);

/// The point at which a kernel in a chain with programmatic dependent launch
/// lets the next one start.
enum class Trigger { BeforeWait, AfterWait, AfterLoads };

/// The overlap of a kernel with its predecessor in such a chain.
struct StreamSchedule {
  Trigger trigger;
  /// Bytes of the first blocks that are prefetched into L2 before the wait.
  int64_t prefetched;
};

/// The schedules to try, mlafix's own first.
std::vector<StreamSchedule> streamSchedules(int reads);
/// "dependents at the wait, 3 MB prefetched".
std::string toString(const StreamSchedule &schedule);

constexpr int maxStreamReads = 16;

/// Packs per stream that a schedule prefetches.
int64_t prefetchedPacks(const StreamSchedule &schedule, int reads, int packs);

/// "stream_2r_1w_x4".
std::string streamEntry(int reads, int packs);
/// "stream_2r_1w_x4_after_wait".
std::string dependentStreamEntry(int reads, int packs, Trigger trigger);

/// PTX of every stream kernel and of an empty one, "empty". Parameters: u64
/// from, u64 to, u64 bytes between streams, u64 packs of 16 bytes per stream.
std::string streamModule();

/// PTX for sm_90 and later of the kernels for dependent launch that read `from`
/// to `to` streams. Same parameters, and u64 packs per stream to prefetch.
std::string dependentStreamModule(int from = 0, int to = maxStreamReads);

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_STREAMPTX_H
