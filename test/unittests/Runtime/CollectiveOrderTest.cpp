//===- CollectiveOrderTest.cpp - Collectives in several streams -----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "PeersCall.h"

using namespace mlafix;
using namespace mlafix::test;

namespace {

void *stream(uintptr_t number) {
  return reinterpret_cast<void *>(number * 0x10);
}

class CollectiveOrder : public Peers {
protected:
  /// Launches on stream `on` in group `of` ('A', 'B', …). Returns the launch
  /// and the waits and records of events that the runtime asks the driver for.
  std::vector<std::string> work(char of, void *on, uint32_t rank = 2) {
    workspaces[0] = reinterpret_cast<void *>(uintptr_t(of) * 128);
    group.rank = rank;
    fake.streamWork.clear();
    call.launch(kernel, on);
    return fake.streamWork;
  }
  std::vector<std::string> work(char of, uintptr_t on, uint32_t rank = 2) {
    return work(of, stream(on), rank);
  }
};

using Work = std::vector<std::string>;

} // namespace

TEST_F(CollectiveOrder, a_group_alone_waits_for_nothing) {
  EXPECT_EQ(work('A', 1), (Work{"launch", "record 1 on 0x10"}));
  EXPECT_EQ(work('A', 1), (Work{"launch", "record 1 on 0x10"}));
  // The caller orders launches of one group on two streams, so the runtime adds
  // no wait.
  EXPECT_EQ(work('A', 2), (Work{"launch", "record 1 on 0x20"}));
}

TEST_F(CollectiveOrder, groups_wait_for_each_other) {
  work('A', 1);
  EXPECT_EQ(work('B', 2),
            (Work{"wait 1 on 0x20", "launch", "record 2 on 0x20"}));
  EXPECT_EQ(work('B', 2), (Work{"launch", "record 2 on 0x20"}));
  EXPECT_EQ(work('A', 1),
            (Work{"wait 2 on 0x10", "launch", "record 1 on 0x10"}));
  EXPECT_EQ(work('C', 3),
            (Work{"wait 1 on 0x30", "launch", "record 2 on 0x30"}));
}

TEST_F(CollectiveOrder, a_stream_is_an_order) {
  work('A', 1);
  EXPECT_EQ(work('B', 1), (Work{"launch", "record 2 on 0x10"}));
  EXPECT_EQ(work('A', 1), (Work{"launch", "record 1 on 0x10"}));
}

TEST_F(CollectiveOrder, ranks_of_one_group_run_at_once) {
  work('A', 1, 0);
  EXPECT_EQ(work('A', 2, 1), (Work{"launch", "record 2 on 0x20"}));
  EXPECT_EQ(work('B', 1, 0),
            (Work{"wait 2 on 0x10", "launch", "record 3 on 0x10"}));
  EXPECT_EQ(work('B', 2, 1),
            (Work{"wait 1 on 0x20", "launch", "record 4 on 0x20"}));
  EXPECT_EQ(work('B', 2, 1), (Work{"launch", "record 4 on 0x20"}));
}

TEST_F(CollectiveOrder, of_bound_launches_as_well) {
  Bound bound = kernel.bind(call.args, cuda(0));
  work('A', 1);
  fake.streamWork.clear();
  bound.launch(stream(2));
  EXPECT_EQ(fake.streamWork,
            (Work{"wait 1 on 0x20", "launch", "record 2 on 0x20"}));
}

TEST_F(CollectiveOrder, the_stream_of_each_thread_is_as_many) {
  void *perThread = reinterpret_cast<void *>(2);
  work('A', perThread);
  EXPECT_EQ(work('B', perThread),
            (Work{"wait 1 on 0x2", "launch", "record 2 on 0x2"}));
}

TEST_F(CollectiveOrder, a_capture_has_an_order_of_its_own) {
  work('A', 1);
  fake.captures = {{stream(2), 5}, {stream(3), 5}, {stream(4), 6}};
  EXPECT_EQ(work('B', 2), (Work{"launch", "record 2 on 0x20"}));
  EXPECT_EQ(work('C', 3),
            (Work{"wait 2 on 0x30", "launch", "record 3 on 0x30"}));
  // A launch outside of the capture, or in another capture, does not wait for
  // launches in the capture.
  EXPECT_EQ(work('A', 4).size(), 2u);
  EXPECT_EQ(work('A', 1), (Work{"launch", "record 1 on 0x10"}));
  fake.captures.clear();
  EXPECT_EQ(work('B', 4).front(), "wait 1 on 0x40");
}

TEST_F(CollectiveOrder, each_context_has_events_of_its_own) {
  work('A', 1);
  FakeCuda::current() = fake.own(0);
  EXPECT_EQ(work('A', 2),
            (Work{"launch", "destroy 1 on (nil)", "record 2 on 0x20"}));
}

TEST_F(CollectiveOrder, a_context_that_is_gone_is_not_waited_for) {
  work('A', 1);
  fake.waitResult = runtime::cuda::errorContextIsDestroyed;
  EXPECT_EQ(work('B', 2),
            (Work{"wait 1 on 0x20", "launch", "record 2 on 0x20"}));
  fake.waitResult = runtime::cuda::errorInvalidValue;
  expectError(MLAFIX_DRIVER_ERROR, {"cuStreamWaitEvent"},
              [&] { work('A', 1); });
}

TEST_F(CollectiveOrder, a_launch_that_fails_is_not_waited_for) {
  work('A', 1);
  fake.launchResult = runtime::cuda::errorInvalidValue;
  expectError(MLAFIX_DRIVER_ERROR, {"cuLaunchKernel"}, [&] { work('B', 2); });
  fake.launchResult = runtime::cuda::success;
  EXPECT_EQ(work('C', 3),
            (Work{"wait 1 on 0x30", "launch", "record 2 on 0x30"}));
}

TEST_F(CollectiveOrder, devices_have_orders_of_their_own) {
  work('A', 1);
  each.device = cuda(1);
  call = AddBiasCall(8, cuda(1));
  call.args[1] = Arg(peers);
  EXPECT_EQ(work('B', 2), (Work{"launch", "record 2 on 0x20"}));
}

TEST_F(CollectiveOrder, other_kernels_have_none) {
  Unit plain = load(addBiasUnit());
  fake.paramSizes = {8, 8, 8, 8, 8, 4};
  AddBiasCall{8, cuda(0)}.launch(plain.kernel("add_bias"), stream(1));
  EXPECT_EQ(fake.streamWork, (Work{"launch"}));
}
