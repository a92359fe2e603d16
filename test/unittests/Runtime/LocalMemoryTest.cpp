//===- LocalMemoryTest.cpp - Detects memory of other GPUs -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"
#include "TestUnit.h"

#include <chrono>
#include <thread>

using namespace mlafix;
using namespace mlafix::test;
namespace cu = mlafix::runtime::cuda;

namespace {

/// The index of the parameter of kind "local". These tests check that this
/// parameter is 1 if all memory that the kernel reads is on the device of the
/// launch, and 0 if not.
constexpr size_t local = 6;

/// Launches on device 0 with tensors in memory of different devices.
class LocalMemory : public testing::Test {
protected:
  static UnitWriter prefetchingUnit() {
    UnitWriter writer = addBiasUnit();
    for (json &variant : writer.kernel()["code"][1]["variants"])
      variant["params"].push_back({{"kind", "local"}});
    return writer;
  }

  LocalMemory() {
    fake.paramSizes.push_back(4);
    for (uint64_t at : {outMemory, ownMemory})
      fake.allocations[at] = {size, 0, cu::memoryTypeDevice, 0};
    fake.allocations[peerMemory] = {size, 1, cu::memoryTypeDevice, 0};
    fake.allocations[hostMemory] = {size, 0, cu::memoryTypeHost, 0};
  }

  /// Launches with these addresses. Returns the value of the parameter `local`.
  uint64_t launch(uint64_t out, uint64_t in) {
    fake.launches.clear();
    makeCall(out, in).launch(kernel);
    return fake.launches.at(0).params.at(local);
  }
  static AddBiasCall makeCall(uint64_t out, uint64_t in) {
    AddBiasCall call{8, cuda(0)};
    call.args[0] = call.tensor(reinterpret_cast<float *>(out));
    call.args[1] = call.tensor(reinterpret_cast<float *>(in));
    return call;
  }
  /// Waits until the runtime's stored answers about pointers have expired.
  static void forget() {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }

  // The fake driver never accesses this memory.
  static constexpr size_t size = size_t(8) << 20;
  static constexpr uint64_t outMemory = uint64_t(0x7f00) << 32,
                            ownMemory = outMemory + 4 * size,
                            peerMemory = outMemory + 8 * size,
                            hostMemory = outMemory + 12 * size,
                            noMemory = outMemory + 16 * size;
  FakeCuda fake;
  Unit unit = load(prefetchingUnit());
  Kernel kernel = unit.kernel("add_bias");
};

TEST_F(LocalMemory, is_what_the_launch_reads_on_its_device) {
  EXPECT_EQ(launch(outMemory, ownMemory), 1u);
  EXPECT_EQ(launch(outMemory, peerMemory), 0u);
  EXPECT_EQ(launch(outMemory, peerMemory + size - 256), 0u);
  EXPECT_EQ(launch(outMemory, hostMemory), 0u);
  EXPECT_EQ(launch(outMemory, noMemory), 0u);
  // A tensor that is only written is not prefetched, so its device does not
  // matter.
  EXPECT_EQ(launch(peerMemory, ownMemory), 1u);
  EXPECT_EQ(launch(outMemory, ownMemory), 1u);
}

TEST_F(LocalMemory, is_that_of_the_device_of_the_launch) {
  AddBiasCall call{8, cuda(1)};
  call.args[0] = call.tensor(reinterpret_cast<float *>(outMemory));
  call.args[1] = call.tensor(reinterpret_cast<float *>(peerMemory));
  call.launch(kernel);
  EXPECT_EQ(fake.launches.at(0).params.at(local), 1u);
  EXPECT_EQ(launch(outMemory, peerMemory), 0u);
}

TEST_F(LocalMemory, counts_omitted_tensors_as_local_and_every_other) {
  AddBiasCall call = makeCall(outMemory, ownMemory);
  call.args[2] = Tensor::strided(reinterpret_cast<void *>(peerMemory),
                                 MLAFIX_F32, {8}, {1}, cuda(0));
  // The code of add_bias takes no pointer to its scale. In this unit, parameter
  // 2 becomes that pointer.
  UnitWriter writer = prefetchingUnit();
  for (json &variant : writer.kernel()["code"][1]["variants"])
    variant["params"][2] = {{"kind", "pointer"}, {"arg", 2}};
  Unit reading = load(writer);
  Kernel reader = reading.kernel("add_bias");
  call.launch(reader);
  call.args[2] = Tensor::none();
  call.launch(reader);
  ASSERT_EQ(fake.launches.size(), 2u);
  EXPECT_EQ(fake.launches[0].params.at(local), 0u);
  EXPECT_EQ(fake.launches[1].params.at(local), 1u);
}

TEST_F(LocalMemory, is_asked_of_the_driver_now_and_then) {
  constexpr int launches = 1000;
  for (int i = 0; i < launches; ++i)
    EXPECT_EQ(launch(outMemory, i % 2 ? ownMemory : peerMemory), i % 2);
  EXPECT_GE(fake.pointerQuestions, 2);
  EXPECT_LT(fake.pointerQuestions, launches);
}

TEST_F(LocalMemory, mapped_again_gets_a_new_answer) {
  EXPECT_EQ(launch(outMemory, peerMemory), 0u);
  EXPECT_EQ(launch(outMemory, ownMemory), 1u);
  fake.allocations[peerMemory].ordinal = 0;
  fake.allocations[ownMemory].ordinal = 1;
  forget();
  EXPECT_EQ(launch(outMemory, peerMemory), 1u);
  EXPECT_EQ(launch(outMemory, ownMemory), 0u);
}

TEST_F(LocalMemory, is_asked_about_in_a_capture_too) {
  fake.captureMode = 0; // cudaStreamCaptureModeGlobal
  EXPECT_EQ(launch(outMemory, peerMemory), 0u);
  EXPECT_GE(fake.pointerQuestions, 1);
  EXPECT_TRUE(fake.askedInRelaxedMode);
  EXPECT_EQ(fake.captureMode, 0);
}

TEST_F(LocalMemory, that_the_driver_says_nothing_about_is_the_devices) {
  fake.pointerResult = cu::errorInvalidValue;
  EXPECT_EQ(launch(outMemory, peerMemory), 1u);
}

TEST_F(LocalMemory, of_bound_calls_is_asked_about_at_each_launch) {
  AddBiasCall call = makeCall(outMemory, ownMemory);
  Bound bound = kernel.bind(call.args, cuda(0));
  EXPECT_EQ(bound.info().slots[local], 1u);
  bound.launch();
  fake.allocations[ownMemory].ordinal = 1;
  forget();
  bound.launch();
  ASSERT_EQ(fake.launches.size(), 2u);
  EXPECT_EQ(fake.launches[0].params.at(local), 1u);
  EXPECT_EQ(fake.launches[1].params.at(local), 0u);
  bound.setPointers({reinterpret_cast<void *>(outMemory),
                     reinterpret_cast<void *>(peerMemory), nullptr, nullptr,
                     nullptr});
  EXPECT_EQ(bound.info().slots[local], 0u);
}

TEST_F(LocalMemory, of_kernels_that_do_not_prefetch_is_not_asked_about) {
  fake.paramSizes.pop_back();
  Unit plain = load(addBiasUnit());
  makeCall(outMemory, peerMemory).launch(plain.kernel("add_bias"));
  EXPECT_EQ(fake.numLaunches, 1);
  EXPECT_EQ(fake.pointerQuestions, 0);
}

} // namespace
