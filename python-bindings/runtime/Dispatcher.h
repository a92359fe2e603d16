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

/// A kernel that is specialised by its calls: reads dims, dtypes and the
/// presence of optional arguments from the arguments, finds the compiled kernel
/// in a table, and launches it. For a new combination it calls `resolve`, a
/// Python function, once.
class Dispatcher {
public:
  Dispatcher(const std::string &name, nanobind::str signature,
             nanobind::object resolve, nanobind::object views,
             nanobind::object specialize);

  void launch(nanobind::handle args, nanobind::handle stream, uint32_t flags);
  /// As `launch`, for plain torch tensors while no mode or tracer is active,
  /// and code that is loaded: allocates the outputs that a NewTensor stands for
  /// and returns all, a tuple. Returns None, and has launched nothing, for any
  /// other call.
  nanobind::object tryLaunch(nanobind::handle args, nanobind::handle stream);
  Bound bind(nanobind::handle args, uint32_t flags);
  /// Resolves and loads what a call with these arguments would run.
  KernelInfo prepare(nanobind::handle args);
  size_t numSpecializations() const { return table.size(); }
  /// Forgets what was resolved.
  void clear();

  // For the garbage collector.
  nanobind::object resolve;
  Watches watches; ///< what each call compares before it launches

private:
  struct Entry {
    std::shared_ptr<mlafix_unit> unit;
    const mlafix_kernel *kernel;
  };

  /// Reads the arguments into `call` and finds the kernel for them.
  Entry find(nanobind::handle args, uint32_t flags, CallArgs &call);
  Entry resolveEntry(const CallArgs &call);
  /// Reads the arguments, and allocates what is to be allocated into `outputs`,
  /// a tuple. False where that is not possible. Throws what is wrong.
  bool readAllocating(nanobind::handle args, CallArgs &call,
                      nanobind::object &outputs);
  /// The stream that a call names, or the current one.
  static void *findStream(nanobind::handle stream, const CallArgs &call);
  static mlafix_status start(const Entry &entry, const CallArgs &call,
                             void *stream, uint32_t flags);

  std::shared_ptr<const Signature> signature;
  std::unordered_map<Key, Entry, KeyHash> table;
};

void bindDispatcher(nanobind::module_ &module);

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_DISPATCHER_H
