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

/// A kernel not made by mlafix: to[i] = ~from[i], 32 bits each.
enum class Foreign {
  Plain, ///< Does not use dependent launch.
  /// Lets the next grid start long before it stores (sm_90 and later).
  EarlyTrigger,
};

class Streams {
public:
  Streams();
  ~Streams();

  /// A second stream, next to the device's own.
  void *side() const { return Side; }

  void copy(void *To, const void *From, size_t Bytes, void *Stream);
  void fill(void *To, unsigned char Byte, size_t Bytes, void *Stream);
  /// Launches a foreign kernel, if `Attributed` with programmatic stream
  /// serialisation.
  void invert(Foreign Kind, void *To, const void *From, size_t Bytes,
              void *Stream, bool Attributed = false);
  /// Makes later work on `Waits` wait for all earlier work on `Behind`.
  void join(void *Behind, void *Waits);
  void synchronize(void *Stream);

  /// True if the device has griddepcontrol.
  bool hasDependentLaunch() const { return Capability >= 90; }

private:
  struct Driver;
  void *function(Foreign Kind);

  std::unique_ptr<Driver> Cuda;
  int Capability = 0;
  void *Side = nullptr;
  void *Modules[2] = {}, *Functions[2] = {};
  /// Created in advance and used in turn: a wait covers only what was recorded
  /// before it was enqueued.
  void *Events[16] = {};
  size_t NextEvent = 0;
};

} // namespace conformance

#endif // MLAFIX_TEST_CONFORMANCE_STREAMS_H
