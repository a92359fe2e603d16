//===- Dispatcher.h - From a Python call to the specialised kernel *- C++
//-*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_DISPATCHER_H
#define MLAFIX_PYTHON_DISPATCHER_H

#include "Bound.h"
#include <unordered_map>

namespace mlafix::python {

/// A kernel that is specialised by what it is called with: reads the dims and
/// dtypes that it is compiled for off the arguments, and which optional ones
/// are given, looks the compiled kernel up in a table, launches it. A
/// combination not met before is asked of `resolve`, a Python function, once.
class Dispatcher {
public:
  Dispatcher(const std::string &name, nanobind::str signature,
             nanobind::object resolve, nanobind::object views,
             nanobind::object specialize);

  void launch(nanobind::handle args, nanobind::handle stream, uint32_t flags);
  Bound bind(nanobind::handle args, uint32_t flags);
  /// Resolves and loads what a call with these arguments would run.
  KernelInfo prepare(nanobind::handle args);
  size_t numSpecializations() const { return table.size(); }
  /// Forgets what was resolved.
  void clear();

  nanobind::object resolve; ///< for the garbage collector

private:
  struct Entry {
    std::shared_ptr<mlafix_unit> unit;
    const mlafix_kernel *kernel;
  };

  /// Reads the arguments into `call` and finds the kernel for them.
  Entry find(nanobind::handle args, uint32_t flags, CallArgs &call);
  Entry resolveEntry(const CallArgs &call);

  std::shared_ptr<const Signature> signature;
  std::unordered_map<Key, Entry, KeyHash> table;
};

void bindDispatcher(nanobind::module_ &module);

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_DISPATCHER_H
