//===- unit_loader_fuzzer.cpp - Loads arbitrary bytes as units ------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A libFuzzer target. Its input is one of
//
//   - a manifest, which begins with '{': UnitWriter.h makes a unit around it,
//   - a unit, which begins with "MLAFIX": the target sets the unit's size field
//     to the size of the input, so that the check of the header accepts it,
//   - anything else: a cubin, which becomes an image of a unit.
//
// The checksum is not compared. If a unit loads, its kernels are described,
// validated, bound and launched on a fake CUDA driver that only records the
// calls. CPU code is mapped but not executed.
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"
#include "Unit.h"
#include "UnitWriter.h"

#include "mlafix/runtime.h"

#include <cstring>

using namespace mlafix;
using namespace mlafix::test;

namespace {

std::vector<uint8_t> unitFromManifest(const std::string &text) {
  UnitWriter writer = addBiasUnit();
  try {
    writer.manifest = json::parse(text);
    return writer.finish();
  } catch (const json::exception &) {
    return wrapUnit(text, ""); // not JSON, or without a place for images
  }
}

std::vector<uint8_t> makeUnit(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  if (size > 0 && text[0] == '{')
    return unitFromManifest(text);
  if (text.compare(0, 6, "MLAFIX") == 0) {
    std::vector<uint8_t> unit(data, data + size);
    for (size_t i = 0; i < 8 && 16 + i < size; ++i)
      unit[16 + i] = static_cast<uint8_t>(uint64_t(size) >> (8 * i));
    return unit;
  }
  UnitWriter writer = addBiasUnit();
  writer.images[1] = text;
  return writer.finish();
}

/// Makes plausible arguments from a signature, with size 3 for every dynamic
/// dim. Nothing reads or writes the memory at the addresses.
struct Arguments {
  explicit Arguments(const mlafix_kernel *kernel, mlafix_device device) {
    count = mlafix_kernel_num_args(kernel);
    for (uint32_t i = 0; i < count; ++i) {
      mlafix_arg_info info = MLAFIX_ARG_INFO_INIT;
      mlafix_kernel_arg_info(kernel, i, &info);
      args[i] = {sizeof(mlafix_arg), info.kind, {}};
      if (info.kind != MLAFIX_ARG_TENSOR) {
        args[i].value.i64 = info.kind == MLAFIX_ARG_BOOL;
        continue;
      }
      for (uint32_t d = 0; d < info.ndim; ++d)
        sizes[i][d] = info.shape[d] < 0 ? 3 : info.shape[d];
      int64_t contiguous = 1;
      for (uint32_t d = info.ndim; d-- > 0;) {
        strides[i][d] = info.strides[d] < 0 ? contiguous : info.strides[d];
        contiguous = static_cast<int64_t>(static_cast<uint64_t>(contiguous) *
                                          static_cast<uint64_t>(sizes[i][d]));
      }
      auto address = (uintptr_t(i) + 1) << 32;
      tensors[i] = {sizeof(mlafix_tensor),
                    info.dtype,
                    info.ndim,
                    device,
                    reinterpret_cast<void *>(address),
                    sizes[i],
                    strides[i]};
      args[i].value.tensor = &tensors[i];
    }
  }
  uint32_t count;
  mlafix_arg args[MLAFIX_MAX_ARGS];
  mlafix_tensor tensors[MLAFIX_MAX_ARGS];
  int64_t sizes[MLAFIX_MAX_ARGS][MLAFIX_MAX_DIMS];
  int64_t strides[MLAFIX_MAX_ARGS][MLAFIX_MAX_DIMS];
};

void exercise(const mlafix_kernel *kernel) {
  mlafix_device gpu = {MLAFIX_CUDA, 0}, host = {MLAFIX_CPU, 0};
  mlafix_code_info code = MLAFIX_CODE_INFO_INIT;
  mlafix_kernel_code_info(kernel, gpu, &code);
  mlafix_kernel_code_info(kernel, host, &code);
  Arguments onGpu(kernel, gpu), onHost(kernel, host);
  mlafix_validate(kernel, onHost.args, onHost.count, host, 0);
  mlafix_launch(kernel, onGpu.args, onGpu.count, gpu, nullptr, 0);
  mlafix_launch(kernel, onGpu.args, onGpu.count, gpu, nullptr,
                MLAFIX_LAUNCH_DEEP_CHECKS);
  mlafix_bound *bound = nullptr;
  if (mlafix_bind(kernel, onGpu.args, onGpu.count, gpu,
                  MLAFIX_LAUNCH_ASSUME_DISJOINT, &bound) == MLAFIX_OK) {
    mlafix_launch_info info = MLAFIX_LAUNCH_INFO_INIT;
    mlafix_bound_launch_info(bound, &info);
    mlafix_bound_launch(bound, nullptr, 0);
    mlafix_bound_destroy(bound);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FakeCuda fake;
  fake.computeCapability = 90;
  // The fake driver does not report the sizes of a kernel's parameters, since
  // the runtime would then refuse most of the changed signatures.
  fake.hasParamInfo = false;
  fake.paramSizes.clear();
  fake.rebuildTable();
  if (size % 4 == 1)
    fake.refused = {{"cubin", runtime::cuda::errorNoBinaryForGpu}};

  mlafix_unit *unit = nullptr;
  mlafix_status status =
      runtime::loadUnit(makeUnit(data, size), nullptr,
                        runtime::ChecksumPolicy::IgnoreForFuzzing, unit);
  if (status != MLAFIX_OK)
    return 0;
  const mlafix_kernel *found = nullptr;
  mlafix_unit_find_kernel(unit, "add_bias", "D=4", &found);
  for (uint32_t i = 0; i < mlafix_unit_num_kernels(unit) && i < 4; ++i)
    exercise(mlafix_unit_kernel_at(unit, i));
  mlafix_unit_destroy(unit);
  return 0;
}
