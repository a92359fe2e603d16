//===- ForkTest.cpp - Forks while other threads use the runtime -----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Fork.h"
#include "FakeCuda.h"
#include "TestUnit.h"

#include "mlafix/runtime.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace mlafix;
using namespace mlafix::test;

namespace {

/// Returns true if `body` returns true in a forked child within 20 seconds.
template <typename Body> bool holdsInChild(Body body) {
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child &&
         WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Starts threads that repeat `body` until the object is destroyed.
class Hammer {
public:
  template <typename Body> void add(Body body) {
    threads.emplace_back([this, body] {
      while (!stopped)
        body();
    });
  }
  ~Hammer() {
    stopped = true;
    for (std::thread &thread : threads)
      thread.join();
  }

private:
  std::atomic<bool> stopped{false};
  std::vector<std::thread> threads;
};

void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

/// Installs a slow log callback, so that the log's mutex and the mutex of the
/// unit being prepared are held most of the time.
struct SlowLog {
  SlowLog() {
    mlafix_set_log_callback(
        [](void *, mlafix_log_level, const char *) { pause(); }, nullptr);
  }
  ~SlowLog() { mlafix_set_log_callback(nullptr, nullptr); }
};

TEST(Fork, waits_for_threads_that_hold_a_lock_of_the_runtime) {
  std::mutex mutex;
  std::atomic<int> entered{0};
  bool whole = true; // guarded by the mutex
  Hammer hammer;
  for (int i = 0; i < 3; ++i)
    hammer.add([&] {
      runtime::ForkSafeLock lock(mutex);
      whole = false;
      ++entered;
      pause();
      whole = true;
    });
  for (int i = 0; i < 30; ++i) {
    for (int before = entered; entered == before;)
      std::this_thread::yield();
    EXPECT_TRUE(holdsInChild([&] {
      runtime::ForkSafeLock lock(mutex);
      return whole;
    }));
  }
}

TEST(Fork, a_thread_that_holds_a_lock_may_fork) {
  std::mutex mutex;
  {
    runtime::ForkSafeLock lock(mutex);
    EXPECT_TRUE(holdsInChild([] { return true; }));
  }
  runtime::ForkSafeLock again(mutex);
}

TEST(Fork, threads_may_fork_at_once) {
  std::mutex mutex;
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        { runtime::ForkSafeLock lock(mutex); }
        right += holdsInChild([&] {
          runtime::ForkSafeLock lock(mutex);
          return true;
        });
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(right, 40);
}

TEST(Fork, a_child_prepares_launches_and_logs_while_other_threads_did) {
  Unit unit = load(cpuOnlyUnit());
  Kernel kernel = unit.kernel("add_bias");
  SlowLog log;
  Hammer hammer;
  for (int i = 0; i < 2; ++i)
    hammer.add([] {
      Unit other = load(cpuOnlyUnit());
      AddBiasCall call(4);
      // The first launch prepares the kernel. The runtime then writes to the
      // log.
      call.launch(other.kernel("add_bias"));
      call.launch(other.kernel("add_bias"));
    });
  hammer.add([&] { mlafix_unit_prepare(unit.get(), cpu()); });
  for (int i = 0; i < 40; ++i) {
    // The child uses a unit that another thread is preparing.
    Unit fresh = load(cpuOnlyUnit());
    Kernel add = fresh.kernel("add_bias");
    std::atomic<bool> begun{false};
    std::thread preparing([&] {
      begun = true;
      mlafix_unit_prepare(fresh.get(), cpu());
    });
    while (!begun)
      std::this_thread::yield();
    EXPECT_TRUE(holdsInChild([&] {
      fresh.prepare(cpu());
      AddBiasCall call(200000);
      call.launch(add);
      mlafix_set_log_callback(nullptr, nullptr);
      return call.isDone();
    }));
    preparing.join();
  }
}

TEST(Fork, a_child_remembers_calls_whose_memo_another_thread_held) {
  Unit unit = load(cpuOnlyUnit());
  Kernel kernel = unit.kernel("add_bias");
  unit.prepare(cpu());
  Hammer hammer;
  for (int i = 0; i < 3; ++i)
    hammer.add([&] {
      AddBiasCall call(4);
      call.launch(kernel);
    });
  for (int i = 0; i < 40; ++i)
    EXPECT_TRUE(holdsInChild([&] {
      AddBiasCall call(4);
      for (int n = 0; n < 3; ++n)
        call.launch(kernel);
      return call.isDone();
    }));
}

TEST(Fork, a_child_may_load_code_for_a_device_while_another_thread_does) {
  FakeCuda fake;
  Hammer hammer;
  hammer.add([] { load(addBiasUnit()).prepare(cuda(0)); });
  for (int i = 0; i < 40; ++i)
    EXPECT_TRUE(holdsInChild([] {
      load(addBiasUnit()).prepare(cuda(0));
      return true;
    }));
}

} // namespace
