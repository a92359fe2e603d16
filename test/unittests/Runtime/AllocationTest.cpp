//===- AllocationTest.cpp - A prepared launch allocates nothing -----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Replaces operator new in the whole test program, to count its calls on each
// thread. Sanitizers replace operator new themselves, so the tests do not run
// under them.
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"
#include "TestUnit.h"

#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MLAFIX_OWN_NEW 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MLAFIX_OWN_NEW 0
#endif
#endif
#ifndef MLAFIX_OWN_NEW
#define MLAFIX_OWN_NEW 1
#endif

static thread_local int allocations = 0;

#if MLAFIX_OWN_NEW
// Without noinline, GCC would inline only one of new and delete, and warn that
// they do not match.
__attribute__((noinline)) void *operator new(size_t size) {
  ++allocations;
  if (void *memory = std::malloc(size ? size : 1))
    return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void *memory) noexcept {
  std::free(memory);
}
__attribute__((noinline)) void operator delete(void *memory, size_t) noexcept {
  std::free(memory);
}
#endif

using namespace mlafix;
using namespace mlafix::test;

namespace {

/// Returns the number of allocations in three runs of `body`, after a first run
/// that is not counted.
template <typename Body> int countAllocations(Body body) {
  body();
  int before = allocations;
  for (int i = 0; i < 3; ++i)
    body();
  return allocations - before;
}

class Allocation : public testing::Test {
protected:
  void SetUp() override {
    if (!MLAFIX_OWN_NEW)
      GTEST_SKIP() << "a sanitizer has its own operator new";
  }

  /// Expects that launches through the C interface allocate nothing: an
  /// ordinary launch, a launch of a bound call with new pointers, and a launch
  /// that fails.
  void expectNone(AddBiasCall &call, uint32_t flags) {
    Unit unit = load(addBiasUnit());
    Kernel kernel = unit.kernel("add_bias");
    mlafix_tensor views[5];
    mlafix_arg args[5];
    for (int i = 0; i < 5; ++i)
      args[i] = call.args[i].pack(kernel.arg(i).kind, views[i]);
    Bound bound = kernel.bind(call.args, call.device);
    void *pointers[5] = {call.out(), call.in()};
    EXPECT_EQ(countAllocations([&] {
                ASSERT_EQ(mlafix_launch(kernel.get(), args, 5, call.device,
                                        nullptr, flags),
                          MLAFIX_OK)
                    << mlafix_last_error();
              }),
              0);
    EXPECT_EQ(countAllocations([&] {
                mlafix_bound_set_pointers(bound.get(), pointers, 5);
                ASSERT_EQ(mlafix_bound_launch(bound.get(), nullptr, flags),
                          MLAFIX_OK);
              }),
              0);
    args[4].value.i64 = -1;
    EXPECT_EQ(countAllocations([&] {
                ASSERT_EQ(mlafix_launch(kernel.get(), args, 5, call.device,
                                        nullptr, flags),
                          MLAFIX_INVALID_ARGUMENT);
              }),
              0)
        << "nor does one that fails";
  }
};

TEST_F(Allocation, the_counter_counts) {
  EXPECT_EQ(countAllocations([] {
              // Volatile, so that the compiler keeps the allocation.
              int *volatile pointer = new int;
              delete pointer;
            }),
            3);
}

TEST_F(Allocation, none_on_the_cpu) {
  AddBiasCall small(8), large(100000);
  expectNone(small, 0);
  expectNone(large, 0);
}

TEST_F(Allocation, none_on_a_gpu) {
  FakeCuda fake;
  fake.keepLaunches = false;
  AddBiasCall call(8, cuda(0));
  expectNone(call, 0);
  expectNone(call, MLAFIX_LAUNCH_NO_DEPENDENT);
  EXPECT_GT(fake.numLaunches, 0);
  FakeCuda::current() = fake.primary(0);
  expectNone(call, 0);
}

} // namespace
