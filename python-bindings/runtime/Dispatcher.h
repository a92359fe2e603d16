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
  /// Like `launch`, for plain torch tensors and loaded code, while no mode or
  /// tracer is active. Allocates the outputs for which a NewTensor is given,
  /// and returns all outputs as a tuple. Returns None for any other call,
  /// without launching anything.
  nanobind::object tryLaunch(nanobind::handle args, nanobind::handle stream);
  Bound bind(nanobind::handle args, uint32_t flags);
  /// Resolves and loads the code that a call with these arguments would run.
  KernelInfo prepare(nanobind::handle args);
  size_t numSpecializations() const { return table.size(); }
  /// Forgets all resolved calls.
  void clear();

  // Visited by the garbage collector (traverseDispatcher).
  nanobind::object resolve;
  Watches watches; ///< the names that each call compares before it launches

private:
  struct Entry {
    std::shared_ptr<mlafix_unit> unit;
    const mlafix_kernel *kernel;
  };

  /// Reads the arguments into `call` and finds the kernel for them.
  Entry find(nanobind::handle args, uint32_t flags, CallArgs &call);
  Entry resolveEntry(const CallArgs &call);
  /// Reads the arguments, and allocates the outputs that need it into the tuple
  /// `outputs`. Returns false if allocating is not possible. Throws an error
  /// for a wrong argument.
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
