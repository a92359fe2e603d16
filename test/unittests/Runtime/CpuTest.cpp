//===- CpuTest.cpp - The CPU executor -------------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Environment.h"
#include "MachineCode.h"
#include "TestUnit.h"
#include "ThreadPool.h"
#include "Unit.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <pthread.h>
#include <set>
#include <sstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace mlafix;
using namespace mlafix::test;

namespace {

class Cpu : public testing::Test {
protected:
  Unit unit = load(cpuOnlyUnit());
  Kernel kernel = unit.kernel("add_bias");
};

// Enough rows of 4 floats that every thread of the pool gets work.
constexpr int64_t manyRows = 200000;

TEST_F(Cpu, computes_every_row_once) {
  AddBiasCall call(manyRows);
  call.launch(kernel);
  EXPECT_TRUE(call.isDone());
}

TEST_F(Cpu, no_rows_succeed) {
  AddBiasCall call(0);
  call.launch(kernel);
  EXPECT_TRUE(call.isUntouched());
}

TEST_F(Cpu, in_place_is_legal) {
  AddBiasCall call(manyRows);
  call.args[0] = call.args[1];
  call.launch(kernel);
  EXPECT_EQ(call.inData[4 * manyRows - 1], float(4 * manyRows - 1) + 0.5f);
}

TEST_F(Cpu, concurrent_launches_do_not_disturb_each_other) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        AddBiasCall call(t % 2 ? 50000 : 7);
        call.launch(kernel);
        right += static_cast<bool>(call.isDone());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(right, 160);
}

TEST_F(Cpu, a_forked_child_launches_too) {
  AddBiasCall before(manyRows);
  before.launch(kernel); // starts the pool
  for (int i = 0; i < 4; ++i) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(30); // ends the process if it hangs
      AddBiasCall call(manyRows);
      call.launch(kernel);
      _exit(call.isDone() ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  AddBiasCall after(manyRows);
  after.launch(kernel);
  EXPECT_TRUE(after.isDone());
}

TEST_F(Cpu, a_bound_launches_many_times) {
  AddBiasCall call(10), other(10);
  Bound bound = kernel.bind(call.args);
  bound.launch();
  EXPECT_TRUE(call.isDone());
  bound.setPointers({other.out(), other.in(), nullptr, nullptr, nullptr});
  bound.launch();
  EXPECT_TRUE(other.isDone());
}

TEST_F(Cpu, a_bound_exports_a_function_to_call) {
  AddBiasCall call(10);
  Bound bound = kernel.bind(call.args);
  mlafix_launch_info info = bound.info();
  auto entry = reinterpret_cast<void (*)(const uint64_t *, int64_t, int64_t)>(
      info.function);
  EXPECT_EQ(info.kernel_params, nullptr);
  entry(info.slots, 0, info.rows);
  EXPECT_TRUE(call.isDone());
}

#if defined(__aarch64__)
/// Returns the control register for floats, FPCR. The bits of FPCR in
/// `flushingMode` flush subnormals to zero and replace every NaN by the default
/// NaN.
unsigned floatMode() {
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return static_cast<unsigned>(mode);
}
void setFloatMode(unsigned mode) {
  __asm__ volatile("msr fpcr, %0" : : "r"(uint64_t(mode)));
}
constexpr unsigned flushingMode = 3 << 24, modeBits = ~0u, defaultMode = 0;
#else
/// Returns the control register for floats, MXCSR. The bits of MXCSR in
/// `flushingMode` flush subnormals to zero. The lowest six bits of MXCSR are
/// status flags, so `modeBits` leaves them out.
unsigned floatMode() { return _mm_getcsr(); }
void setFloatMode(unsigned mode) { _mm_setcsr(mode); }
constexpr unsigned flushingMode = 0x8040, modeBits = 0xffc0,
                   defaultMode = 0x1f80;
#endif

TEST_F(Cpu, code_runs_in_the_default_float_mode) {
  UnitWriter writer = cpuOnlyUnit();
  writer.kernel()["code"][0]["variants"][0]["offset"] = storeModeOffset;
  Unit modes = load(writer);
  AddBiasCall call(8);
  unsigned before = floatMode();
  setFloatMode(before | flushingMode);
  call.launch(modes.kernel("add_bias"));
  unsigned after = floatMode();
  setFloatMode(before);
  EXPECT_EQ(after, before | flushingMode) << "the caller's mode is given back";
  unsigned seen = 0;
  memcpy(&seen, call.out(), 4);
  EXPECT_EQ(seen & modeBits, defaultMode);
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

UnitWriter unitFor(const std::vector<std::string> &baselines) {
  UnitWriter writer = cpuOnlyUnit();
  json code = writer.kernel()["code"][0];
  writer.kernel()["code"] = json::array();
  for (const std::string &target : baselines) {
    code["target"] = target;
    writer.kernel()["code"].push_back(code);
  }
  return writer;
}

/// Returns the target whose code runs if MLAFIX_CPU_TARGET is `asked`. The unit
/// has code for all baselines.
std::string chosenFor(const char *asked) {
  setenv("MLAFIX_CPU_TARGET", asked, 1);
  runtime::reloadEnvironmentForTesting();
  std::string chosen =
      load(unitFor({"x86-64-v3", "aarch64", "x86-64", "x86-64-v4"}))
          .kernel("add_bias")
          .code(cpu())
          .target;
  unsetenv("MLAFIX_CPU_TARGET");
  runtime::reloadEnvironmentForTesting();
  return chosen;
}

TEST_F(Cpu, the_best_code_of_the_processor_runs_or_less_where_asked_for) {
#if defined(__x86_64__)
  EXPECT_EQ(chosenFor("x86-64"), "x86-64");
  bool hasV3 = __builtin_cpu_supports("avx2"),
       hasV4 = hasV3 && __builtin_cpu_supports("avx512bw");
  std::string v3 = hasV3 ? "x86-64-v3" : "x86-64";
  EXPECT_EQ(chosenFor("x86-64-v3"), v3);
  EXPECT_EQ(chosenFor(""), hasV4 ? "x86-64-v4" : v3);
  EXPECT_EQ(chosenFor("x86-64-v4"), chosenFor(""));
  EXPECT_EQ(chosenFor("aarch64"), chosenFor("")) << "another architecture's";
#else
  EXPECT_EQ(chosenFor(""), "aarch64");
  EXPECT_EQ(chosenFor("x86-64-v3"), "aarch64") << "another architecture's";
#endif
}

TEST_F(Cpu, code_for_another_architecture_never_runs) {
  std::string other =
      machineCodeTarget == std::string("aarch64") ? "x86-64" : "aarch64";
  Unit foreign = load(unitFor({other}));
  AddBiasCall call(4);
  expectError(MLAFIX_NO_IMAGE, {"expected code for this CPU", "got " + other},
              [&] { call.launch(foreign.kernel("add_bias")); });
  EXPECT_TRUE(call.isUntouched());
}

#if defined(__x86_64__)
/// Returns the processor's features according to /proc/cpuinfo.
std::set<std::string> kernelsFlags() {
  std::ifstream file("/proc/cpuinfo");
  std::set<std::string> flags;
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, 5, "flags") != 0)
      continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;)
      flags.insert(word);
    break;
  }
  return flags;
}

