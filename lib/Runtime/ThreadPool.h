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

/// Calls task(context, b, e) with ranges that together cover [0, count) once.
/// The calls run on the host's threads (mlafix_set_parallel_for) or in the
/// pool. If `count` is at most `grain`, the pool's version makes one call on
/// this thread. The pool's ranges are multiples of `batch`, unless they are
/// shorter than `batch`. Nothing is allocated once the pool runs.
void parallelFor(int64_t count, int64_t grain, int64_t batch, mlafix_task task,
                 void *context);

/// Returns the number of threads that the process may use. The environment can
/// set it; otherwise the processor affinity and the cgroup quota limit it.
int usableThreads();

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_THREADPOOL_H
