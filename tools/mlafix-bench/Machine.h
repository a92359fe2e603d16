//===- Machine.h - Memory, streams and clocks of a CPU or a GPU -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_BENCH_MACHINE_H
#define MLAFIX_BENCH_MACHINE_H

#include "mlafix/runtime.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mlafix::bench {

/// Launches made ready to be run again and again: a CUDA graph, or a function.
class Replay {
public:
  virtual ~Replay() = default;
  /// Runs them once; microseconds for all of them.
  virtual double time() = 0;
};

/// A stream kernel: `reads` streams of `bytes` each, one after the other from
/// `from` on, into one of the same size at `to`. None to read: a fill.
struct Stream {
  int reads;
  const char *from;
  char *to;
  int64_t bytes; ///< of one stream; a multiple of 16
};

/// The forms of a stream kernel: every shape with every schedule.
struct StreamForms {
  std::vector<std::string> shapes;
  std::vector<std::string> schedules = {""};
};

/// One of them. The chain has dependent launch, or not: that is asked apart.
struct StreamForm {
  size_t shape = 0, schedule = 0;
  bool isDependent = false;
};

/// A function of a baseline: see Launch.
struct BaselineCall {
  void *function = nullptr;
  uint32_t gridX = 0, gridY = 0, threads = 0;
  bool isDependent = false;
  std::vector<uint64_t> params; ///< one 8-byte slot each
};

/// Where cases run. Every failure throws std::runtime_error.
class Machine {
public:
  virtual ~Machine() = default;

  virtual mlafix_device device() const = 0;
  virtual std::string name() const = 0;
  /// The last level of cache, in bytes: what buffers are rotated past.
  virtual int64_t cacheBytes() const = 0;
  virtual int64_t freeBytes() const = 0;

  virtual void *allocate(int64_t bytes) = 0;
  virtual void free(void *data) noexcept = 0;
  virtual void upload(void *to, const void *from, int64_t bytes) = 0;
  virtual void download(void *to, const void *from, int64_t bytes) = 0;
  /// From one address of the device to another; may return before it is done.
  virtual void copy(void *to, const void *from, int64_t bytes) = 0;
  virtual void fill(void *to, unsigned char byte, int64_t bytes) = 0;

  /// The stream to launch on: null on the CPU.
  virtual void *stream() const = 0;
  virtual void synchronize() = 0;
  virtual std::unique_ptr<Replay> record(std::function<void()> launches) = 0;

  /// The forms a stream kernel comes in: the roof is the best of them.
  virtual StreamForms streamForms(int reads, bool isDependent) const = 0;
  virtual void runStream(const Stream &stream, const StreamForm &form) = 0;
  /// True if a launch may begin while the preceding one ends.
  virtual bool hasDependentLaunch() const { return false; }
  /// A kernel that does nothing, where launches have a cost of their own.
  virtual bool hasEmptyLaunch() const { return false; }
  virtual void launchEmpty() {}

  /// Baselines. The function of that name, or null.
  virtual void loadBaselines(const std::string &path);
  virtual void *findBaseline(const std::string &name) { return nullptr; }
  virtual void launchBaseline(const BaselineCall &call) {}
};

/// "cpu" or "cuda:N". Throws with a sentence that says what is wrong.
std::unique_ptr<Machine> openMachine(mlafix_device device);
std::unique_ptr<Machine> openCpuMachine();
std::unique_ptr<Machine> openCudaMachine(int ordinal);

/// Memory that is given back with its owner.
class Arena {
public:
  Arena(Machine &on, int64_t bytes) : on(on), data(on.allocate(bytes)) {}
  Arena(const Arena &) = delete;
  ~Arena() { on.free(data); }
  char *base() const { return static_cast<char *>(data); }

private:
  Machine &on;
  void *data;
};

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_MACHINE_H