TEST_F(Cpu, the_processors_level_is_what_the_kernel_says_of_it) {
  std::set<std::string> flags = kernelsFlags();
  if (flags.empty())
    GTEST_SKIP() << "no /proc/cpuinfo";
  auto hasAll = [&](std::initializer_list<const char *> names) {
    return std::all_of(names.begin(), names.end(),
                       [&](const char *name) { return flags.count(name); });
  };
  bool hasV3 = hasAll({"avx2", "fma", "f16c", "bmi1", "bmi2", "abm", "movbe"});
  bool hasV4 = hasV3 && hasAll({"avx512f", "avx512bw", "avx512cd", "avx512dq",
                                "avx512vl"});
  EXPECT_EQ(runtime::machineLevel(), hasV4 ? 4 : hasV3 ? 3 : 0);
}
#endif

TEST_F(Cpu, a_unit_without_the_best_code_runs_what_it_has) {
  EXPECT_STREQ(
      load(unitFor({machineCodeTarget})).kernel("add_bias").code(cpu()).target,
      machineCodeTarget);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    EXPECT_STREQ(load(unitFor({"x86-64", "x86-64-v3"}))
                     .kernel("add_bias")
                     .code(cpu())
                     .target,
                 "x86-64-v3");
  }
#endif
}

TEST_F(Cpu, a_unit_without_cpu_code_says_what_it_has) {
  UnitWriter writer = addBiasUnit();
  writer.kernel()["code"].erase(0);
  for (json &target : writer.kernel()["code"])
    for (json &image : target["images"])
      image["image"] = image["image"].get<int>() - 1;
  writer.images.erase(writer.images.begin());
  Unit gpuOnly = load(writer);
  AddBiasCall call(4);
  expectError(MLAFIX_NO_IMAGE, {"\"add_bias\"", "sm_90, sm_80"},
              [&] { call.launch(gpuOnly.kernel("add_bias")); });
  expectError(MLAFIX_NO_IMAGE, {"sm_90"}, [&] { gpuOnly.prepare(cpu()); });
}

