//===- Dispatcher.h - from a Python call to its kernel ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_DISPATCHER_H
#define MLAFIX_PYTHON_DISPATCHER_H

#include "Bound.h"
#include "NewTensor.h"
#include "Watches.h"
#include <unordered_map>

namespace mlafix::python {

/// A kernel that is specialised by its calls. A call reads dims, dtypes and the
/// presence of optional arguments from its arguments, finds the compiled kernel
/// in a table, and launches it. For a combination that is not in the table, it
/// calls the Python function `resolve`.
class Dispatcher {
public:
  Dispatcher(const std::string &name, nanobind::str signature,
             nanobind::object resolve, nanobind::object views,
             nanobind::object specialize);

  void launch(nanobind::handle args, nanobind::handle stream, uint32_t flags);
  /// Launches a call if three conditions hold: all its tensors are plain torch
  /// tensors, its kernel is already in the table, and no mode or tracer of
  /// torch is active. Allocates the outputs for which a NewTensor is passed,
  /// and returns all outputs as a tuple. Launches nothing and returns None for
  /// any other call, and for one with a wrong argument or an output that cannot
  /// be allocated.
  nanobind::object tryLaunch(nanobind::handle args, nanobind::handle stream);
  Bound bind(nanobind::handle args, uint32_t flags);
  /// Finds the code that a call with these arguments would run, and loads it on
  /// the device.
  KernelInfo prepare(nanobind::handle args);
  size_t numSpecializations() const { return table.size(); }
  /// Forgets all resolved calls.
  void clear();

  // The garbage collector visits `resolve` and `watches` (traverseDispatcher).
  nanobind::object resolve;
  /// The names that the kernel uses but does not define, such as globals. Each
  /// call checks that they still stand for the same objects.
  Watches watches;

private:
  struct Entry {
    std::shared_ptr<mlafix_unit> unit;
    const mlafix_kernel *kernel;
  };

  /// Reads the arguments into `call` and returns the kernel for them.
  Entry find(nanobind::handle args, uint32_t flags, CallArgs &call);
  Entry resolveEntry(const CallArgs &call);
  /// Reads the arguments into `call`. Sets `outputs` to a tuple of all outputs,
  /// and allocates those for which a NewTensor is passed. Returns false if an
  /// argument is not plain or an output cannot be allocated. Throws
  /// ArgumentError.
  bool readAllocating(nanobind::handle args, CallArgs &call,
                      nanobind::object &outputs);
  /// Returns the stream of a call: `stream`, or the current stream if it is
  /// None.
  static void *findStream(nanobind::handle stream, const CallArgs &call);
  static mlafix_status start(const Entry &entry, const CallArgs &call,
                             void *stream, uint32_t flags);

  std::shared_ptr<const Signature> signature;
  std::unordered_map<Key, Entry, KeyHash> table;
};

void bindDispatcher(nanobind::module_ &module);

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_DISPATCHER_H
