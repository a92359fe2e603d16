//===- ParallelTest.cpp - Distributes work over cores ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/Parallel.h"

#include "gtest/gtest.h"
#include <atomic>
#include <thread>
#include <vector>

using namespace mlafix;

TEST(ParallelFor, does_every_piece_once) {
  for (size_t count : {0, 1, 3, 100}) {
    std::vector<std::atomic<int>> done(count);
    parallelFor(count, [&](size_t i) { ++done[i]; });
    for (std::atomic<int> &times : done)
      EXPECT_EQ(times, 1);
  }
}

TEST(ParallelFor, serves_several_threads_within_the_cores_there_are) {
  std::atomic<int> running{0}, most{0}, sum{0};
  auto caller = [&] {
    for (int round = 0; round < 20; ++round)
      parallelFor(8, [&](size_t i) {
        int now = ++running;
        int before = most;
        while (before < now && !most.compare_exchange_weak(before, now))
          ;
        std::this_thread::yield();
        sum += static_cast<int>(i);
        --running;
      });
  };
  constexpr int callers = 4;
  std::vector<std::thread> threads;
  for (int i = 0; i < callers; ++i)
    threads.emplace_back(caller);
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(sum, callers * 20 * 28);
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  EXPECT_LE(most, callers + cores - 1);
}
