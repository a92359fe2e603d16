//===- Finalization.h - threads at the interpreter's end --------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A daemon thread may be in a call when the program ends. Before Python 3.14,
// the interpreter ends such a thread by pthread_exit as soon as the thread asks
// for the interpreter's lock. pthread_exit unwinds the stack: objects are
// destroyed without the lock, and functions that must not throw end the process
// by std::terminate. A thread that is compiling at that time also uses globals
// that exit() destroys. So the end of the program waits for running calls, and
// a thread that cannot get the lock back sleeps until the process is gone.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_SHARED_FINALIZATION_H
#define MLAFIX_PYTHON_SHARED_FINALIZATION_H

#include <atomic>
#include <chrono>
#include <nanobind/nanobind.h>
#include <pthread.h>
#include <thread>
#include <unistd.h>

namespace mlafix::python {

/// Makes the calling thread sleep until the process is gone, as Python 3.14
/// does with daemon threads.
[[noreturn]] inline void waitForExit() {
  for (;;)
    pause();
}

/// Releases the lock as nanobind's gil_scoped_release does. If the interpreter
/// ends and does not give the lock back, the thread waits until the process is
/// gone.
class ReleasedLock {
public:
  ReleasedLock() : state(PyEval_SaveThread()) {}
  ~ReleasedLock() noexcept(false) {
    struct Unwinding {
      bool isReturned = false;
      ~Unwinding() {
        if (!isReturned)
          waitForExit();
      }
    } unwinding;
    PyEval_RestoreThread(state);
    unwinding.isReturned = true;
  }
  ReleasedLock(const ReleasedLock &) = delete;
  ReleasedLock &operator=(const ReleasedLock &) = delete;

private:
  PyThreadState *state;
};

/// Marks that this thread is in a function of this module that releases the
/// lock or calls Python code. When the interpreter begins to end, it waits
/// until running functions of this kind return. If another thread then calls
/// such a function, that thread sleeps until the process is gone. Constructed
/// and destroyed with the lock held.
class Call {
public:
  Call() {
    ++running;
    // A nested call (depth > 1) may start even if the interpreter is ending,
    // since the interpreter waits for the outer call.
    if (++depth == 1 && isOver && pthread_self() != ending) {
      --running;
      PyEval_SaveThread();
      waitForExit();
    }
  }
  ~Call() {
    --running;
    --depth;
  }
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  /// Makes `atexit` wait for running calls. To be called once, when the module
  /// is loaded. Python runs functions of `atexit` after it has joined other
  /// threads, and before it ends daemon threads.
  static void waitAtExit() {
    nanobind::module_::import_("atexit").attr("register")(
        nanobind::cpp_function(finish));
    pthread_atfork(nullptr, nullptr, [] { running = depth; });
  }

private:
  static void finish() {
    // The wait has a limit, since a call may never return, for example if it
    // calls a Python method that blocks.
    constexpr std::chrono::seconds most(30);
    auto end = std::chrono::steady_clock::now() + most;
    ending = pthread_self();
    isOver = true;
    ReleasedLock released;
    while (running > depth && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  static inline std::atomic<int> running{0};
  static inline thread_local int depth = 0;
  static inline std::atomic<bool> isOver{false};
  static inline std::atomic<pthread_t> ending{};
};

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_SHARED_FINALIZATION_H
