//===- StreamPtx.cpp - PTX of the stream kernels --------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "StreamPtx.h"

#include <algorithm>
#include <sstream>

using namespace mlafix::bench;

namespace {

const int packCounts[] = {1, 2, 4};
const int blockSizes[] = {128, 256, 512, 1024};
const Trigger triggers[] = {Trigger::AfterWait, Trigger::BeforeWait,
                            Trigger::AfterLoads};
/// The maximum number of packs that a thread loads at a time. More of them
/// would only cost registers.
constexpr int maxInFlight = 16;
/// The maximum number of addresses to compute before the wait. More of them
/// would only cost registers.
constexpr int maxEarlyAddresses = 8;

const char *nameOf(Trigger trigger) {
  switch (trigger) {
  case Trigger::BeforeWait:
    return "before_wait";
  case Trigger::AfterWait:
    return "after_wait";
  case Trigger::AfterLoads:
    return "after_loads";
  }
  return "";
}

bool isWorthTrying(int reads, int packs) {
  return packs == 1 || reads * packs <= maxInFlight;
}

/// Returns the number of streams for which a thread computes addresses before
/// the wait.
int countEarlyStreams(int reads, int packs) {
  return std::min(std::max(reads, 1), std::max(maxEarlyAddresses / packs, 1));
}

/// Writes one stream kernel in PTX. %r0 to %r3 are indices; four data registers
/// per pack and stream follow. %d0 is `from`, %d1 `to`, %d2 the distance
/// between streams, %d3 the number of packs, and %d4 the first pack. The byte
/// offsets of the packs start at %d8, and the addresses follow.
class KernelWriter {
public:
  KernelWriter(std::ostream &out, int reads, int packs)
      : out(out), reads(reads), packs(packs) {}

  void write() {
    open(streamEntry(reads, packs), "");
    writeOffsets();
    writeLoads();
    writeStores();
    out << "  ret;\n}\n";
  }

  void writeDependent(Trigger trigger) {
    open(dependentStreamEntry(reads, packs, trigger), ", .param .u64 early");
    writeOffsets();
    writeAddresses();
    writePrefetch();
    const char *start = "  griddepcontrol.launch_dependents;\n";
    if (trigger == Trigger::BeforeWait)
      out << start;
    writeWait();
    if (trigger == Trigger::AfterWait)
      out << start;
    numEarly = early();
    writeLoads();
    if (trigger == Trigger::AfterLoads)
      out << start;
    writeStores();
    out << "  ret;\n}\n";
  }

private:
  int data(int p, int r) const { return 4 + 4 * (p * std::max(reads, 1) + r); }
  std::string registers(int p, int r) const {
    std::ostringstream text;
    int first = data(p, r);
    text << "{%r" << first << ", %r" << first + 1 << ", %r" << first + 2
         << ", %r" << first + 3 << "}";
    return text.str();
  }
  std::string offset(int p) const { return "%d" + std::to_string(8 + p); }
  /// Returns the register with the address of pack p in stream r. The streams
  /// are those that are read, or the one that is written if none is read.
  std::string address(int p, int r) const {
    return "%d" + std::to_string(8 + packs * (1 + r) + p);
  }
  int early() const { return countEarlyStreams(reads, packs); }

  void open(const std::string &entry, const char *more) {
    int numWide = 8 + packs * (1 + std::max(reads, 1));
    out << ".visible .entry " << entry
        << "(.param .u64 from, .param .u64 to, .param .u64 step, "
           ".param .u64 count"
        << more << ")\n{\n"
        << "  .reg .pred %p<" << packs << ">;\n  .reg .pred %q<2>;\n"
        << "  .reg .b32 %r<" << data(packs, 0) << ">;\n  .reg .b64 %d<"
        << numWide << ">;\n";
  }

  void writeOffsets() {
    out << "  ld.param.u64 %d0, [from];\n  cvta.to.global.u64 %d0, %d0;\n"
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
          << "  shl.b64 " << offset(p) << ", %d4, 4;\n"
          << "  add.u64 %d4, %d4, %d6;\n";
  }

  void writeAddress(int p, int r) {
    if (r == 0)
      out << "  add.u64 " << address(p, r) << ", " << (reads ? "%d0" : "%d1")
          << ", " << offset(p) << ";\n";
    else
      out << "  add.u64 " << address(p, r) << ", " << address(p, r - 1)
          << ", %d2;\n";
  }

  void writeAddresses() {
    for (int r = 0; r < early(); ++r)
      for (int p = 0; p < packs; ++p)
        writeAddress(p, r);
  }

  /// Prefetches the first packs of each stream whose addresses are already
  /// computed. The kernel's parameter `early` is the number of these packs.
  void writePrefetch() {
    if (!reads)
      return;
    out << "  ld.param.u64 %d7, [early];\n  shl.b64 %d7, %d7, 4;\n";
    for (int p = 0; p < packs; ++p) {
      out << "  setp.lt.u64 %q0, " << offset(p) << ", %d7;\n"
          << "  and.pred %q0, %q0, %p" << p << ";\n";
      for (int r = 0; r < early(); ++r)
        out << "  @%q0 prefetch.global.L2 [" << address(p, r) << "];\n";
    }
  }

