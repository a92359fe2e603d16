//===- Streams.h - what else is on a program's streams ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Copies, fills, events and kernels that are not mlafix's, on the device under
// test. Failures throw std::runtime_error.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TEST_CONFORMANCE_STREAMS_H
#define MLAFIX_TEST_CONFORMANCE_STREAMS_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace conformance {

/// A foreign kernel: to[i] = ~from[i], 32 bits each.
enum class Foreign {
  Plain, ///< Knows nothing of dependent launch.
  /// Lets the next grid start, and stores only long after (sm_90 and later).
  EarlyTrigger,
};

class Streams {
public:
  Streams();
  ~Streams();

  /// A second stream, beside the device's own.
  void *side() const { return Side; }

  void copy(void *To, const void *From, size_t Bytes, void *Stream);
  void fill(void *To, unsigned char Byte, size_t Bytes, void *Stream);
  /// `Attributed`: with programmatic stream serialisation.
  void invert(Foreign Kind, void *To, const void *From, size_t Bytes,
              void *Stream, bool Attributed = false);
  /// Work enqueued on `Waits` from here on comes after all work on `Behind` so
  /// far.
  void join(void *Behind, void *Waits);
  void synchronize(void *Stream);

  /// True if griddepcontrol exists.
  bool hasDependentLaunch() const { return Capability >= 90; }

private:
  struct Driver;
  void *function(Foreign Kind);

  std::unique_ptr<Driver> Cuda;
  int Capability = 0;
  void *Side = nullptr;
  void *Modules[2] = {}, *Functions[2] = {};
  /// Made beforehand, and used in turn: a wait is for what was recorded when
  /// it was called.
  void *Events[16] = {};
  size_t NextEvent = 0;
};

} // namespace conformance

#endif // MLAFIX_TEST_CONFORMANCE_STREAMS_H
