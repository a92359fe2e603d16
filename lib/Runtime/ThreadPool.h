//===- ThreadPool.h - The CPU executor's threads ----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_THREADPOOL_H
#define MLAFIX_RUNTIME_THREADPOOL_H

#include "mlafix/runtime.h"

namespace mlafix::runtime {

/// Runs task(context, b, e) over ranges that together cover [0, count) once, on
/// the host's threads (mlafix_set_parallel_for) or the pool's. Small counts run
/// on the caller's thread. The pool's ranges are multiples of `batch` unless
/// they are shorter. Allocates nothing once the pool is running.
void parallelFor(int64_t count, int64_t grain, int64_t batch, mlafix_task task,
                 void *context);

/// Threads that the process may use: affinity, cgroup quota, environment.
int usableThreads();

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_THREADPOOL_H
