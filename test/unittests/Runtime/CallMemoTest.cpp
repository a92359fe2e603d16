//===- CallMemoTest.cpp - Repeated calls skip checks ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "FakeCuda.h"
#include "TestUnit.h"
#include "Unit.h"

#include <random>
#include <thread>

using namespace mlafix;
using namespace mlafix::test;

namespace {

/// A call of add_bias, in the structs of the C interface.
struct RawCall {
  int64_t sizes[3][2] = {{8, 4}, {8, 4}, {8, 0}};
  int64_t strides[3][2] = {{4, 1}, {4, 1}, {1, 0}};
  mlafix_tensor tensors[3] = {};
  mlafix_arg args[5] = {};
  uint32_t numArgs = 5;
  mlafix_device device = cuda(0);
  uint32_t flags = 0;

  RawCall(void *out, void *in) {
    for (int i = 0; i < 3; ++i)
      tensors[i] = {sizeof(mlafix_tensor),
                    MLAFIX_F32,
                    i < 2 ? 2u : 1u,
                    cuda(0),
                    nullptr,
                    nullptr,
                    nullptr};
    tensors[0].data = out;
    tensors[1].data = in;
    for (mlafix_arg &arg : args) {
      arg.struct_size = sizeof(mlafix_arg);
      arg.kind = MLAFIX_ARG_TENSOR;
    }
    args[3].kind = MLAFIX_ARG_F32;
    args[3].value.f32 = 0.5f;
    args[4].kind = MLAFIX_ARG_I64;
    args[4].value.i64 = 8;
    has[0] = has[1] = true;
  }

  bool has[3] = {}, hasStrides[3] = {true, true, true};

  /// Returns the arguments, after setting their pointers to members of this
  /// object. The pointers are not set earlier, since those in a copy of the
  /// object would point to members of the original.
  const mlafix_arg *packed() {
    for (int i = 0; i < 3; ++i) {
      tensors[i].sizes = sizes[i];
      tensors[i].strides = hasStrides[i] ? strides[i] : nullptr;
      if (args[i].kind == MLAFIX_ARG_TENSOR)
        args[i].value.tensor = has[i] ? &tensors[i] : nullptr;
    }
    return args;
  }
  mlafix_status launch(const Kernel &kernel) {
    return mlafix_launch(kernel.get(), packed(), numArgs, device, nullptr,
                         flags);
  }
};

class CallMemo : public testing::Test {
protected:
  /// Returns a unit of add_bias with an additional first variant, for calls
  /// whose `out` and `in` start at different addresses.
  static UnitWriter guardedUnit() {
    UnitWriter writer = addBiasUnit();
    json &variants = writer.kernel()["code"][1]["variants"];
    json apart = variants[0];
    apart["entry"] = "add_bias_apart";
    apart["guards"].push_back(
        {{"kind", "distinct"}, {"args", json::array({0, 1})}});
    variants[0]["guards"][0]["bytes"] = 8;
    variants.insert(variants.begin(), apart);
    return writer;
  }

  alignas(64) char memory[4096];
  FakeCuda fake;
  UnitWriter writer = guardedUnit();
  Unit unit = load(writer);
  Kernel kernel = unit.kernel("add_bias");
  RawCall call{memory, memory + 1024};

  /// Returns true if the kernel's memo recognises the call as a repeated one.
  bool isKnown(RawCall changed) {
    const runtime::PreparedKernel *prepared =
        runtime::preparedKernel(*kernel.get(), changed.device);
    runtime::Plan plan;
    return prepared &&
           prepared->memo.recall(changed.packed(), changed.numArgs,
                                 changed.device, changed.flags, plan);
  }