  /// Writes the wait so that it depends on the addresses. ptxas would otherwise
  /// schedule the wait before the arithmetic that computes the addresses. One
  /// of the two instructions waits if the predicate %q1 is true, the other if
  /// it is false.
  void writeWait() {
    out << "  mov.u64 %d7, " << address(0, 0) << ";\n";
    for (int r = 0; r < early(); ++r)
      for (int p = 0; p < packs; ++p)
        if (r || p)
          out << "  or.b64 %d7, %d7, " << address(p, r) << ";\n";
    out << "  setp.ne.u64 %q1, %d7, 0;\n  @%q1 griddepcontrol.wait;\n"
        << "  @!%q1 griddepcontrol.wait;\n";
  }

  void writeLoads() {
    for (int r = 0; r < reads; ++r)
      for (int p = 0; p < packs; ++p) {
        if (r >= numEarly)
          writeAddress(p, r);
        out << "  @%p" << p << " ld.global.v4.u32 " << registers(p, r) << ", ["
            << address(p, r) << "];\n";
      }
  }

  void writeStores() {
    for (int p = 0; p < packs; ++p) {
      for (int lane = 0; lane < 4; ++lane) {
        int sum = data(p, 0) + lane;
        if (!reads)
          out << "  mov.u32 %r" << sum << ", " << 0x3f803f80 + lane << ";\n";
        for (int r = 1; r < reads; ++r)
          out << "  xor.b32 %r" << sum << ", %r" << sum << ", %r"
              << data(p, r) + lane << ";\n";
      }
      out << "  add.u64 %d7, %d1, " << offset(p) << ";\n"
          << "  @%p" << p << " st.global.v4.u32 [%d7], " << registers(p, 0)
          << ";\n";
    }
  }

  std::ostream &out;
  int reads, packs;
  int numEarly = 0; ///< number of streams whose addresses are already computed
};

} // namespace

std::vector<StreamShape> mlafix::bench::streamShapes(int reads) {
  std::vector<StreamShape> shapes;
  for (int packs : packCounts)
    for (int threads : blockSizes)
      // A thread in a block of 1024 has at most 64 registers.
      if (isWorthTrying(reads, packs) && (threads < 1024 || reads * packs <= 8))
        shapes.push_back({packs, threads});
  return shapes;
}

std::vector<StreamSchedule> mlafix::bench::streamSchedules(int reads) {
  std::vector<StreamSchedule> schedules;
  // Prefetch about what memory can load while the preceding grid ends, or
  // nothing, or everything.
  for (int64_t prefetched : {int64_t(3) << 20, int64_t(0), INT64_MAX})
    for (Trigger trigger : triggers)
      if (reads || prefetched == 0)
        schedules.push_back({trigger, prefetched});
  return schedules;
}

std::string mlafix::bench::toString(const StreamSchedule &schedule) {
  std::string text =
      schedule.trigger == Trigger::BeforeWait  ? "dependents before the wait"
      : schedule.trigger == Trigger::AfterWait ? "dependents after the wait"
                                               : "dependents after the loads";
  if (schedule.prefetched == 0)
    return text;
  return text + ", " +
         (schedule.prefetched == INT64_MAX
              ? std::string("all")
              : std::to_string(schedule.prefetched >> 20) + " MB") +
         " prefetched";
}

int64_t mlafix::bench::prefetchedPacks(const StreamSchedule &schedule,
                                       int reads, int packs) {
  // The shift that turns packs into bytes must not overflow.
  int64_t most = INT64_MAX >> 8;
  return std::min(schedule.prefetched / 16 / countEarlyStreams(reads, packs),
                  most);
}

std::string mlafix::bench::streamEntry(int reads, int packs) {
  return "stream_" + std::to_string(reads) + "r_1w_x" + std::to_string(packs);
}

std::string mlafix::bench::dependentStreamEntry(int reads, int packs,
                                                Trigger trigger) {
  return streamEntry(reads, packs) + "_" + nameOf(trigger);
}

std::string mlafix::bench::streamModule() {
  std::ostringstream out;
  out << ".version 7.0\n.target sm_75\n.address_size 64\n"
      << ".visible .entry empty()\n{\n  ret;\n}\n";
  for (int reads = 0; reads <= maxStreamReads; ++reads)
    for (int packs : packCounts)
      if (isWorthTrying(reads, packs))
        KernelWriter(out, reads, packs).write();
  return out.str();
}

std::string mlafix::bench::dependentStreamModule(int from, int to) {
  std::ostringstream out;
  out << ".version 7.8\n.target sm_90\n.address_size 64\n";
  for (int reads = from; reads <= to; ++reads)
    for (int packs : packCounts)
      for (Trigger trigger : triggers)
        if (isWorthTrying(reads, packs))
          KernelWriter(out, reads, packs).writeDependent(trigger);
  return out.str();
}
