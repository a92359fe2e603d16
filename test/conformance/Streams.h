//===- Streams.h - Foreign work on a program's streams ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Enqueues work that is not mlafix's on the device under test: memory copies,
// memsets, events and foreign kernels. Failures throw std::runtime_error.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TEST_CONFORMANCE_STREAMS_H
#define MLAFIX_TEST_CONFORMANCE_STREAMS_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace conformance {

/// The kinds of foreign kernels: hand-written PTX, not compiled by mlafix. Each
/// kernel stores to[i] = ~from[i] for 32-bit elements.
enum class Foreign {
  Plain, ///< The kernel does not use dependent launch.
  /// The kernel lets the next grid start long before it stores (sm_90 and
  /// later).
  EarlyTrigger,
};

class Streams {
public:
  Streams();
  ~Streams();

  /// Returns a second stream, in addition to the device's stream.
  void *side() const { return Side; }

  void copy(void *To, const void *From, size_t Bytes, void *Stream);
  void fill(void *To, unsigned char Byte, size_t Bytes, void *Stream);
  /// Launches a foreign kernel. If `Attributed` is set, the launch has the
  /// attribute for programmatic stream serialisation.
  void invert(Foreign Kind, void *To, const void *From, size_t Bytes,
              void *Stream, bool Attributed = false);
  /// Makes later work on `Waits` wait for all earlier work on `Behind`.
  void join(void *Behind, void *Waits);
  void synchronize(void *Stream);

  /// Returns true if the device supports the instruction griddepcontrol.
  bool hasDependentLaunch() const { return Capability >= 90; }

private:
  struct Driver;
  void *function(Foreign Kind);

  std::unique_ptr<Driver> Cuda;
  int Capability = 0;
  void *Side = nullptr;
  void *Modules[2] = {}, *Functions[2] = {};
  /// Events for join(), which are used in turn. An event may be used again: a
  /// wait that is enqueued already does not cover later records of the event.
  void *Events[16] = {};
  size_t NextEvent = 0;
};

} // namespace conformance

#endif // MLAFIX_TEST_CONFORMANCE_STREAMS_H
