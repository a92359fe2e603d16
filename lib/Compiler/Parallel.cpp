//===- Parallel.cpp - distributes work over cores -------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/Parallel.h"

#include "lib/Compiler/HostNumbers.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/Threading.h"
#include <atomic>
#include <pthread.h>
#include <utility>

using namespace llvm;
using namespace mlafix;

/// Returns the number of helper threads that may still be started.
static std::atomic<int> &spareCores() {
  static std::atomic<int> spare(
      static_cast<int>(hardware_concurrency().compute_thread_count()) - 1);
  return spare;
}

static bool takeCore() {
  int spare = spareCores().load(std::memory_order_relaxed);
  while (spare > 0)
    if (spareCores().compare_exchange_weak(spare, spare - 1,
                                           std::memory_order_relaxed))
      return true;
  return false;
}

static void giveCore() { spareCores().fetch_add(1, std::memory_order_relaxed); }

namespace {
struct Job {
  size_t count;
  function_ref<void(size_t)> work;
  std::atomic<size_t> next{0};

  static void *run(void *opaque) {
    DefaultNumbers numbers;
    Job &job = *static_cast<Job *>(opaque);
    for (size_t i = job.next++; i < job.count; i = job.next++)
      job.work(i);
    return nullptr;
  }
};

/// Attributes that give helper threads a stack of 8 MiB, as a main thread has.
/// The default may be much smaller (with musl), and LLVM recurses deeply. The
/// unused part of a stack takes no memory.
class ThreadAttributes {
public:
  ThreadAttributes() {
    constexpr size_t stackBytes = 8 << 20;
    isMade = pthread_attr_init(&attributes) == 0;
    if (isMade)
      (void)pthread_attr_setstacksize(&attributes, stackBytes);
  }
  ~ThreadAttributes() {
    if (isMade)
      pthread_attr_destroy(&attributes);
  }
  /// Returns null if out of memory. Threads then get default attributes.
  const pthread_attr_t *get() const { return isMade ? &attributes : nullptr; }

private:
  pthread_attr_t attributes;
  bool isMade = false;
};
} // namespace

void mlafix::parallelFor(size_t count, function_ref<void(size_t)> work) {
  Job job{count, work};
  // Start threads for each call: a start takes about 20 us, and the work takes
  // milliseconds. A pool of waiting threads would not survive a fork.
  SmallVector<pthread_t, 4> threads;
  ThreadAttributes attributes;
  while (threads.size() + 1 < count && takeCore()) {
    pthread_t thread;
    // If the process may not start more threads, this thread and the threads
    // that were started do all the work.
    if (pthread_create(&thread, attributes.get(), Job::run, &job) != 0) {
      giveCore();
      break;
    }
    threads.push_back(thread);
  }
  Job::run(&job);
  for (pthread_t thread : threads) {
    pthread_join(thread, nullptr);
    giveCore();
  }
}

/// Collects the tasks that MLIR adds, and runs them when MLIR waits for them.
/// Threads exist only during such a wait, so none has to live between passes.
class SharedContext::Tasks final : public ThreadPoolInterface {
public:
  /// Returns a small number, because MLIR copies the passes once per thread.
  /// Few kernels have more than four code versions to work on in parallel.
  unsigned getMaxConcurrency() const override { return 4; }

  void wait(ThreadPoolTaskGroup &) override { wait(); }
  void wait() override {
    auto waited = std::exchange(tasks, {});
    parallelFor(waited.size(), [&](size_t i) { waited[i](); });
  }

private:
  void asyncEnqueue(unique_function<void()> task,
                    ThreadPoolTaskGroup *) override {
    tasks.push_back(std::move(task));
  }

  SmallVector<unique_function<void()>> tasks;
};

SharedContext::SharedContext(mlir::MLIRContext &context)
    : context(context), tasks(std::make_unique<Tasks>()) {
  context.setThreadPool(*tasks);
}

/// Makes the context single-threaded, since a multithreaded context would keep
/// its pointer to `tasks`, which is destroyed now.
SharedContext::~SharedContext() { context.disableMultithreading(); }
