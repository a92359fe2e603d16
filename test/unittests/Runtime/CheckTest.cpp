//===- CheckTest.cpp - Wrong calls are refused ----------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Most tests make a mistake in a call of add_bias (UnitWriter.h). They expect
// an error that names the argument, and no launch.
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"
#include "TestUnit.h"

using namespace mlafix;
using namespace mlafix::test;

namespace {

class Check : public testing::Test {
protected:
  Unit unit = load(addBiasUnit());
  Kernel kernel = unit.kernel("add_bias");
  AddBiasCall call{8};

  /// Expects that the call fails with all `words` in its message, and launches
  /// nothing.
  void expectWrong(const std::vector<std::string> &words) {
    expectRefused(kernel, call, words);
  }
};

TEST_F(Check, the_right_call_passes) {
  EXPECT_NO_THROW(kernel.validate(call.args));
  EXPECT_TRUE(call.isUntouched());
  call.launch(kernel);
  EXPECT_TRUE(call.isDone());
}

TEST_F(Check, too_few_arguments) {
  call.args.pop_back();
  expectWrong({"\"add_bias\"", "expected 5 arguments, got 4"});
}

TEST_F(Check, too_many_arguments) {
  call.args.push_back(1);
  expectWrong({"expected 5 arguments, got 6"});
}

TEST_F(Check, messages_name_the_kernel_once) {
  call.args.pop_back();
  Error few = errorOf([&] { call.launch(kernel); });
  EXPECT_STREQ(few.what(), "kernel \"add_bias\": expected 5 arguments, got 4");
}

TEST_F(Check, null_for_the_arguments_or_the_pointers) {
  EXPECT_EQ(mlafix_launch(kernel.get(), nullptr, 5, cpu(), nullptr, 0),
            MLAFIX_INVALID_ARGUMENT);
  EXPECT_STREQ(mlafix_last_error(),
               "kernel \"add_bias\": argument \"args\": expected an array of 5 "
               "arguments, got null");
  Bound bound = kernel.bind(call.args, call.device);
  EXPECT_EQ(mlafix_bound_set_pointers(bound.get(), nullptr, 5),
            MLAFIX_INVALID_ARGUMENT);
  EXPECT_STREQ(
      mlafix_last_error(),
      "kernel \"add_bias\": argument \"pointers\": expected an array of "
      "5 pointers, got null");
}

TEST_F(Check, a_scalar_for_a_tensor) {
  call.args[1] = 3;
  expectWrong({"\"in\"", "expected a tensor, got an i64"});
}

TEST_F(Check, a_tensor_for_a_scalar) {
  call.args[3] = call.args[1];
  expectWrong({"\"bias\"", "expected an f32, got a tensor"});
}

TEST_F(Check, an_integer_for_a_float) {
  call.args[3] = 2;
  expectWrong({"\"bias\"", "expected an f32, got an i64"});
}

TEST_F(Check, another_dtype) {
  call.args[1] = Tensor::strided(call.in(), MLAFIX_BF16, {8, 4}, {4, 1});
  expectWrong({"\"in\"", "expected dtype f32, got bf16"});
}

TEST_F(Check, another_rank) {
  call.args[1] = Tensor::contiguous(call.in(), MLAFIX_F32, {8, 2, 2});
  expectWrong({"\"in\"", "expected 2 dims, got 3"});
}

TEST_F(Check, another_fixed_size) {
  call.args[1] = Tensor::contiguous(call.in(), MLAFIX_F32, {8, 3});
  expectWrong({"\"in\"", "expected size 4 in dim 1 (\"D\"), got 3"});
}

TEST_F(Check, a_payload_stride_that_is_not_one) {
  call.args[1] = Tensor::strided(call.in(), MLAFIX_F32, {8, 4}, {1, 8});
  expectWrong({"\"in\"", "expected stride 1 in dim 1 (\"D\"), got 8"});
}

TEST_F(Check, named_dims_that_differ) {
  call.args[1] = Tensor::contiguous(call.in(), MLAFIX_F32, {7, 4});
  expectWrong({"\"in\"", "expected size 8 in dim 0 (\"n\")",
               "as in argument \"out\"", "got 7"});
}

TEST_F(Check, a_negative_size) {
  call.args[0] = Tensor::strided(call.out(), MLAFIX_F32, {-1, 4}, {4, 1});
  expectWrong({"\"out\"", "at least 0", "got -1"});
}

TEST_F(Check, null_pointers) {
  call.args[1] = Tensor::contiguous(nullptr, MLAFIX_F32, {8, 4});
  expectWrong({"\"in\"", "expected a data pointer, got null"});
  call.args[1] = Tensor::none();
  expectWrong({"\"in\"", "expected a tensor of dtype f32, got null"});
}

TEST_F(Check, an_optional_argument_may_be_null_and_then_has_no_shape) {
  call.args[2] = Tensor::contiguous(nullptr, MLAFIX_F32, {99});
  EXPECT_NO_THROW(call.launch(kernel));
  EXPECT_TRUE(call.isDone());
  call.args[2] = Tensor::contiguous(call.scaleData.data(), MLAFIX_F32, {9});
  expectError(MLAFIX_INVALID_ARGUMENT,
              {"\"scale\"", "expected size 8 in dim 0 (\"n\")", "got 9"},
              [&] { call.launch(kernel); });
}

TEST_F(Check, an_argument_bound_as_absent_is_omitted) {
  UnitWriter writer = addBiasUnit();
  writer.kernel()["args"][2]["access"] = "absent";
  writer.kernel()["bindings"]["scale"] = "absent";
  unit = load(writer);
  kernel = unit.kernel("add_bias");
  call.args[2] = Tensor::contiguous(call.scaleData.data(), MLAFIX_F32, {8});
  expectWrong({"\"scale\"",
               "expected null, since this specialisation binds the argument as "
               "absent, got a tensor of dtype f32"});
  for (const Tensor &none :
       {Tensor::none(), Tensor::contiguous(nullptr, MLAFIX_F32, {99})}) {
    call = AddBiasCall(8);
    call.args[2] = none;
    call.launch(kernel);
    EXPECT_TRUE(call.isDone());
  }
  Bound bound = kernel.bind(call.args, call.device);
  void *pointers[] = {call.out(), call.in(), call.scaleData.data(), nullptr,
                      nullptr};
  EXPECT_EQ(mlafix_bound_set_pointers(bound.get(), pointers, 5),
            MLAFIX_INVALID_ARGUMENT);
}

TEST_F(Check, an_argument_bound_as_present_is_given) {
  UnitWriter writer = addBiasUnit();
  writer.kernel()["args"][2]["optional"] = false;
  writer.kernel()["bindings"]["scale"] = "present";
  unit = load(writer);
  kernel = unit.kernel("add_bias");
  expectWrong(
      {"\"scale\"",
       "expected a tensor of dtype f32, since this specialisation binds "
       "the argument as present, got null"});
  call.args[2] = Tensor::contiguous(nullptr, MLAFIX_F32, {8});
  expectWrong({"\"scale\"", "expected a data pointer, got null"});
  call.args[2] = Tensor::contiguous(call.scaleData.data(), MLAFIX_F32, {8});
  call.launch(kernel);
  EXPECT_TRUE(call.isDone());
}

TEST_F(Check, an_empty_tensor_may_be_null) {
  AddBiasCall empty(0);
  empty.args[0] = Tensor::contiguous(nullptr, MLAFIX_F32, {0, 4});
  empty.args[1] = Tensor::contiguous(nullptr, MLAFIX_F32, {0, 4});
  EXPECT_NO_THROW(empty.launch(kernel));
  EXPECT_TRUE(empty.isUntouched());
}

TEST_F(Check, a_misaligned_pointer) {
  auto *odd =
      reinterpret_cast<float *>(reinterpret_cast<char *>(call.in()) + 2);
  call.args[1] = call.tensor(odd);
  expectWrong({"\"in\"", "multiple of 4"});
}

TEST_F(Check, a_scalar_above_its_bound) {
  call.args[4] = 9;
  expectWrong(
      {"\"limit\"", "expected a value from 0 to 8", "dim \"n\"", "got 9"});
}

TEST_F(Check, a_scalar_below_zero) {
  call.args[4] = -1;
  expectWrong({"\"limit\"", "from 0 to 8", "got -1"});
}

TEST_F(Check, a_tensor_tagged_for_another_device) {
  call.args[1] =
      Tensor::strided(call.in(), MLAFIX_F32, {8, 4}, {4, 1}, cuda(0));
  expectWrong({"\"in\"", "expected a tensor on cpu, got one on cuda:0"});
}

TEST_F(Check, unknown_devices_and_flags) {
  call.device = {7, 0};
  expectWrong({"\"device\"", "got 7"});
  call.device = {MLAFIX_CUDA, -1};
  expectWrong({"\"device\"", "got -1"});
  call.device = {MLAFIX_CPU, 1};
  expectWrong({"\"device\"", "got 1"});
  call.device = cpu();
  expectError(MLAFIX_INVALID_ARGUMENT, {"\"flags\"", "0x100"},
              [&] { call.launch(kernel, nullptr, 0x100); });
}

TEST_F(Check, a_stream_on_the_cpu) {
  int stream;
  expectError(MLAFIX_INVALID_ARGUMENT, {"\"stream\"", "null"},
              [&] { call.launch(kernel, &stream); });
  EXPECT_TRUE(call.isUntouched());
}

TEST_F(Check, structs_without_their_size) {
  mlafix_tensor views[5];
  mlafix_arg args[5];
  for (int i = 0; i < 5; ++i)
    args[i] = call.args[i].pack(0, views[i]);
  views[1].struct_size = 8;
  EXPECT_EQ(mlafix_launch(kernel.get(), args, 5, cpu(), nullptr, 0),
            MLAFIX_INVALID_ARGUMENT);
  EXPECT_NE(std::string(mlafix_last_error()).find("\"in\""), std::string::npos);
  views[1].struct_size = sizeof(mlafix_tensor);
  args[2].struct_size = 0;
  EXPECT_EQ(mlafix_launch(kernel.get(), args, 5, cpu(), nullptr, 0),
            MLAFIX_INVALID_ARGUMENT);
  args[2].struct_size = sizeof(mlafix_arg);
  EXPECT_EQ(mlafix_launch(kernel.get(), args, 5, cpu(), nullptr, 0), MLAFIX_OK);
  EXPECT_EQ(mlafix_launch(kernel.get(), nullptr, 5, cpu(), nullptr, 0),
            MLAFIX_INVALID_ARGUMENT);
  EXPECT_EQ(mlafix_launch(nullptr, args, 5, cpu(), nullptr, 0),
            MLAFIX_INVALID_ARGUMENT);
}

TEST_F(Check, arguments_of_a_newer_caller_are_longer) {
  struct NewerArg {
    mlafix_arg arg;
    uint64_t more[3];
  } args[5] = {};
  mlafix_tensor views[5];
  for (int i = 0; i < 5; ++i) {
    args[i].arg = call.args[i].pack(0, views[i]);
    args[i].arg.struct_size = sizeof(NewerArg);
  }
  EXPECT_EQ(mlafix_launch(kernel.get(), &args[0].arg, 5, cpu(), nullptr, 0),
            MLAFIX_OK)
      << mlafix_last_error();
  EXPECT_TRUE(call.isDone());
}

TEST_F(Check, a_first_size_of_arguments_that_cannot_be_is_refused) {
  mlafix_tensor views[5];
  mlafix_arg args[5];
  for (int i = 0; i < 5; ++i)
    args[i] = call.args[i].pack(0, views[i]);
  for (uint32_t size :
       {0u, 4u, 15u, 17u, 20u, 264u, 0x10000000u, 0xfffffff8u, 0xffffffffu}) {
    args[0].struct_size = size;
    EXPECT_EQ(mlafix_launch(kernel.get(), args, 5, cpu(), nullptr, 0),
              MLAFIX_INVALID_ARGUMENT);
    std::string message = mlafix_last_error();
    EXPECT_NE(message.find("argument \"out\": expected a mlafix_arg with "
                           "struct_size 16"),
              std::string::npos)
        << message;
  }
  EXPECT_TRUE(call.isUntouched());
}

/// Returns true if `text` is valid UTF-8. The JSON library throws for any other
/// text.
bool isUtf8(const std::string &text) {
  try {
    (void)json(text).dump();
    return true;
  } catch (const json::exception &) {
    return false;
  }
}

/// Returns `shift` characters of one byte, then `count` characters of three
/// bytes.
std::string wideText(int shift, int count) {
  std::string text(shift, 'x');
  for (int i = 0; i < count; ++i)
    text += "€";
  return text;
}

TEST_F(Check, messages_that_are_cut_off_end_with_a_whole_character) {
  for (int shift = 0; shift < 4; ++shift) {
    std::string name = wideText(shift, 1000);
    const mlafix_kernel *found = nullptr;
    EXPECT_EQ(mlafix_unit_find_kernel(unit.get(), name.c_str(), "", &found),
              MLAFIX_NOT_FOUND);
    std::string message = mlafix_last_error();
    EXPECT_GT(message.size(), 2000u);
    EXPECT_TRUE(isUtf8(message)) << message;
    // A long path makes the message too long. The message is then truncated in
    // its prefix "unit \"…\": " or after the prefix.
    for (int length : {300, 660, 680, 700}) {
      std::string path = wideText(shift, length);
      mlafix_unit *none = nullptr;
      EXPECT_NE(mlafix_unit_load_file(path.c_str(), nullptr, &none), MLAFIX_OK);
      EXPECT_TRUE(isUtf8(mlafix_last_error()));
    }
  }
}

TEST_F(Check, messages_are_utf8_whatever_a_caller_names) {
  const mlafix_kernel *found = nullptr;
  auto messageFor = [&](const std::string &name) -> std::string {
    EXPECT_EQ(mlafix_unit_find_kernel(unit.get(), name.c_str(), "", &found),
              MLAFIX_NOT_FOUND);
    return mlafix_last_error();
  };
  // Six names that are not UTF-8 (a lone byte, a truncated character, two
  // overlong forms, a surrogate, a code point past U+10FFFF), and a valid one.
  const std::pair<const char *, const char *> names[] = {
      {"a\xff", "a\\xff"},
      {"\xe2\x82z€", "\\xe2\\x82z€"},
      {"\xc0\x80", "\\xc0\\x80"},
      {"\xe0\x80\x80", "\\xe0\\x80\\x80"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
      {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"}};
  for (auto [name, shown] : names)
    EXPECT_EQ(messageFor(name), "expected a kernel \"" + std::string(shown) +
                                    "\" in the unit, got add_bias[D=4,T=f32]");
  for (size_t length : {500u, 511u, 512u, 3000u}) {
    std::string message = messageFor("€" + std::string(length, '\xfe'));
    EXPECT_TRUE(isUtf8(message)) << message;
    EXPECT_LT(message.size(), 2048u);
  }
}

TEST_F(Check, names_of_dims_are_shortened_by_whole_characters) {
  for (int shift = 0; shift < 4; ++shift) {
    UnitWriter writer = cpuOnlyUnit();
    writer.kernel()["args"][0]["dims"][1] = wideText(shift, 40);
    Unit named = load(writer);
    AddBiasCall wrong;
    wrong.args[0] = Tensor::strided(wrong.out(), MLAFIX_F32, {8, 3}, {4, 1});
    Error error = errorOf([&] { wrong.launch(named.kernel("add_bias")); });
    EXPECT_TRUE(isUtf8(error.what())) << error.what();
    EXPECT_NE(std::string(error.what()).find("...\"), got 3"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(Check, a_callers_buffer_gets_whole_characters) {
  std::string name = wideText(0, 40);
  for (size_t capacity = 1; capacity < 120; ++capacity) {
    std::vector<char> buffer(capacity, 'z');
    mlafix_set_error_buffer(buffer.data(), capacity);
    const mlafix_kernel *found = nullptr;
    mlafix_unit_find_kernel(unit.get(), name.c_str(), "", &found);
    mlafix_set_error_buffer(nullptr, 0);
    EXPECT_TRUE(isUtf8(buffer.data())) << capacity;
    EXPECT_GE(std::strlen(buffer.data()) + 3, capacity);
  }
}

TEST_F(Check, sizes_that_leave_the_address_space) {
  int64_t huge = int64_t(1) << 48, far = int64_t(1) << 20;
  call.args[0] = Tensor::strided(call.out(), MLAFIX_F32, {huge, 4}, {far, 1});
  call.args[1] = Tensor::strided(call.in(), MLAFIX_F32, {huge, 4}, {far, 1});
  call.args[4] = 0;
  expectWrong({"\"out\"", "address space"});
}

TEST_F(Check, a_dim_of_more_than_2_to_the_48_elements) {
  int64_t huge = (int64_t(1) << 48) + 1;
  call.args[0] = Tensor::strided(call.out(), MLAFIX_F32, {huge, 4}, {0, 1});
  call.args[1] = Tensor::strided(call.in(), MLAFIX_F32, {huge, 4}, {0, 1});
  call.args[4] = 0;
  expectWrong({"\"out\"", "at most 2^48", "281474976710657"});
}

//===----------------------------------------------------------------------===//
// Overlap
//===----------------------------------------------------------------------===//

TEST_F(Check, an_exact_alias_is_legal) {
  call.args[0] = call.tensor(call.in());
  call.launch(kernel);
  EXPECT_EQ(call.inData[5], 5.5f);
}

TEST_F(Check, a_partial_overlap_is_not) {
  call.args[0] = Tensor::strided(call.in() + 4, MLAFIX_F32, {8, 4}, {4, 1});
  expectWrong({"\"out\"", "\"in\"", "overlap", "same pointer"});
}

TEST_F(Check, the_same_pointer_with_other_strides_is_not) {
  std::vector<float> wide(100);
  call.args[0] = Tensor::strided(wide.data(), MLAFIX_F32, {8, 4}, {4, 1});
  call.args[1] = Tensor::strided(wide.data(), MLAFIX_F32, {8, 4}, {8, 1});
  expectWrong({"\"out\"", "\"in\"", "overlap"});
}

TEST_F(Check, an_overlap_with_another_argument_is_not) {
  call.args[2] = Tensor::contiguous(call.out() + 3, MLAFIX_F32, {8});
  expectWrong({"\"out\"", "\"scale\"", "overlap"});
}

TEST_F(Check, an_output_whose_elements_overlap) {
  call.args[0] = Tensor::strided(call.out(), MLAFIX_F32, {8, 4}, {0, 1});
  expectWrong({"\"out\"", "overlap"});
  call.args[0] = Tensor::strided(call.out(), MLAFIX_F32, {8, 4}, {2, 1});
  expectWrong({"\"out\"", "overlap"});
}

TEST_F(Check, an_input_may_repeat_itself) {
  call.args[1] = Tensor::strided(call.in(), MLAFIX_F32, {8, 4}, {0, 1});
  call.launch(kernel);
  EXPECT_EQ(call.outData[4 * 7 + 3], 3.5f);
}

TEST_F(Check, interleaved_slices_of_one_buffer_are_apart) {
  std::vector<float> wide(8 * 16, 1.0f);
  call.args[0] = Tensor::strided(wide.data(), MLAFIX_F32, {8, 4}, {16, 1});
  call.args[1] = Tensor::strided(wide.data() + 4, MLAFIX_F32, {8, 4}, {16, 1});
  call.args[2] = Tensor::strided(wide.data() + 8, MLAFIX_F32, {8}, {16});
  call.launch(kernel);
  EXPECT_EQ(wide[16 * 7 + 3], 1.5f);
  EXPECT_EQ(wide[16 * 7 + 4], 1.0f);
}

TEST_F(Check, undecided_layouts_need_the_callers_word) {
  // The rows of the output are 16 elements apart and cover columns 0 to 3. The
  // rows of the input are 20 elements apart. Output and input do not overlap,
  // but the runtime cannot tell this from the strides.
  std::vector<float> wide(512, 1.0f);
  call = AddBiasCall(3);
  call.args[0] = Tensor::strided(wide.data(), MLAFIX_F32, {3, 4}, {16, 1});
  call.args[1] = Tensor::strided(wide.data() + 4, MLAFIX_F32, {3, 4}, {20, 1});
  expectWrong({"\"out\"", "\"in\"", "MLAFIX_LAUNCH_ASSUME_DISJOINT"});
  call.launch(kernel, nullptr, MLAFIX_LAUNCH_ASSUME_DISJOINT);
  EXPECT_EQ(wide[35], 1.5f);
  // A call whose tensors certainly overlap fails in spite of this flag.
  call.args[1] = Tensor::strided(wide.data() + 1, MLAFIX_F32, {3, 4}, {16, 1});
  expectError(MLAFIX_INVALID_ARGUMENT, {"overlap"}, [&] {
    call.launch(kernel, nullptr, MLAFIX_LAUNCH_ASSUME_DISJOINT);
  });
}

//===----------------------------------------------------------------------===//
// GPUs and deep checks
//===----------------------------------------------------------------------===//

class CudaCheck : public Check {
protected:
  FakeCuda fake;
  CudaCheck() { call = AddBiasCall(8, cuda(0)); }

  void know(void *data, size_t size, int ordinal = 0,
            unsigned type = runtime::cuda::memoryTypeDevice, int managed = 0) {
    fake.allocations[reinterpret_cast<uintptr_t>(data)] = {size, ordinal, type,
                                                           managed};
  }
  void knowAll() {
    know(call.out(), call.outData.size() * 4);
    know(call.in(), call.inData.size() * 4);
  }
  void expectWrongDeep(const std::vector<std::string> &words) {
    expectError(MLAFIX_INVALID_ARGUMENT, words, [&] {
      call.launch(kernel, nullptr, MLAFIX_LAUNCH_DEEP_CHECKS);
    });
    EXPECT_TRUE(fake.launches.empty());
  }
};

TEST_F(CudaCheck, nothing_is_launched_when_a_check_fails) {
  call.args[1] = Tensor::contiguous(call.in(), MLAFIX_F32, {7, 4}, cuda(0));
  expectWrong({"\"in\"", "got 7"});
  call.args[1] = Tensor::contiguous(call.in(), MLAFIX_F32, {8, 4}, cpu());
  expectWrong({"\"in\"", "expected a tensor on cuda:0, got one on cpu"});
  call.args[1] = Tensor::contiguous(call.in(), MLAFIX_F32, {8, 4}, cuda(1));
  expectWrong({"\"in\"", "expected a tensor on cuda:0, got one on cuda:1"});
  EXPECT_TRUE(fake.launches.empty());
}

TEST_F(CudaCheck, deep_checks_pass_device_managed_and_pinned_memory) {
  knowAll();
  call.launch(kernel, nullptr, MLAFIX_LAUNCH_DEEP_CHECKS);
  know(call.in(), call.inData.size() * 4, -1, runtime::cuda::memoryTypeDevice,
       1);
  call.launch(kernel, nullptr, MLAFIX_LAUNCH_DEEP_CHECKS);
  know(call.in(), call.inData.size() * 4, 1, runtime::cuda::memoryTypeHost);
  call.launch(kernel, nullptr, MLAFIX_LAUNCH_DEEP_CHECKS);
  EXPECT_EQ(fake.launches.size(), 3u);
}

TEST_F(CudaCheck, deep_checks_find_host_memory) {
  know(call.out(), call.outData.size() * 4);
  expectWrongDeep({"\"in\"", "expected memory of cuda:0", "does not know"});
}

TEST_F(CudaCheck, deep_checks_find_memory_of_another_device) {
  knowAll();
  know(call.in(), call.inData.size() * 4, 1);
  expectWrongDeep({"\"in\"", "expected cuda:0, got cuda:1"});
}

TEST_F(CudaCheck, deep_checks_find_a_tensor_past_its_allocation) {
  knowAll();
  know(call.in(), 4 * 4 * 8 - 1);
  expectWrongDeep(
      {"\"in\"", "within its allocation of 127 bytes", "128 bytes"});
  know(call.in(), 4 * 4 * 8);
  EXPECT_NO_THROW(call.launch(kernel, nullptr, MLAFIX_LAUNCH_DEEP_CHECKS));
}

TEST_F(CudaCheck, deep_checks_find_device_memory_given_to_the_cpu) {
  call = AddBiasCall(8);
  size_t size = call.inData.size() * 4;
  know(call.in(), size, 1);
  expectWrongDeep({"\"in\"", "expected memory of the cpu", "cuda:1"});
  EXPECT_TRUE(call.isUntouched());
  know(call.in(), size, 1, runtime::cuda::memoryTypeDevice, 1); // managed
  call.launch(kernel, nullptr, MLAFIX_LAUNCH_DEEP_CHECKS);
  EXPECT_TRUE(call.isDone());
}

} // namespace
