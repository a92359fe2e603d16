//===- Fork.h - Locks that a forked child finds free ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A forked child contains only the thread that forked. A mutex held by another
// thread would stay locked there, with its data half changed. So every lock of
// the runtime is a ForkSafeLock, and fork() waits until none is held. A thread
// that holds one may take others, so no order among the mutexes matters to it.
//
// Variables that are made at their first use are a Lazy: the guard of a
// function's static variable is a lock like any other.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_FORK_H
#define MLAFIX_RUNTIME_FORK_H

#include <atomic>
#include <mutex>

namespace mlafix::runtime {

/// While a thread holds one, fork() on any other thread waits. Nests.
class NoFork {
public:
  NoFork();
  ~NoFork();
  NoFork(const NoFork &) = delete;
  NoFork &operator=(const NoFork &) = delete;
};

/// Locks a mutex that is always locked through this class.
class ForkSafeLock {
public:
  explicit ForkSafeLock(std::mutex &mutex) : lock(mutex) {}

private:
  NoFork noFork; // first member: released after the mutex
  std::lock_guard<std::mutex> lock;
};

/// The number of forks between the process that loaded the library and this
/// one.
unsigned forkGeneration();

/// A static variable that is constructed on first use and never destroyed.
template <typename T> class Lazy {
public:
  template <typename Make> T &get(Make make) {
    if (T *made = value.load(std::memory_order_acquire))
      return *made;
    ForkSafeLock lock(mutex);
    T *made = value.load(std::memory_order_relaxed);
    if (!made) {
      made = new T(make());
      value.store(made, std::memory_order_release);
    }
    return *made;
  }

private:
  std::mutex mutex;
  std::atomic<T *> value{nullptr};
};

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_FORK_H