  struct Outcome {
    mlafix_status status;
    std::string message;
    std::vector<std::string> entries;
    std::vector<unsigned> grids;
    std::vector<uint64_t> params;
    bool operator==(const Outcome &other) const {
      return status == other.status && message == other.message &&
             entries == other.entries && grids == other.grids &&
             params == other.params;
    }
  };
  Outcome outcome(const Kernel &of, RawCall made) {
    fake.launches.clear();
    Outcome result = {made.launch(of), "", {}, {}, {}};
    if (result.status != MLAFIX_OK)
      result.message = mlafix_last_error();
    for (const FakeCuda::Launch &launch : fake.launches) {
      result.entries.push_back(launch.entry);
      result.grids.push_back(launch.grid);
      result.params = launch.params;
    }
    return result;
  }
};

TEST_F(CallMemo, knows_a_call_on_other_memory) {
  EXPECT_FALSE(isKnown(call));
  ASSERT_EQ(call.launch(kernel), MLAFIX_OK);
  EXPECT_TRUE(isKnown(call));
  call.tensors[0].data = memory + 2048;
  call.tensors[1].data = memory + 512;
  EXPECT_TRUE(isKnown(call));
  call.launch(kernel);
  ASSERT_EQ(fake.launches.size(), 2u);
  EXPECT_EQ(fake.launches[1].entry, "add_bias_apart");
  EXPECT_EQ(fake.launches[1].params[0],
            reinterpret_cast<uintptr_t>(memory + 2048));
  EXPECT_EQ(fake.launches[1].params[1],
            reinterpret_cast<uintptr_t>(memory + 512));
}

TEST_F(CallMemo, knows_what_is_omitted_in_either_way) {
  ASSERT_EQ(call.launch(kernel), MLAFIX_OK);
  call.hasStrides[0] = false; // without strides, a tensor is contiguous
  EXPECT_TRUE(isKnown(call));
  call.has[2] = true; // null data also means omitted
  EXPECT_TRUE(isKnown(call));
  call.flags = MLAFIX_LAUNCH_NO_DEPENDENT | MLAFIX_LAUNCH_ASSUME_DISJOINT;
  EXPECT_TRUE(isKnown(call));
}

TEST_F(CallMemo, knows_calls_in_place_as_calls_in_place) {
  call.tensors[1].data = memory;
  ASSERT_EQ(call.launch(kernel), MLAFIX_OK);
  EXPECT_TRUE(isKnown(call));
  call.tensors[0].data = call.tensors[1].data = memory + 64;
  EXPECT_TRUE(isKnown(call));
  call.tensors[1].data = memory + 2048;
  EXPECT_FALSE(isKnown(call)) << "another variant's";
}

TEST_F(CallMemo, knows_where_tensors_may_lie_on_each_other) {
  // No variant of this unit depends on aliasing, so the memo does not
  // distinguish calls in place from others.
  kernel = load(addBiasUnit()).kernel("add_bias");
  ASSERT_EQ(call.launch(kernel), MLAFIX_OK);
  RawCall inPlace = call;
  inPlace.tensors[1].data = memory;
  EXPECT_TRUE(isKnown(inPlace));
  // An input whose strides are not those of the output must not overlap it.
  call.strides[1][0] = inPlace.strides[1][0] = 8;
  ASSERT_EQ(call.launch(kernel), MLAFIX_OK);
  EXPECT_TRUE(isKnown(call));
  EXPECT_FALSE(isKnown(inPlace));
}

TEST_F(CallMemo, does_not_know_what_a_check_or_the_plan_would_look_at) {
  ASSERT_EQ(call.launch(kernel), MLAFIX_OK);
  auto changed = [&](auto change) {
    // The memo stops looking up calls after many unknown ones. This known call
    // makes the memo look up the next call, `other`.
    EXPECT_TRUE(isKnown(call));
    RawCall other = call;
    change(other);
    return isKnown(other);
  };
  using C = RawCall &;
  EXPECT_TRUE(changed([](C) {}));
  EXPECT_FALSE(changed([](C c) { c.numArgs = 4; }));
  EXPECT_FALSE(changed([](C c) { c.flags = MLAFIX_LAUNCH_DEEP_CHECKS; }));
  EXPECT_FALSE(changed([](C c) { c.flags = 1u << 30; }));
  EXPECT_FALSE(changed([](C c) { c.sizes[0][0] = c.sizes[1][0] = 7; }));
  EXPECT_FALSE(changed([](C c) { c.strides[1][0] = 8; }));
  EXPECT_FALSE(changed([](C c) { c.tensors[1].dtype = MLAFIX_I32; }));
  EXPECT_FALSE(changed([](C c) { c.tensors[1].ndim = 1; }));
  EXPECT_FALSE(changed([](C c) { c.tensors[1].device = cuda(1); }));
  EXPECT_FALSE(changed([](C c) { c.tensors[1].device = cpu(); }));
  EXPECT_FALSE(changed([](C c) { c.tensors[1].struct_size = 8; }));
  EXPECT_FALSE(changed([](C c) { c.tensors[1].data = nullptr; }));
  EXPECT_FALSE(changed([](C c) { c.has[1] = false; }));
  EXPECT_FALSE(changed([&](C c) {
    c.tensors[2].data = memory;
    c.has[2] = true;
  }));
  EXPECT_FALSE(changed([](C c) { c.args[3].value.f32 = 0.25f; }));
  EXPECT_FALSE(changed([](C c) { c.args[3].kind = MLAFIX_ARG_I32; }));
  EXPECT_FALSE(changed([](C c) { c.args[4].value.i64 = 7; }));
  EXPECT_FALSE(changed([](C c) { c.args[2].struct_size = 8; }));
  EXPECT_FALSE(changed([&](C c) { c.tensors[1].data = memory + 1024 + 8; }))
      << "less aligned";
  EXPECT_FALSE(changed([&](C c) { c.tensors[1].data = memory; })) << "in place";
  EXPECT_FALSE(changed([&](C c) { c.tensors[1].data = memory + 64; }))
      << "overlaps the output";
  EXPECT_FALSE(changed([](C c) {
    c.tensors[1].data = reinterpret_cast<void *>(UINT64_MAX - 63);
  })) << "leads out of the address space";
}

TEST_F(CallMemo, knows_the_last_few_calls) {
  auto withLimit = [&](int64_t limit) {
    RawCall other = call;
    other.args[4].value.i64 = limit;
    return other;
  };
  for (int64_t limit = 0; limit < 4; ++limit)
    ASSERT_EQ(withLimit(limit).launch(kernel), MLAFIX_OK);
  for (int64_t limit = 0; limit < 4; ++limit)
    EXPECT_TRUE(isKnown(withLimit(limit))) << limit;
  // These 100 calls replace the known ones in the memo. The memo then stops
  // looking up calls, but soon knows a repeated call again.
  for (int i = 0; i < 100; ++i) {
    RawCall other = call;
    other.args[3].value.f32 = static_cast<float>(i);
    ASSERT_EQ(other.launch(kernel), MLAFIX_OK);
  }
  int until = 0;
  while (!isKnown(withLimit(2)) && until < 100) {
    ASSERT_EQ(withLimit(2).launch(kernel), MLAFIX_OK);
    ++until;
  }
  EXPECT_LT(until, 40);
}

TEST_F(CallMemo, is_gone_with_the_code) {
  ASSERT_EQ(call.launch(kernel), MLAFIX_OK);
  ASSERT_EQ(mlafix_unit_unload(unit.get(), cuda(0)), MLAFIX_OK);
  EXPECT_FALSE(isKnown(call));
  EXPECT_EQ(call.launch(kernel), MLAFIX_OK);
}

/// Makes valid and invalid calls. Each call is an earlier call with one change.
class Mutator {
public:
  Mutator(char *memory, unsigned seed) : memory(memory), random(seed) {}

