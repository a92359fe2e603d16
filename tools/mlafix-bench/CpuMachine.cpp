//===- CpuMachine.cpp - The CPU, its stream loops and its clock -----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "mlafix/runtime.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <new>
#include <stdexcept>
#include <sys/mman.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

using namespace mlafix::bench;

namespace {

/// A pack of 16 bytes, loaded or stored at once.
typedef uint64_t Pack __attribute__((vector_size(16)));

constexpr int64_t chunkBytes = 64 << 10;

template <bool Streaming> void store(Pack *to, Pack value) {
#if defined(__SSE2__)
  if (Streaming) {
    _mm_stream_si128(reinterpret_cast<__m128i *>(to),
                     reinterpret_cast<const __m128i &>(value));
    return;
  }
#endif
  *to = value;
}

/// Processes packs [begin, end) of a stream kernel: writes the xor of all
/// inputs.
template <bool Streaming, int Reads>
void streamRange(const Stream &stream, int64_t begin, int64_t end) {
  int64_t packs = stream.bytes / 16;
  auto *from = reinterpret_cast<const Pack *>(stream.from);
  auto *to = reinterpret_cast<Pack *>(stream.to);
  for (int64_t i = begin; i < end; ++i) {
    Pack value = {1, 2};
    // `Reads` is -1 if streamChunks() has no case for this number of streams.
    int reads = Reads < 0 ? stream.reads : Reads;
    for (int r = 0; r < reads; ++r)
      value ^= from[r * packs + i];
    store<Streaming>(to + i, value);
  }
#if defined(__SSE2__)
  if (Streaming)
    _mm_sfence();
#endif
}

template <bool Streaming>
void streamChunks(void *context, int64_t begin, int64_t end) {
  const auto &stream = *static_cast<const Stream *>(context);
  begin *= chunkBytes / 16;
  end = std::min(end * (chunkBytes / 16), stream.bytes / 16);
  switch (stream.reads) {
  case 0:
    return streamRange<Streaming, 0>(stream, begin, end);
  case 1:
    return streamRange<Streaming, 1>(stream, begin, end);
  case 2:
    return streamRange<Streaming, 2>(stream, begin, end);
  case 4:
    return streamRange<Streaming, 4>(stream, begin, end);
  default:
    return streamRange<Streaming, -1>(stream, begin, end);
  }
}

class CpuReplay : public Replay {
public:
  explicit CpuReplay(std::function<void()> launches)
      : launches(std::move(launches)) {}
  double time() override {
    auto begin = std::chrono::steady_clock::now();
    launches();
    std::chrono::duration<double, std::micro> spent =
        std::chrono::steady_clock::now() - begin;
    return spent.count();
  }

private:
  std::function<void()> launches;
};

class CpuMachine : public Machine {
public:
  mlafix_device device() const override { return {MLAFIX_CPU, 0}; }
  std::string name() const override {
    std::ifstream file("/proc/cpuinfo");
    std::string model = "a CPU";
    for (std::string line; std::getline(file, line);)
      if (line.compare(0, 10, "model name") == 0 &&
          line.find(": ") != line.npos) {
        model = line.substr(line.find(": ") + 2);
        break;
      }
    int threads = mlafix_cpu_threads();
    return model + ", " + std::to_string(threads) +
           (threads == 1 ? " thread" : " threads");
  }
  int64_t cacheBytes() const override {
    return std::max<int64_t>(mlafix_cpu_cache_bytes(), 8 << 20);
  }
  int64_t freeBytes() const override {
    std::ifstream file("/proc/meminfo");
    for (std::string line; std::getline(file, line);)
      if (line.compare(0, 13, "MemAvailable:") == 0)
        return std::stoll(line.substr(13)) * 1024;
    return int64_t(1) << 30;
  }

  void *allocate(int64_t bytes) override {
    void *data = nullptr;
    // Use huge pages if they are available, as a tuned host would.
    constexpr size_t page = 2 << 20;
    if (posix_memalign(&data, page, std::max<int64_t>(bytes, 1)))
      throw std::bad_alloc();
    madvise(data, bytes, MADV_HUGEPAGE);
    return data;
  }
  void free(void *data) noexcept override { std::free(data); }
  void upload(void *to, const void *from, int64_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void download(void *to, const void *from, int64_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void copy(void *to, const void *from, int64_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void fill(void *to, unsigned char byte, int64_t bytes) override {
    std::memset(to, byte, bytes);
  }
  void *stream() const override { return nullptr; }
  void synchronize() override {}
  std::unique_ptr<Replay> record(std::function<void()> launches) override {
    return std::make_unique<CpuReplay>(std::move(launches));
  }

  StreamForms streamForms(int, bool) const override {
    return {{"ordinary stores", "streaming stores"}};
  }
  // The stream kernel runs on the same threads as mlafix's kernels.
  void runStream(const Stream &stream, const StreamForm &form) override {
    int64_t chunks = (stream.bytes + chunkBytes - 1) / chunkBytes;
    mlafix::check(mlafix_run_task(
        chunks, 1, form.shape ? streamChunks<true> : streamChunks<false>,
        const_cast<Stream *>(&stream)));
  }
};

} // namespace

void Machine::loadBaselines(const std::string &path) {
  throw std::runtime_error("--rivals: expected --device cuda:N with \"" + path +
                           "\", got the CPU");
}

std::unique_ptr<Machine> mlafix::bench::openMachine(mlafix_device device) {
  if (device.type == MLAFIX_CPU)
    return std::make_unique<CpuMachine>();
  return openCudaMachine(device.ordinal);
}
