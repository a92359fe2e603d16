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

/// Plain POSIX objects: initialised before any constructor runs, never
/// destroyed, and reset by assignment.
struct Gate {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  unsigned inside = 0;  ///< number of threads with a NoFork
  unsigned forking = 0; ///< number of threads about to fork
};

Gate gate;
thread_local unsigned depth = 0; ///< NoForks held by this thread
std::atomic<unsigned> generation{0};

void beforeFork() {
  pthread_mutex_lock(&gate.mutex);
  ++gate.forking;
  // A thread that forks inside its own NoFork (the CUDA driver may start a
  // program during initialisation) must not wait: others may wait for it.
  while (depth == 0 && gate.inside != 0)
    pthread_cond_wait(&gate.changed, &gate.mutex);
  // Keep the mutex locked, which stops other threads, until the fork is done.
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
