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

/// Launches that can be run again: a CUDA graph, or a function.
class Replay {
public:
  virtual ~Replay() = default;
  /// Runs the launches once. Returns the total time in microseconds.
  virtual double time() = 0;
};

/// The arguments of a stream kernel, which moves bytes to measure the roof. A
/// stream is a range of memory here, not a CUDA stream. The kernel reads
/// `reads` streams that follow each other from `from` on, and writes one stream
/// to `to`. Each stream has `bytes` bytes. If `reads` is 0, the kernel only
/// writes.
struct Stream {
  int reads;
  const char *from;
  char *to;
  int64_t bytes; ///< bytes of one stream, a multiple of 16
};

/// The forms that a stream kernel can have: each shape with each schedule.
struct StreamForms {
  std::vector<std::string> shapes;
  std::vector<std::string> schedules = {""};
};

/// One form: the indices of a shape and a schedule in StreamForms, for launches
/// that are dependent or not.
struct StreamForm {
  size_t shape = 0, schedule = 0;
  bool isDependent = false;
};

/// A baseline's function and how to launch it (see Launch).
struct BaselineCall {
  void *function = nullptr;
  uint32_t gridX = 0, gridY = 0, threads = 0;
  bool isDependent = false;
  std::vector<uint64_t> params; ///< the parameters' values, in 8-byte slots
};

/// A device on which cases run. A function that fails throws
/// std::runtime_error.
class Machine {
public:
  virtual ~Machine() = default;

  virtual mlafix_device device() const = 0;
  virtual std::string name() const = 0;
  /// Returns the size of the last-level cache in bytes. By default, the buffers
  /// of a case cover three times this size.
  virtual int64_t cacheBytes() const = 0;
  virtual int64_t freeBytes() const = 0;

  virtual void *allocate(int64_t bytes) = 0;
  virtual void free(void *data) noexcept = 0;
  virtual void upload(void *to, const void *from, int64_t bytes) = 0;
  virtual void download(void *to, const void *from, int64_t bytes) = 0;
  /// Copies between device addresses. May return before the copy is complete.
  virtual void copy(void *to, const void *from, int64_t bytes) = 0;
  virtual void fill(void *to, unsigned char byte, int64_t bytes) = 0;

  /// Returns the CUDA stream to launch on, or null on the CPU.
  virtual void *stream() const = 0;
  virtual void synchronize() = 0;
  virtual std::unique_ptr<Replay> record(std::function<void()> launches) = 0;

  /// Returns the forms of a stream kernel. The fastest of them is the roof.
  virtual StreamForms streamForms(int reads, bool isDependent) const = 0;
  virtual void runStream(const Stream &stream, const StreamForm &form) = 0;
  /// Returns true if a launch may start while the preceding one ends.
  virtual bool hasDependentLaunch() const { return false; }
  /// Returns true if a launch takes time even if its kernel does nothing.
  /// launchEmpty() launches such a kernel, to measure this time.
  virtual bool hasEmptyLaunch() const { return false; }
  virtual void launchEmpty() {}

  /// The next two functions load the file of baselines and look a function up.
  /// findBaseline() returns null if there is no such function.
  virtual void loadBaselines(const std::string &path);
  virtual void *findBaseline(const std::string &name) { return nullptr; }
  virtual void launchBaseline(const BaselineCall &call) {}
};

/// Opens the CPU or a CUDA device. Throws with a sentence about the error.
std::unique_ptr<Machine> openMachine(mlafix_device device);
std::unique_ptr<Machine> openCudaMachine(int ordinal);

/// Memory on a machine. The destructor frees it.
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
