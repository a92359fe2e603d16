//===- Fork.cpp - Locks that a forked child finds free --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Fork.h"

#include <pthread.h>

using namespace mlafix::runtime;

namespace {

/// Makes a fork wait until no thread holds a NoFork, and a new NoFork wait
/// while a thread is about to fork. The POSIX objects are initialised before
/// any constructor runs, are never destroyed, and can be reset by assignment.
struct Gate {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  unsigned inside = 0;  ///< number of threads that hold a NoFork
  unsigned forking = 0; ///< number of threads that are about to fork
};

Gate gate;
thread_local unsigned depth = 0; ///< number of NoForks that this thread holds
std::atomic<unsigned> generation{0};

void beforeFork() {
  pthread_mutex_lock(&gate.mutex);
  ++gate.forking;
  // Do not wait if this thread holds a NoFork itself. A thread that holds
  // another NoFork may wait for a lock of this thread, so both would wait for
  // each other. (A thread forks under a lock if it initialises the CUDA driver,
  // which may start a program.)
  while (depth == 0 && gate.inside != 0)
    pthread_cond_wait(&gate.changed, &gate.mutex);
  // The mutex stays locked until the fork is done, so no other thread can
  // acquire a NoFork before that.
}

void afterForkInParent() {
  --gate.forking;
  pthread_cond_broadcast(&gate.changed);
  pthread_mutex_unlock(&gate.mutex);
}

void afterForkInChild() {
  gate = Gate();
  gate.inside = depth != 0;
  generation.fetch_add(1, std::memory_order_relaxed);
}

/// Runs when the library is loaded, since a fork may follow at any time.
__attribute__((constructor)) void watchForks() {
  pthread_atfork(beforeFork, afterForkInParent, afterForkInChild);
}

} // namespace

NoFork::NoFork() {
  if (depth++ != 0)
    return;
  pthread_mutex_lock(&gate.mutex);
  while (gate.forking != 0)
    pthread_cond_wait(&gate.changed, &gate.mutex);
  ++gate.inside;
  pthread_mutex_unlock(&gate.mutex);
}

NoFork::~NoFork() {
  if (--depth != 0)
    return;
  pthread_mutex_lock(&gate.mutex);
  if (--gate.inside == 0 && gate.forking != 0)
    pthread_cond_broadcast(&gate.changed);
  pthread_mutex_unlock(&gate.mutex);
}

unsigned mlafix::runtime::forkGeneration() {
  return generation.load(std::memory_order_relaxed);
}