TEST_F(Cpu, unload_and_prepare_again) {
  unit.prepare(cpu());
  ASSERT_EQ(mlafix_unit_unload(unit.get(), cpu()), MLAFIX_OK);
  AddBiasCall call(4);
  call.launch(kernel);
  EXPECT_TRUE(call.isDone());
}

//===----------------------------------------------------------------------===//
// The pool
//===----------------------------------------------------------------------===//

/// Counts how often each row was processed.
struct Counts {
  std::vector<std::atomic<int>> rows;
  explicit Counts(int64_t count) : rows(count) {}
  static void task(void *context, int64_t begin, int64_t end) {
    auto *counts = static_cast<Counts *>(context);
    for (int64_t i = begin; i < end; ++i)
      ++counts->rows.at(i);
  }
  bool allOnce() const {
    return std::all_of(rows.begin(), rows.end(),
                       [](const auto &n) { return n == 1; });
  }
};

/// Runs `body` in a child process with a new pool of `threads` threads, and
/// expects it to return true.
template <typename Body> void inFreshPool(const char *threads, Body body) {
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(30); // ends the process if it hangs
    setenv("MLAFIX_NUM_THREADS", threads, 1);
    runtime::reloadEnvironmentForTesting();
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ThreadPool, covers_every_row_exactly_once) {
  for (int64_t count : {1, 2, 3, 7, 63, 64, 65, 1000, 4097})
    for (int64_t grain : {1, 2, 5, 64, 5000})
      for (int64_t batch : {1, 3, 64, 2048}) {
        Counts counts(count);
        runtime::parallelFor(count, grain, batch, Counts::task, &counts);
        EXPECT_TRUE(counts.allOnce())
            << count << " by " << grain << " in batches of " << batch;
      }
}

TEST(ThreadPool, runs_the_tasks_of_others) {
  Counts counts(1000);
  EXPECT_EQ(mlafix_run_task(1000, 3, Counts::task, &counts), MLAFIX_OK);
  EXPECT_TRUE(counts.allOnce());
  EXPECT_EQ(mlafix_run_task(0, 1, Counts::task, nullptr), MLAFIX_OK);
  EXPECT_EQ(mlafix_run_task(1, 1, nullptr, nullptr), MLAFIX_INVALID_ARGUMENT);
  EXPECT_EQ(mlafix_run_task(-1, 1, Counts::task, &counts),
            MLAFIX_INVALID_ARGUMENT);
  EXPECT_EQ(mlafix_run_task(1, 0, Counts::task, &counts),
            MLAFIX_INVALID_ARGUMENT);
  EXPECT_STREQ(mlafix_last_error(),
               "argument \"grain\": expected at least 1, got 0");
}

TEST(ThreadPool, ranges_begin_at_whole_batches_where_they_are_longer) {
  inFreshPool("2", [] {
    std::atomic<int> ranges{0}, crooked{0};
    struct State {
      std::atomic<int> &ranges, &crooked;
    } state{ranges, crooked};
    auto task = [](void *context, int64_t begin, int64_t end) {
      auto &state = *static_cast<State *>(context);
      ++state.ranges;
      state.crooked += begin % 100 != 0 || (end % 100 != 0 && end != 4097);
    };
    runtime::parallelFor(4097, 1, 100, task, &state);
    // Without batches, there are 8 ranges of 513 rows. If a batch has 100 rows,
    // ranges are whole batches: 7 ranges of 600 rows. A batch of 1000 rows is
    // longer than a range of 513 rows, so it changes nothing.
    bool isWhole = crooked == 0 && ranges == 7;
    runtime::parallelFor(4097, 1, 1000, task, &state);
    return isWhole && ranges == 7 + 8 && crooked > 0;
  });
}

TEST(ThreadPool, the_largest_count_is_covered_once_and_ends) {
  // The row count of a ragged grid may be any number, since it is only an upper
  // bound: the kernel processes no more than the rows of existing segments. So
  // parallelFor must also cover the largest count.
  inFreshPool("3", [] {
    for (int64_t count : {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2 + 1})
      for (int64_t batch : {1, 1 << 20}) {
        std::atomic<int64_t> rows{0}, wrong{0};
        struct State {
          std::atomic<int64_t> &rows, &wrong;
        } state{rows, wrong};
        auto task = [](void *context, int64_t begin, int64_t end) {
          auto &state = *static_cast<State *>(context);
          state.wrong += begin < 0 || end <= begin;
          state.rows += end - begin;
        };
        runtime::parallelFor(count, 1, batch, task, &state);
        if (rows != count || wrong != 0)
          return false;
      }
    return true;
  });
}