  RawCall next(RawCall call) {
    switch (pick(14)) {
    case 0:
      call.tensors[pick(2)].data = address();
      break;
    case 1:
      call.tensors[0].data = call.tensors[1].data = address();
      break;
    case 2: {
      int64_t rows = pick(9);
      call.sizes[0][0] = call.sizes[1][0] = call.sizes[2][0] = rows;
      call.args[4].value.i64 = rows;
      break;
    }
    case 3:
      call.sizes[pick(3)][pick(2)] = pick(9);
      break;
    case 4: {
      static const int64_t strides[] = {4, 1, 0, 5, 6, 8, -4, 3};
      call.strides[pick(3)][0] = strides[pick(8)];
      break;
    }
    case 5:
      call.hasStrides[pick(3)] ^= true;
      break;
    case 6:
      call.has[2] ^= true;
      call.tensors[2].data = pick(2) ? address() : nullptr;
      break;
    case 7:
      call.args[3].value.f32 = static_cast<float>(pick(3));
      break;
    case 8:
      call.args[4].value.i64 = pick(10) - 1;
      break;
    case 9:
      call.flags = pick(2) * MLAFIX_LAUNCH_ASSUME_DISJOINT +
                   pick(2) * MLAFIX_LAUNCH_NO_DEPENDENT;
      break;
    case 10:
      call.tensors[pick(3)].device = pick(2) ? cuda(0) : cuda(1);
      break;
    case 11:
      call.tensors[pick(3)].dtype = pick(3) ? MLAFIX_F32 : MLAFIX_BF16;
      break;
    case 12:
      call.tensors[pick(2)].data = pick(4) ? address() : nullptr;
      break;
    default:
      break; // repeats the call without a change
    }
    return call;
  }

  int pick(int count) { return static_cast<int>(random() % count); }

private:
  void *address() {
    static const int offsets[] = {0,   16,  32,   64,   100,  128, 512,
                                  518, 520, 1024, 1040, 2048, 2052};
    return memory + offsets[pick(13)];
  }

  char *memory;
  std::mt19937 random;
};

TEST_F(CallMemo, a_kernel_that_remembers_answers_as_one_that_cannot) {
  Mutator mutator(memory, 1);
  RawCall right = call, made = call;
  int known = 0, failed = 0, launched = 0;
  for (int i = 0; i < 6000; ++i) {
    Unit fresh = load(writer);
    Outcome expected = outcome(fresh.kernel("add_bias"), made);
    known += isKnown(made);
    Outcome got = outcome(kernel, made);
    ASSERT_EQ(got, expected)
        << "call " << i << ": " << got.message << " / " << expected.message;
    failed += got.status != MLAFIX_OK;
    launched += got.entries.size();
    if (got.status == MLAFIX_OK)
      right = made;
    made = mutator.next(mutator.pick(2) ? made : right);
  }
  // The test means something only if each outcome is frequent.
  EXPECT_GT(known, 300);
  EXPECT_GT(failed, 500);
  EXPECT_GT(launched, 500);
}

TEST(CallMemoThreads, launches_from_many_threads_do_not_mix) {
  Unit unit = load(addBiasUnit());
  Kernel kernel = unit.kernel("add_bias");
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        AddBiasCall call(1 + (t + i / 10) % 5);
        call.launch(kernel);
        wrong += !call.isDone();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

} // namespace
