//===- ThreadPool.cpp - The CPU executor's threads ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A job lives on its caller's stack, and all jobs are in one list. A worker
// takes chunks of the first job that has some left. A caller works on its own
// job, and then waits for the workers that are still in that job.
//
//===----------------------------------------------------------------------===//

#include "ThreadPool.h"

#include "Status.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <pthread.h>

using namespace mlafix::runtime;

namespace {

struct Job {
  mlafix_task task;
  void *context;
  int64_t count;
  int64_t chunk;
  std::atomic<int64_t> next{0};
  int workers = 0; ///< number of workers inside work(); needs the pool's mutex
  Job *following = nullptr;

  bool hasWork() const { return next.load(std::memory_order_relaxed) < count; }

  void work() {
    // Do not use fetch_add(), which would increase `next` beyond `count`, where
    // it could overflow.
    int64_t begin = next.load(std::memory_order_relaxed);
    while (begin < count) {
      int64_t end = begin + std::min(count - begin, chunk);
      if (!next.compare_exchange_weak(begin, end, std::memory_order_relaxed))
        continue;
      task(context, begin, end);
      begin = next.load(std::memory_order_relaxed);
    }
  }
};

/// The minimum stack size of a worker in bytes. Kernels keep up to 4 MB of rows
/// on the stack, but a thread's default stack has 2 MB if the process's stack
/// limit is "unlimited".
constexpr size_t leastStackBytes = 8 << 20;

/// Starts a detached thread. Returns false if the system refuses one.
bool startThread(void *(*body)(void *), void *context) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0)
    return false;
  size_t bytes = 0;
  pthread_attr_getstacksize(&attributes, &bytes);
  pthread_t thread;
  bool isStarted =
      pthread_attr_setstacksize(&attributes,
                                std::max(bytes, leastStackBytes)) == 0 &&
      pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
      pthread_create(&thread, &attributes, body, context) == 0;
  pthread_attr_destroy(&attributes);
  return isStarted;
}

class Pool {
public:
  int size() {
    std::lock_guard<std::mutex> lock(mutex);
    start();
    return workers + 1;
  }

  void run(Job &job) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      Job **last = &jobs;
      while (*last)
        last = &(*last)->following;
      *last = &job;
    }
    wake.notify_all();
    job.work();
    std::unique_lock<std::mutex> lock(mutex);
    Job **link = &jobs;
    while (*link != &job)
      link = &(*link)->following;
    *link = job.following;
    done.wait(lock, [&] { return job.workers == 0; });
  }

private:
  /// Starts the workers. The caller must hold the mutex.
  void start() {
    if (started)
      return;
    started = true;
    int wanted = usableThreads() - 1;
    auto body = [](void *pool) -> void * {
      static_cast<Pool *>(pool)->serve();
      return nullptr;
    };
    while (workers < wanted && startThread(body, this))
      ++workers;
    if (workers < wanted)
      log(MLAFIX_LOG_WARNING,
          "expected %d threads for CPU launches, got %d: the system refused "
          "another one",
          wanted + 1, workers + 1);
    log(MLAFIX_LOG_DEBUG, "CPU launches use %d threads", workers + 1);
  }

  void serve() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      Job *job = jobs;
      while (job && !job->hasWork())
        job = job->following;
      if (!job) {
        wake.wait(lock);
        continue;
      }
      ++job->workers;
      lock.unlock();
      job->work();
      lock.lock();
      if (--job->workers == 0)
        done.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable wake, done;
  Job *jobs = nullptr;
  int workers = 0;
  bool started = false;
};

// Never destroyed, since its threads run until the process ends.
alignas(Pool) char poolStorage[sizeof(Pool)];

/// Makes the pool at load time, before any constructor that may launch a
/// kernel. A forked child has none of the pool's threads. So it makes a new
/// pool in the old one's memory, whatever state the old one was in.
__attribute__((constructor(101))) void makePool() {
  new (poolStorage) Pool;
  pthread_atfork(nullptr, nullptr, [] { new (poolStorage) Pool; });
}

Pool *pool() { return std::launder(reinterpret_cast<Pool *>(poolStorage)); }

struct Hook {
  mlafix_parallel_for function;
  void *user;
};
Hook hook = {nullptr, nullptr};

} // namespace

void mlafix::runtime::parallelFor(int64_t count, int64_t grain, int64_t batch,
                                  mlafix_task task, void *context) {
  if (hook.function) {
    hook.function(hook.user, count, grain, task, context);
    return;
  }
  if (count <= grain) {
    task(context, 0, count);
    return;
  }
  Pool *threads = pool();
  int64_t size = threads->size();
  if (size == 1) {
    task(context, 0, count);
    return;
  }
  // Give each thread a few chunks, since rows may differ in cost.
  int64_t chunk = std::max(grain, (count - 1) / (4 * size) + 1);
  if (chunk > batch)
    chunk = ((chunk - 1) / batch + 1) * batch;
  Job job;
  job.task = task;
  job.context = context;
  job.count = count;
  job.chunk = chunk;
  threads->run(job);
}

extern "C" void mlafix_set_parallel_for(mlafix_parallel_for parallel_for,
                                        void *user) noexcept {
  hook = {parallel_for, user};
}

extern "C" mlafix_status mlafix_run_task(int64_t count, int64_t grain,
                                         mlafix_task task,
                                         void *context) noexcept {
  return guarded([&] {
    if (!task)
      return fail(MLAFIX_INVALID_ARGUMENT,
                  "argument \"task\": expected a function, got null");
    if (count < 0 || grain < 1)
      return fail(MLAFIX_INVALID_ARGUMENT,
                  "argument \"%s\": expected at least %d, got %lld",
                  count < 0 ? "count" : "grain", count < 0 ? 0 : 1,
                  static_cast<long long>(count < 0 ? count : grain));
    if (count > 0)
      parallelFor(count, grain, 1, task, context);
    return MLAFIX_OK;
  });
}
