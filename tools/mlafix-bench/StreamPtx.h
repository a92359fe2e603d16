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

/// One shape: `packs` accesses of 16 bytes a thread and stream, side by side
/// over a block of `threads`.
struct StreamShape {
  int packs, threads;
};

/// The shapes worth trying for so many streams read.
std::vector<StreamShape> streamShapes(int reads);

/// Where a kernel of a chain with programmatic dependent launch lets the next
/// one start.
enum class Trigger { BeforeWait, AfterWait, AfterLoads };

/// How a kernel meets the preceding grid of such a chain.
struct StreamSchedule {
  Trigger trigger;
  /// Bytes that are prefetched into the second level cache ahead of the wait;
  /// those of the first blocks.
  int64_t prefetched;
};

/// The schedules worth trying, that of our own kernels first.
std::vector<StreamSchedule> streamSchedules(int reads);
/// "dependents at the wait, 3 MB prefetched".
std::string toString(const StreamSchedule &schedule);

constexpr int maxStreamReads = 16;

/// Packs of each stream that a schedule prefetches.
int64_t prefetchedPacks(const StreamSchedule &schedule, int reads, int packs);

/// "stream_2r_1w_x4".
std::string streamEntry(int reads, int packs);
/// "stream_2r_1w_x4_after_wait".
std::string dependentStreamEntry(int reads, int packs, Trigger trigger);

/// A module of every stream kernel, and of one that does nothing, "empty".
/// Parameters of a stream kernel: u64 from, u64 to, u64 bytes of one stream
/// and from one to the next, u64 packs of 16 bytes of one stream.
std::string streamModule();

/// A module, for sm_90 and later, of the kernels for chains with dependent
/// launch that read `from` to `to` streams. The same parameters, and u64 packs
/// of a stream that are prefetched.
std::string dependentStreamModule(int from = 0, int to = maxStreamReads);

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_STREAMPTX_H
