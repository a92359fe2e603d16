//===- Fork.h - Locks that a forked child finds free ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A forked child has only the thread that forked. A mutex that another thread
// held would stay locked in the child, and the data that it protects might be
// half changed. So the runtime locks its mutexes only by ForkSafeLock, and
// fork() waits until no thread holds a ForkSafeLock. (The thread pool has a
// plain mutex, since a forked child makes a new pool.) A thread that holds one
// ForkSafeLock may take others even while a fork waits.
//
// A variable that is constructed at its first use is a Lazy, not a static
// variable of a function. The compiler guards the latter by a lock for which
// fork() does not wait.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_FORK_H
#define MLAFIX_RUNTIME_FORK_H

#include <atomic>
#include <mutex>

namespace mlafix::runtime {

/// Makes fork() on any other thread wait while the NoFork exists. A thread may
/// hold several.
class NoFork {
public:
  NoFork();
  ~NoFork();
  NoFork(const NoFork &) = delete;
  NoFork &operator=(const NoFork &) = delete;
};

/// Locks a mutex. All users of the mutex must lock it through this class.
class ForkSafeLock {
public:
  explicit ForkSafeLock(std::mutex &mutex) : lock(mutex) {}

private:
  NoFork noFork; // first member, so it is released last
  std::lock_guard<std::mutex> lock;
};

/// Returns the number of forks between the process that loaded the library and
/// the current process.
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
