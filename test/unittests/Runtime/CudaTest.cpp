//===- CudaTest.cpp - The CUDA path on a fake driver ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Container.h"
#include "CudaCode.h"
#include "Environment.h"
#include "FakeCuda.h"
#include "TestUnit.h"

#include <cstdlib>
#include <set>
#include <thread>

using namespace mlafix;
using namespace mlafix::test;
namespace cu = mlafix::runtime::cuda;

namespace {

class Cuda : public testing::Test {
protected:
  FakeCuda fake;
  Unit unit = load(addBiasUnit());
  Kernel kernel = unit.kernel("add_bias");
  AddBiasCall call{20, cuda(0)};
};

TEST_F(Cuda, launches_with_geometry_parameters_and_stream) {
  int stream;
  call.launch(kernel, &stream);
  ASSERT_EQ(fake.launches.size(), 1u);
  const FakeCuda::Launch &launch = fake.launches[0];
  EXPECT_EQ(launch.entry, "add_bias_aligned");
  EXPECT_EQ(launch.image, "cubin sm_90");
  EXPECT_EQ(launch.grid, 3u); // 20 rows, 8 per block
  EXPECT_EQ(launch.block, 128u);
  EXPECT_EQ(launch.stream, &stream);
  float bias = 0.5f;
  uint64_t biasBits = 0;
  memcpy(&biasBits, &bias, 4);
  EXPECT_EQ(launch.params,
            (std::vector<uint64_t>{reinterpret_cast<uintptr_t>(call.out()),
                                   reinterpret_cast<uintptr_t>(call.in()), 4, 4,
                                   4, biasBits}));
}

/// The driver functions that launches need. A test fails if CudaDriver.def says
/// `Required` for any other function.
const std::set<std::string> launchFunctions = {
    "cuInit",
    "cuDriverGetVersion",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxGetState",
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxPushCurrent",
    "cuCtxPopCurrent",
    "cuThreadExchangeStreamCaptureMode",
    "cuLibraryLoadData",
    "cuLibraryUnload",
    "cuLibraryGetKernel",
    "cuKernelGetFunction",
    "cuKernelGetAttribute",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cuStreamGetCaptureInfo",
    "cuStreamWaitEvent",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventDestroy",
    "cuPointerGetAttributes",
};
std::string withheld;

int onlyLaunchFunctions(const char *name, void **function, int, uint64_t,
                        int *) {
  static char somewhere;
  bool isThere = launchFunctions.count(name) && name != withheld;
  *function = isThere ? &somewhere : nullptr;
  return isThere ? cu::success : 500;
}

TEST(CudaDriver, needs_what_launches_need_and_no_more) {
  runtime::CudaDriver driver;
  withheld = "";
  EXPECT_EQ(runtime::fillCudaDriver(onlyLaunchFunctions, driver), nullptr);
  for (const std::string &name : launchFunctions) {
    withheld = name;
    EXPECT_STREQ(runtime::fillCudaDriver(onlyLaunchFunctions, driver),
                 name.c_str());
  }
}

TEST_F(Cuda, launches_on_a_driver_without_the_functions_of_tools) {
  fake.hasToolFunctions = false;
  call.launch(kernel, nullptr);
  EXPECT_EQ(fake.numLaunches, 1);
  mlafix_cuda_entry entry = nullptr;
  EXPECT_EQ(mlafix_cuda_function("cuMemAlloc", 3020, &entry), MLAFIX_NOT_FOUND);
  EXPECT_EQ(entry, nullptr);
  EXPECT_STREQ(mlafix_last_error(),
               "expected a function of the CUDA driver as of CUDA 3.2, got "
               "\"cuMemAlloc\", which it does not have");
}

TEST_F(Cuda, gives_out_the_functions_of_the_driver) {
  mlafix_cuda_entry entry = nullptr;
  ASSERT_EQ(mlafix_cuda_function("cuDeviceGetCount", 2000, &entry), MLAFIX_OK);
  int count = 0;
  EXPECT_EQ(reinterpret_cast<int (*)(int *)>(entry)(&count), 0);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(mlafix_cuda_function(nullptr, 2000, &entry),
            MLAFIX_INVALID_ARGUMENT);
  EXPECT_EQ(mlafix_cuda_function("cuInit", 2000, nullptr),
            MLAFIX_INVALID_ARGUMENT);
}

TEST_F(Cuda, names_the_target_of_a_device) {
  char name[MLAFIX_MAX_TARGET_NAME];
  ASSERT_EQ(mlafix_device_target(cuda(0), name, sizeof(name)), MLAFIX_OK);
  EXPECT_STREQ(name, "sm_90");
  ASSERT_EQ(mlafix_device_target(cpu(), name, sizeof(name)), MLAFIX_OK);
  EXPECT_EQ(std::string(name).find(machineCodeTarget), 0u) << name;
  EXPECT_EQ(mlafix_device_target(cuda(7), name, sizeof(name)),
            MLAFIX_NOT_FOUND);
  EXPECT_EQ(mlafix_device_target(cpu(), name, 3), MLAFIX_INVALID_ARGUMENT);
}

TEST_F(Cuda, no_rows_launch_nothing_and_succeed) {
  AddBiasCall empty(0, cuda(0));
  empty.launch(kernel);
  EXPECT_TRUE(fake.launches.empty());
}

TEST_F(Cuda, a_guard_that_fails_selects_the_next_variant) {
  call.args[1] = call.tensor(call.in() + 1); // aligned to 4 bytes only
  call.launch(kernel);
  EXPECT_EQ(fake.launches.at(0).entry, "add_bias_any");
  std::vector<float> wide(1000);
  call.args[1] = Tensor::strided(wide.data(), MLAFIX_F32, {20, 4}, {6, 1},
                                 cuda(0)); // row stride of 24 bytes
  call.launch(kernel);
  EXPECT_EQ(fake.launches.at(1).entry, "add_bias_any");
}

TEST_F(Cuda, the_stride_of_a_single_row_does_not_matter_to_alignment) {
  AddBiasCall one(1, cuda(0));
  one.args[1] = Tensor::strided(one.in(), MLAFIX_F32, {1, 4}, {7, 1}, cuda(0));
  one.launch(kernel);
  EXPECT_EQ(fake.launches.at(0).entry, "add_bias_aligned");
}

//===----------------------------------------------------------------------===//
// Images
//===----------------------------------------------------------------------===//

TEST_F(Cuda, the_next_image_is_tried_when_one_is_refused) {
  fake.refused = {{"cubin sm_90", cu::errorNoBinaryForGpu},
                  {"ptx sm_90", cu::errorUnsupportedPtxVersion}};
  call.launch(kernel);
  EXPECT_EQ(fake.loads.size(), 3u) << "cubin and PTX of sm_90, PTX of sm_80";
  EXPECT_EQ(fake.loads[0], "cubin sm_90");
  EXPECT_NE(fake.loads[1].find("ptx sm_90"), std::string::npos);
  EXPECT_NE(fake.launches.at(0).image.find("ptx sm_80"), std::string::npos);
  EXPECT_STREQ(kernel.code(cuda(0)).target, "sm_80");
  EXPECT_STREQ(kernel.code(cuda(0)).format, "ptx");
}

TEST_F(Cuda, an_image_may_be_refused_as_late_as_its_functions_are_loaded) {
  fake.refusedLazily = {{"cubin sm_90", cu::errorNoBinaryForGpu}};
  call.launch(kernel);
  EXPECT_NE(fake.launches.at(0).image.find("ptx sm_90"), std::string::npos);
  EXPECT_EQ(fake.unloads, 1);
}

TEST_F(Cuda, all_refusals_are_listed) {
  fake.refused = {{"sm_90", cu::errorNoBinaryForGpu},
                  {"sm_80", cu::errorInvalidPtx}};
  expectError(MLAFIX_NO_IMAGE,
              {"\"add_bias\"", "cubin for sm_90", "PTX for sm_80",
               "CUDA_ERROR_NO_BINARY_FOR_GPU"},
              [&] { call.launch(kernel); });
  EXPECT_TRUE(fake.launches.empty());
}

TEST_F(Cuda, other_errors_are_not_passed_over) {
  fake.refused = {{"cubin sm_90", cu::errorOutOfMemory}};
  expectError(MLAFIX_OUT_OF_MEMORY, {"cuLibraryLoadData", "fake error"},
              [&] { call.launch(kernel); });
  EXPECT_EQ(fake.loads.size(), 1u);
}

TEST_F(Cuda, a_device_older_than_every_target_is_told_so) {
  fake.computeCapability = 75;
  expectError(MLAFIX_NO_IMAGE, {"cuda:0 (sm_75)", "sm_90, sm_80"},
              [&] { call.launch(kernel); });
}

TEST(CudaImages, are_ranked_as_the_unit_format_says) {
  UnitWriter writer = addBiasUnit();
  json &code = writer.kernel()["code"];
  json sm80 = code[2];
  for (const char *target : {"sm_86", "sm_103", "sm_100"}) {
    sm80["target"] = target;
    code.push_back(sm80);
  }
  std::vector<uint8_t> bytes = writer.finish();
  runtime::UnitDesc desc;
  ASSERT_EQ(runtime::parseUnit(bytes.data(), bytes.size(),
                               runtime::ChecksumPolicy::Verify, desc),
            MLAFIX_OK)
      << mlafix_last_error();
  auto ranked = [&](int device) {
    std::vector<std::string> names;
    for (const runtime::Candidate &candidate :
         runtime::rankImages(desc.kernels[0], device))
      names.push_back(
          candidate.code->target +
          (candidate.image->format == runtime::Image::Ptx ? "p" : "c"));
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(ranked(75), Names());
  EXPECT_EQ(ranked(80), (Names{"sm_80c", "sm_80p"}));
  EXPECT_EQ(ranked(89), (Names{"sm_86c", "sm_86p", "sm_80c", "sm_80p"}));
  EXPECT_EQ(ranked(90), (Names{"sm_90c", "sm_90p", "sm_86p", "sm_80p"}));
  EXPECT_EQ(ranked(103), (Names{"sm_103c", "sm_103p", "sm_100c", "sm_100p",
                                "sm_90p", "sm_86p", "sm_80p"}));
  EXPECT_EQ(ranked(120),
            (Names{"sm_103p", "sm_100p", "sm_90p", "sm_86p", "sm_80p"}));
}

TEST_F(Cuda, is_prepared_once_in_relaxed_capture_mode) {
  unit.prepare(cuda(0));
  unit.prepare(cuda(0));
  call.launch(kernel);
  EXPECT_EQ(fake.loads.size(), 1u);
  EXPECT_TRUE(fake.loadedInRelaxedMode);
  EXPECT_EQ(fake.captureMode, 0) << "the thread's mode is given back";
}

TEST_F(Cuda, preparing_from_many_threads_loads_once) {
  // Loading takes so long that all threads ask for the image while the first
  // one loads it.
  fake.loadMilliseconds = 50;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] { unit.prepare(cuda(0)); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(fake.loads.size(), 1u);
  EXPECT_EQ(fake.kernels.size(), 2u) << "one per variant";
}

TEST_F(Cuda, code_that_disagrees_with_the_manifest_is_refused) {
  fake.paramSizes = {8, 8, 8, 8, 8, 8};
  expectError(MLAFIX_BAD_UNIT, {"parameter 5", "expected 4 bytes", "takes 8"},
              [&] { unit.prepare(cuda(0)); });
  fake.paramSizes = {8, 8, 8, 8, 8};
  expectError(MLAFIX_BAD_UNIT, {"expected 6 parameters", "code with 5"},
              [&] { unit.prepare(cuda(0)); });
  fake.paramSizes = {8, 8, 8, 8, 8, 4};
  fake.maxThreads = 64;
  expectError(MLAFIX_BAD_UNIT, {"at most 64 threads", "128"},
              [&] { unit.prepare(cuda(0)); });
  fake.maxThreads = 1024;
  fake.missingEntries = {"add_bias_any"};
  expectError(MLAFIX_BAD_UNIT, {"\"add_bias_any\""},
              [&] { unit.prepare(cuda(0)); });
  fake.missingEntries.clear();
  EXPECT_NO_THROW(unit.prepare(cuda(0)));
}

TEST_F(Cuda, no_question_that_the_driver_answers_with_an_error) {
  unit.prepare(cuda(0));
  EXPECT_EQ(fake.refusedQuestions, 0);
}

TEST_F(Cuda, drivers_before_12_4_have_no_parameter_info) {
  fake.hasParamInfo = false;
  fake.rebuildTable();
  call.launch(kernel);
  EXPECT_EQ(fake.launches.size(), 1u);
}

TEST_F(Cuda, unloads_only_when_asked) {
  unit.prepare(cuda(0));
  ASSERT_EQ(mlafix_unit_unload(unit.get(), cuda(0)), MLAFIX_OK);
  EXPECT_EQ(fake.unloads, 1);
  call.launch(kernel); // loads the image again
  EXPECT_EQ(fake.loads.size(), 2u);
  int before = fake.unloads;
  {
    Unit other = load(addBiasUnit());
    other.prepare(cuda(0));
  }
  EXPECT_EQ(fake.unloads, before) << "graphs may hold the code";
}

//===----------------------------------------------------------------------===//
// Contexts and devices
//===----------------------------------------------------------------------===//

TEST_F(Cuda, a_current_context_is_used_as_it_is) {
  FakeCuda::current() = fake.primary(0);
  call.launch(kernel);
  EXPECT_EQ(fake.launches.at(0).context, fake.primary(0));
  EXPECT_EQ(fake.pushes, 0);
}

TEST_F(Cuda, a_primary_context_in_use_is_known_at_a_glance) {
  FakeCuda::current() = fake.primary(0);
  call.launch(kernel);
  int before = fake.deviceQuestions;
  call.launch(kernel);
  EXPECT_EQ(fake.deviceQuestions, before);
  EXPECT_EQ(fake.retains, 1) << "or its handle could become another device's";
  // A launch on the second device does not use the first device's context.
  AddBiasCall second(8, cuda(1));
  second.launch(kernel);
  EXPECT_EQ(fake.launches.at(2).context, fake.primary(1));
}

TEST_F(Cuda, a_context_of_the_users_own_makes_no_primary_one) {
  FakeCuda::current() = fake.own(0);
  call.launch(kernel);
  call.launch(kernel);
  EXPECT_EQ(fake.launches.at(1).context, fake.own(0));
  EXPECT_EQ(fake.retains, 0);
  EXPECT_EQ(fake.pushes, 0);
}

TEST_F(Cuda, without_a_context_the_primary_one_serves_and_goes) {
  call.launch(kernel);
  call.launch(kernel);
  EXPECT_EQ(fake.launches.at(0).context, fake.primary(0));
  EXPECT_EQ(fake.retains, 1);
  EXPECT_EQ(fake.pushes, fake.pops);
  EXPECT_EQ(FakeCuda::current(), nullptr);
}

TEST_F(Cuda, another_devices_context_is_put_aside) {
  FakeCuda::current() = fake.primary(0);
  AddBiasCall second(8, cuda(1));
  second.launch(kernel);
  EXPECT_EQ(fake.launches.at(0).context, fake.primary(1));
  EXPECT_EQ(FakeCuda::current(), fake.primary(0));
}

TEST_F(Cuda, a_context_is_popped_after_an_error_too) {
  unit.prepare(cuda(0));
  fake.launchResult = 700;
  expectError(MLAFIX_DRIVER_ERROR, {"cuLaunchKernel", "700"},
              [&] { call.launch(kernel); });
  EXPECT_EQ(fake.pushes, fake.pops);
}

TEST_F(Cuda, a_device_that_is_not_there) {
  call = AddBiasCall(8, cuda(2));
  expectError(MLAFIX_NOT_FOUND, {"cuda:2", "2 of them"},
              [&] { call.launch(kernel); });
  EXPECT_EQ(cudaDeviceCount(), 2);
}

TEST(CudaDriver, a_machine_without_one_says_so) {
  if (cudaDeviceCount() > 0)
    GTEST_SKIP() << "this machine has a GPU";
  Unit unit = load(addBiasUnit());
  expectError(MLAFIX_NO_DRIVER, {"CUDA driver"},
              [&] { unit.prepare(cuda(0)); });
}

//===----------------------------------------------------------------------===//
// Dependent launch
//===----------------------------------------------------------------------===//

TEST_F(Cuda, dependent_launch_follows_the_selected_images_flag) {
  call.launch(kernel);
  EXPECT_TRUE(fake.launches.at(0).dependent);
  Unit other = load(addBiasUnit());
  fake.refused = {{"sm_90", cu::errorNoBinaryForGpu}};
  call.launch(other.kernel("add_bias"));
  EXPECT_NE(fake.launches.at(1).image.find("sm_80"), std::string::npos);
  EXPECT_FALSE(fake.launches.at(1).dependent)
      << "PTX for sm_80 has no wait, whatever the device";
}

TEST_F(Cuda, dependent_launch_can_be_turned_off) {
  call.launch(kernel, nullptr, MLAFIX_LAUNCH_NO_DEPENDENT);
  EXPECT_FALSE(fake.launches.at(0).dependent);
  setenv("MLAFIX_NO_DEPENDENT_LAUNCH", "1", 1);
  runtime::reloadEnvironmentForTesting();
  call.launch(kernel);
  unsetenv("MLAFIX_NO_DEPENDENT_LAUNCH");
  runtime::reloadEnvironmentForTesting();
  EXPECT_FALSE(fake.launches.at(1).dependent);
}

//===----------------------------------------------------------------------===//
// Bound kernels
//===----------------------------------------------------------------------===//

TEST_F(Cuda, a_bound_launches_with_new_pointers) {
  Bound bound = kernel.bind(call.args, cuda(0));
  AddBiasCall other(20, cuda(0));
  bound.launch();
  bound.setPointers({other.out(), other.in() + 1, nullptr, nullptr, nullptr});
  bound.launch();
  ASSERT_EQ(fake.launches.size(), 2u);
  EXPECT_EQ(fake.launches[0].entry, "add_bias_aligned");
  EXPECT_EQ(fake.launches[1].entry, "add_bias_any") << "guards are asked anew";
  EXPECT_EQ(fake.launches[1].params[0],
            reinterpret_cast<uintptr_t>(other.out()));
}

TEST_F(Cuda, a_bound_refuses_bad_pointers_and_stays_as_it_was) {
  Bound bound = kernel.bind(call.args, cuda(0));
  expectError(MLAFIX_INVALID_ARGUMENT, {"\"out\"", "\"in\"", "overlap"}, [&] {
    bound.setPointers({call.in() + 4, call.in(), nullptr, nullptr, nullptr});
  });
  expectError(MLAFIX_INVALID_ARGUMENT, {"\"in\"", "null"}, [&] {
    bound.setPointers({call.out(), nullptr, nullptr, nullptr, nullptr});
  });
  expectError(MLAFIX_INVALID_ARGUMENT, {"\"scale\"", "omitted"}, [&] {
    bound.setPointers({call.out(), call.in(), call.in(), nullptr, nullptr});
  });
  expectError(MLAFIX_INVALID_ARGUMENT, {"expected 5 pointers", "got 2"}, [&] {
    bound.setPointers({call.out(), call.in()});
  });
  bound.launch();
  EXPECT_EQ(fake.launches.at(0).params[0],
            reinterpret_cast<uintptr_t>(call.out()));
}

TEST_F(Cuda, a_bound_takes_new_scalars) {
  Bound bound = kernel.bind(call.args, cuda(0));
  mlafix_arg value = {sizeof(mlafix_arg), MLAFIX_ARG_F32, {}};
  value.value.f32 = 2.0f;
  ASSERT_EQ(mlafix_bound_set_scalar(bound.get(), 3, &value), MLAFIX_OK);
  bound.launch();
  EXPECT_EQ(fake.launches.at(0).params[5], 0x40000000u);
  value.kind = MLAFIX_ARG_I64;
  value.value.i64 = 21;
  EXPECT_EQ(mlafix_bound_set_scalar(bound.get(), 4, &value),
            MLAFIX_INVALID_ARGUMENT);
  EXPECT_EQ(mlafix_bound_set_scalar(bound.get(), 3, &value),
            MLAFIX_INVALID_ARGUMENT);
  EXPECT_EQ(mlafix_bound_set_scalar(bound.get(), 0, &value),
            MLAFIX_INVALID_ARGUMENT);
}

TEST_F(Cuda, a_bound_takes_all_new_arguments_or_none) {
  AddBiasCall other(call.rows);
  Bound bound = kernel.bind(call.args, cuda(0));
  void *pointers[] = {other.out(), other.in(), nullptr, nullptr, nullptr};
  mlafix_arg scalars[5] = {};
  scalars[3] = {sizeof(mlafix_arg), MLAFIX_ARG_F32, {}};
  scalars[3].value.f32 = 2.0f;
  scalars[4] = {sizeof(mlafix_arg), MLAFIX_ARG_F32, {}};
  auto set = [&](const mlafix_arg *values) {
    return mlafix_bound_set_args(bound.get(), pointers, values, 5);
  };
  expectError(MLAFIX_INVALID_ARGUMENT,
              {"\"limit\"", "expected a scalar of dtype index"},
              [&] { check(set(scalars)); });
  bound.launch();
  EXPECT_EQ(fake.launches.at(0).params[0],
            reinterpret_cast<uintptr_t>(call.out()));
  EXPECT_NE(fake.launches.at(0).params[5], 0x40000000u);
  scalars[4].kind = MLAFIX_ARG_I64;
  scalars[4].value.i64 = call.rows;
  ASSERT_EQ(set(scalars), MLAFIX_OK) << mlafix_last_error();
  bound.launch();
  EXPECT_EQ(fake.launches.at(1).params[0],
            reinterpret_cast<uintptr_t>(other.out()));
  EXPECT_EQ(fake.launches.at(1).params[5], 0x40000000u);
  pointers[0] = call.out();
  ASSERT_EQ(set(nullptr), MLAFIX_OK) << mlafix_last_error();
  bound.launch();
  EXPECT_EQ(fake.launches.at(2).params[0],
            reinterpret_cast<uintptr_t>(call.out()));
  EXPECT_EQ(fake.launches.at(2).params[5], 0x40000000u);
}

TEST_F(Cuda, a_bound_exports_what_a_graph_node_needs) {
  Bound bound = kernel.bind(call.args, cuda(0));
  mlafix_launch_info info = bound.info();
  EXPECT_NE(info.function, nullptr);
  EXPECT_EQ(info.num_params, 6u);
  EXPECT_EQ(info.num_slots, 6u);
  EXPECT_EQ(info.grid_x, 3u);
  EXPECT_EQ(info.block_x, 128u);
  EXPECT_EQ(info.rows, 20);
  EXPECT_EQ(info.dependent, 1);
  EXPECT_STREQ(info.entry, "add_bias_aligned");
  for (uint32_t i = 0; i < info.num_params; ++i)
    EXPECT_EQ(info.kernel_params[i], &info.slots[i]);
  EXPECT_EQ(info.slots[0], reinterpret_cast<uintptr_t>(call.out()));
  EXPECT_TRUE(fake.launches.empty());
}

} // namespace
