//===- ThreadStack.cpp - Room on a thread's stack -------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "ThreadPool.h"

#include <cstdint>
#include <pthread.h>

using namespace mlafix::runtime;

namespace {

/// Stack bytes kept free for what the stack size in a unit does not include:
/// saved registers and signal handlers.
constexpr size_t margin = 128 << 10;

/// The address range of a thread's stack. It is empty if the system does not
/// report it.
struct StackRange {
  uintptr_t begin = 0, end = 0;
};

StackRange findStack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0)
    return {};
  void *begin = nullptr;
  size_t bytes = 0;
  pthread_attr_getstack(&attributes, &begin, &bytes);
  pthread_attr_destroy(&attributes);
  auto address = reinterpret_cast<uintptr_t>(begin);
  return {address, address + bytes};
}

/// Returns true if `bytes` fit on this thread's stack. Returns false if the
/// caller runs on another stack, such as that of a fiber.
bool hasRoom(size_t bytes) {
  // Ask once per thread, since for the main thread the system reads a file.
  thread_local const StackRange stack = findStack();
  auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here >= stack.begin && here < stack.end &&
         here - stack.begin >= bytes + margin;
}

struct Work {
  void (*body)(void *);
  void *context;
};

void *runWork(void *argument) {
  auto *work = static_cast<Work *>(argument);
  work->body(work->context);
  return nullptr;
}

} // namespace

bool mlafix::runtime::callWithStack(size_t bytes, void (*body)(void *),
                                    void *context) {
  if (hasRoom(bytes)) {
    body(context);
    return true;
  }
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0)
    return false;
  Work work = {body, context};
  pthread_t thread;
  bool isStarted =
      pthread_attr_setstacksize(&attributes, bytes + 2 * margin) == 0 &&
      pthread_create(&thread, &attributes, runWork, &work) == 0;
  pthread_attr_destroy(&attributes);
  return isStarted && pthread_join(thread, nullptr) == 0;
}
