//===- ThreadPool.h - The CPU executor's threads ----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_THREADPOOL_H
#define MLAFIX_RUNTIME_THREADPOOL_H

#include "mlafix/runtime.h"

#include <cstddef>

namespace mlafix::runtime {

/// Calls task(context, b, e) with ranges that together cover [0, count) once.
/// The calls run on the host's threads (mlafix_set_parallel_for) or in the
/// pool. With the pool, there is one call on this thread if `count` is at most
/// `grain` or the pool has only this thread. Otherwise the lengths of the
/// ranges, except the last one, are multiples of `batch`, or at most `batch`.
/// Nothing is allocated once the pool runs.
void parallelFor(int64_t count, int64_t grain, int64_t batch, mlafix_task task,
                 void *context);

/// Calls body(context), which needs `bytes` of stack. The call runs on this
/// thread if its stack has room, else on a new thread. Returns when the call is
/// done. Returns false, without a call, if the system refuses the new thread.
bool callWithStack(size_t bytes, void (*body)(void *), void *context);

/// Returns the number of threads that the process may use. The environment can
/// set this number. Otherwise it is what the processor affinity and the cgroup
/// quota allow.
int usableThreads();

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_THREADPOOL_H