TEST(ThreadPool, small_jobs_stay_on_the_callers_thread) {
  struct Seen {
    std::thread::id id;
    int calls = 0;
  } seen;
  runtime::parallelFor(
      64, 64, 1,
      [](void *context, int64_t, int64_t) {
        auto *out = static_cast<Seen *>(context);
        out->id = std::this_thread::get_id();
        ++out->calls;
      },
      &seen);
  EXPECT_EQ(seen.id, std::this_thread::get_id());
  EXPECT_EQ(seen.calls, 1);
}

/// Returns the number of threads of this process.
long countThreads() {
  namespace fs = std::filesystem;
  return std::distance(fs::directory_iterator("/proc/self/task"),
                       fs::directory_iterator());
}

TEST(ThreadPool, small_jobs_start_no_thread) {
  inFreshPool("3", [] {
    auto nothing = [](void *, int64_t, int64_t) {};
    long before = countThreads();
    runtime::parallelFor(64, 64, 1, nothing, nullptr);
    long small = countThreads();
    runtime::parallelFor(65, 64, 1, nothing, nullptr);
    return small == before && countThreads() == before + 2;
  });
}

TEST(ThreadPool, several_threads_take_part) {
  inFreshPool("3", [] {
    // Each of the three rows waits until all three are being processed, so each
    // needs its own thread.
    std::atomic<int> arrived{0};
    runtime::parallelFor(
        3, 1, 1,
        [](void *context, int64_t begin, int64_t end) {
          auto &arrived = *static_cast<std::atomic<int> *>(context);
          arrived += static_cast<int>(end - begin);
          while (arrived < 3)
            std::this_thread::yield();
        },
        &arrived);
    return arrived == 3;
  });
}

TEST(ThreadPool, threads_have_a_stack_for_rows) {
  inFreshPool("2", [] {
    // Makes 2 MiB the default stack size of threads, as glibc does if the stack
    // size of the process is unlimited. The pool's threads must have 8 MiB.
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 2 << 20);
    pthread_setattr_default_np(&small);
    struct State {
      pthread_t caller = pthread_self();
      std::atomic<int> begun{0};
      std::atomic<size_t> bytes{0};
    } state;
    runtime::parallelFor(
        2, 1, 1,
        [](void *context, int64_t, int64_t) {
          auto &state = *static_cast<State *>(context);
          ++state.begun;
          while (state.begun < 2)
            std::this_thread::yield();
          if (pthread_equal(pthread_self(), state.caller))
            return;
          pthread_attr_t own;
          size_t bytes = 0;
          pthread_getattr_np(pthread_self(), &own);
          pthread_attr_getstacksize(&own, &bytes);
          pthread_attr_destroy(&own);
          state.bytes = bytes;
        },
        &state);
    return state.bytes >= 8 << 20;
  });
}

TEST(ThreadPool, returns_when_the_slowest_thread_is_done) {
  inFreshPool("2", [] {
    struct State {
      std::thread::id caller = std::this_thread::get_id();
      std::atomic<int> begun{0}, done{0};
    } state;
    runtime::parallelFor(
        2, 1, 1,
        [](void *context, int64_t, int64_t) {
          auto &state = *static_cast<State *>(context);
          ++state.begun;
          while (state.begun < 2)
            std::this_thread::yield();
          if (std::this_thread::get_id() != state.caller)
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
          ++state.done;
        },
        &state);
    return state.done == 2;
  });
}

TEST(ThreadPool, size_follows_the_environment) {
  setenv("MLAFIX_NUM_THREADS", "5", 1);
  runtime::reloadEnvironmentForTesting();
  EXPECT_EQ(runtime::usableThreads(), 5);
  EXPECT_EQ(mlafix_cpu_threads(), 5);
  setenv("MLAFIX_NUM_THREADS", "many", 1);
  testing::internal::CaptureStderr();
  runtime::reloadEnvironmentForTesting();
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "mlafix: expected MLAFIX_NUM_THREADS to be a number from 1 to 1024, "
      "got \"many\"; it counts as not set\n");
  int automatic = runtime::usableThreads();
  unsetenv("MLAFIX_NUM_THREADS");
  runtime::reloadEnvironmentForTesting();
  EXPECT_EQ(automatic, runtime::usableThreads());
  EXPECT_GE(automatic, 1);
}

