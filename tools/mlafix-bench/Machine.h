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

/// Launches prepared for replay: a CUDA graph, or a function.
class Replay {
public:
  virtual ~Replay() = default;
  /// Runs them once; returns the total in microseconds.
  virtual double time() = 0;
};

/// A stream kernel: reads `reads` consecutive streams of `bytes` each, starting
/// at `from`, and writes one of that size at `to`. With 0 reads it fills.
struct Stream {
  int reads;
  const char *from;
  char *to;
  int64_t bytes; ///< of one stream; a multiple of 16
};

/// The forms of a stream kernel: all shapes x all schedules.
struct StreamForms {
  std::vector<std::string> shapes;
  std::vector<std::string> schedules = {""};
};

/// One form. Dependent launch is a separate choice.
struct StreamForm {
  size_t shape = 0, schedule = 0;
  bool isDependent = false;
};

/// A baseline's function; see Launch.
struct BaselineCall {
  void *function = nullptr;
  uint32_t gridX = 0, gridY = 0, threads = 0;
  bool isDependent = false;
  std::vector<uint64_t> params; ///< one 8-byte slot each
};

/// A device on which cases run. Every failure throws std::runtime_error.
class Machine {
public:
  virtual ~Machine() = default;

  virtual mlafix_device device() const = 0;
  virtual std::string name() const = 0;
  /// Size of the last-level cache in bytes; buffers rotate past it.
  virtual int64_t cacheBytes() const = 0;
  virtual int64_t freeBytes() const = 0;

  virtual void *allocate(int64_t bytes) = 0;
  virtual void free(void *data) noexcept = 0;
  virtual void upload(void *to, const void *from, int64_t bytes) = 0;
  virtual void download(void *to, const void *from, int64_t bytes) = 0;
  /// Copies between device addresses; may return before it is complete.
  virtual void copy(void *to, const void *from, int64_t bytes) = 0;
  virtual void fill(void *to, unsigned char byte, int64_t bytes) = 0;

  /// The stream to launch on; null on the CPU.
  virtual void *stream() const = 0;
  virtual void synchronize() = 0;
  virtual std::unique_ptr<Replay> record(std::function<void()> launches) = 0;

  /// The forms of a stream kernel; the roof is the fastest.
  virtual StreamForms streamForms(int reads, bool isDependent) const = 0;
  virtual void runStream(const Stream &stream, const StreamForm &form) = 0;
  /// True if a launch may start while the preceding one ends.
  virtual bool hasDependentLaunch() const { return false; }
  /// True if launches have a cost of their own, which an empty kernel measures.
  virtual bool hasEmptyLaunch() const { return false; }
  virtual void launchEmpty() {}

  /// Baselines: loads the file; finds a function, or null.
  virtual void loadBaselines(const std::string &path);
  virtual void *findBaseline(const std::string &name) { return nullptr; }
  virtual void launchBaseline(const BaselineCall &call) {}
};

/// Opens "cpu" or "cuda:N". Throws with a sentence about the error.
std::unique_ptr<Machine> openMachine(mlafix_device device);
std::unique_ptr<Machine> openCpuMachine();
std::unique_ptr<Machine> openCudaMachine(int ordinal);

/// Memory that is freed with its owner.
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
