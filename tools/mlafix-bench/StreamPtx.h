//===- StreamPtx.h - PTX of the stream kernels ------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Stream kernels for GPUs, whose time is the roof of a case. They read several
// streams and write one, and do as little else as possible. This code writes
// them as PTX, which the driver assembles. Stream kernels from mlafix's
// compiler would share its weaknesses, and those from nvcc would need nvcc on
// every machine.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_BENCH_STREAMPTX_H
#define MLAFIX_BENCH_STREAMPTX_H

#include <cstdint>
#include <string>
#include <vector>

namespace mlafix::bench {

/// The shape of a stream kernel. Each thread of a block of `threads` accesses
/// `packs` packs of 16 bytes per stream. The distance between these packs is
/// the size of the block.
struct StreamShape {
  int packs, threads;
};

/// Returns the shapes to try for kernels that read `reads` streams.
std::vector<StreamShape> streamShapes(int reads);

/// The point at which a kernel lets the next one start, in a chain with
/// programmatic dependent launch.
enum class Trigger { BeforeWait, AfterWait, AfterLoads };

/// The overlap of a kernel with the preceding one, in a chain with programmatic
/// dependent launch.
struct StreamSchedule {
  Trigger trigger;
  /// The number of bytes to prefetch into L2 before the wait.
  int64_t prefetched;
};

/// Returns the schedules to try. The first is the one that mlafix uses.
std::vector<StreamSchedule> streamSchedules(int reads);
/// Returns a text such as "dependents after the wait, 3 MB prefetched".
std::string toString(const StreamSchedule &schedule);

constexpr int maxStreamReads = 16;

/// Returns the number of packs per stream that a schedule prefetches.
int64_t prefetchedPacks(const StreamSchedule &schedule, int reads, int packs);

/// Returns the name of an entry point, such as "stream_2r_1w_x4".
std::string streamEntry(int reads, int packs);
/// Returns the name of an entry point, such as "stream_2r_1w_x4_after_wait".
std::string dependentStreamEntry(int reads, int packs, Trigger trigger);

/// Returns the PTX of all stream kernels and of an empty kernel, "empty". The
/// parameters are u64: `from`, `to`, the bytes between streams, and the number
/// of 16-byte packs per stream.
std::string streamModule();

/// Returns the PTX of the kernels for dependent launch that read `from` to `to`
/// streams, for sm_90 and later. They have the parameters of streamModule()'s
/// kernels, and then the number of packs per stream to prefetch.
std::string dependentStreamModule(int from = 0, int to = maxStreamReads);

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_STREAMPTX_H