TEST(ThreadPool, the_hosts_own_threads_can_do_the_work) {
  struct Host {
    int calls = 0;
    int64_t count = 0;
  } host;
  mlafix_set_parallel_for(
      [](void *user, int64_t count, int64_t, mlafix_task task, void *context) {
        auto *out = static_cast<Host *>(user);
        ++out->calls;
        out->count = count;
        for (int64_t i = count; i-- > 0;) // rows may be processed in any order
          task(context, i, i + 1);
      },
      &host);
  AddBiasCall call(9);
  call.launch(load(cpuOnlyUnit()).kernel("add_bias"));
  mlafix_set_parallel_for(nullptr, nullptr);
  EXPECT_TRUE(call.isDone());
  EXPECT_EQ(host.calls, 1);
  EXPECT_EQ(host.count, 9);
  call.launch(load(cpuOnlyUnit()).kernel("add_bias"));
  EXPECT_EQ(host.calls, 1) << "the pool again";
  mlafix_set_parallel_for(nullptr, nullptr);
}

//===----------------------------------------------------------------------===//
// Stacks
//===----------------------------------------------------------------------===//

/// Runs `body` on a new thread with a stack of `bytes` bytes.
template <typename Body> void onThread(size_t bytes, Body body) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
  pthread_t thread;
  auto run = [](void *context) -> void * {
    (*static_cast<Body *>(context))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &body), 0);
  pthread_attr_destroy(&attributes);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
}

/// Writes to every page of a large buffer on the stack.
struct StackUser {
  static constexpr size_t bytes = 4 << 20;
  pthread_t thread{};

  static void run(void *context) {
    volatile char buffer[bytes];
    for (size_t i = 0; i < bytes; i += 4096)
      buffer[i] = 1;
    static_cast<StackUser *>(context)->thread = pthread_self();
  }
};

TEST(ThreadStack, a_stack_with_room_is_used) {
  onThread(8 << 20, [] {
    StackUser user;
    EXPECT_TRUE(
        runtime::callWithStack(StackUser::bytes, StackUser::run, &user));
    EXPECT_TRUE(pthread_equal(user.thread, pthread_self()));
  });
}

TEST(ThreadStack, a_small_one_is_not) {
  onThread(512 << 10, [] {
    StackUser user;
    EXPECT_TRUE(
        runtime::callWithStack(StackUser::bytes, StackUser::run, &user));
    EXPECT_FALSE(pthread_equal(user.thread, pthread_self()));
  });
}

/// Returns a unit whose code declares that it needs `bytes` bytes of stack.
Unit unitOfStack(int64_t bytes) {
  UnitWriter writer = cpuOnlyUnit();
  writer.kernel()["code"][0]["variants"][0]["stack_bytes"] = bytes;
  return load(writer);
}

TEST(ThreadStack, a_unit_says_how_much_it_takes) {
  Unit unit = unitOfStack(32 << 20);
  AddBiasCall call(4);
  call.launch(unit.kernel("add_bias"));
  EXPECT_TRUE(call.isDone());
}

TEST(ThreadStack, one_that_the_system_refuses_is_an_error) {
  EXPECT_FALSE(
      runtime::callWithStack(size_t(1) << 60, StackUser::run, nullptr));
  // The C library does not keep a stack of this size when its thread ends, so
  // the launch below cannot reuse one and must allocate a new one.
  Unit unit = unitOfStack(60 << 20);
  unit.prepare(cpu());
  rlimit most{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &most), 0);
  onThread(512 << 10, [&] {
    rlimit none = {1, most.rlim_max};
    AddBiasCall call(4);
    ASSERT_EQ(setrlimit(RLIMIT_AS, &none), 0);
    expectError(MLAFIX_OUT_OF_MEMORY, {"62914560 bytes"},
                [&] { call.launch(unit.kernel("add_bias")); });
    ASSERT_EQ(setrlimit(RLIMIT_AS, &most), 0);
    EXPECT_TRUE(call.isUntouched());
  });
}

TEST(Log, goes_to_the_callback_until_it_is_taken_away) {
  std::vector<std::string> lines;
  mlafix_set_log_callback(
      [](void *user, mlafix_log_level, const char *message) {
        static_cast<std::vector<std::string> *>(user)->push_back(message);
      },
      &lines);
  load(cpuOnlyUnit()).prepare(cpu());
  mlafix_set_log_callback(nullptr, nullptr);
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines.back().find("add_bias"), std::string::npos) << lines.back();
  size_t before = lines.size();
  load(cpuOnlyUnit()).prepare(cpu());
  EXPECT_EQ(lines.size(), before);
}

} // namespace
