//===- Launch.cpp - Launching, binding, validating ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "CollectiveOrder.h"
#include "CudaCode.h"
#include "LocalMemory.h"
#include "Status.h"
#include "ThreadPool.h"
#include "Unit.h"

#include <algorithm>
#include <atomic>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace mlafix::runtime;

namespace {

/// The least number of bytes that the rows of one CpuRange should access.
/// Smaller ranges take longer to distribute than to execute.
constexpr int64_t taskBytes = 64 << 10;

/// Sets round-to-nearest and enables denormals while in scope, as compiled code
/// expects. The host thread may use another mode.
class DefaultFloatMode {
public:
#if defined(__x86_64__)
  DefaultFloatMode() : saved(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~DefaultFloatMode() { _mm_setcsr(saved); }

private:
  unsigned saved;
#elif defined(__aarch64__)
  DefaultFloatMode() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    __asm__ volatile("msr fpcr, %0" : : "r"(uint64_t(0)));
  }
  ~DefaultFloatMode() { __asm__ volatile("msr fpcr, %0" : : "r"(saved)); }

private:
  uint64_t saved;
#endif
};

struct CpuTask {
  CpuEntry entry;
  const uint64_t *params;
  uint64_t stackBytes;
  std::atomic<bool> isIncomplete{
      false}; ///< true if a thread got no stack for its rows
};

/// The rows [begin, end) of a task, which one call of the compiled code
/// executes.
struct CpuRange {
  const CpuTask &task;
  int64_t begin, end;

  void run() const {
    DefaultFloatMode mode;
    task.entry(task.params, begin, end);
  }
};

void runCpuTask(void *context, int64_t begin, int64_t end) {
  auto *task = static_cast<CpuTask *>(context);
  CpuRange range = {*task, begin, end};
  if (task->stackBytes == 0)
    return range.run();
  auto run = [](void *self) { static_cast<CpuRange *>(self)->run(); };
  if (!callWithStack(task->stackBytes, run, &range))
    task->isIncomplete = true;
}

mlafix_status runOnCpu(const PreparedKernel &prepared, const Plan &plan,
                       void *stream) {
  if (stream)
    return fail(MLAFIX_INVALID_ARGUMENT,
                "argument \"stream\": expected null for a launch on the cpu, "
                "got %p",
                stream);
  if (plan.rows == 0)
    return MLAFIX_OK;
  CpuTask task = {reinterpret_cast<CpuEntry>(prepared.entries[plan.index]),
                  plan.slots, plan.variant->stackBytes};
  int64_t grain = std::max<int64_t>(1, taskBytes / plan.rowBytes);
  parallelFor(plan.rows, grain, plan.variant->geometry.rowsPerBlock, runCpuTask,
              &task);
  if (task.isIncomplete)
    return fail(MLAFIX_OUT_OF_MEMORY,
                "expected a thread with a stack of %llu bytes for the rows "
                "that the kernel keeps, got none from the system",
                static_cast<unsigned long long>(task.stackBytes));
  return MLAFIX_OK;
}

/// Sets `params` to the address of each parameter's first slot.
void pointAtSlots(const Plan &plan, void **params) {
  const uint64_t *slot = plan.slots;
  for (uint32_t i = 0; i < plan.numParams; ++i) {
    params[i] = const_cast<uint64_t *>(slot);
    slot += plan.variant->params[i].slots;
  }
}

mlafix_status runOnCuda(const PreparedKernel &prepared, const Plan &plan,
                        int32_t ordinal, void *stream, uint32_t flags) {
  if (plan.rows == 0)
    return MLAFIX_OK;
  const CudaDriver *driver = nullptr;
  MLAFIX_TRY(getCudaDriver(driver));
  ContextScope context(*driver);
  MLAFIX_TRY(context.enter(ordinal));
  void *params[MLAFIX_MAX_PARAMS];
  pointAtSlots(plan, params);
  uint64_t local = 1;
  if (plan.variant->local >= 0) {
    local = readsLocalMemory(*driver, plan, ordinal);
    params[plan.variant->local] = &local;
  }
  CudaLaunch kernel = {prepared.entries[plan.index], plan.grid, plan.threads,
                       params, isDependent(plan, flags)};
  auto launch = [&] { return launchOnCuda(*driver, kernel, stream); };
  if (plan.variant->group < 0)
    return launch();
  const uint64_t *group =
      plan.slots + plan.variant->group; // the launch's GroupSlots
  GroupRank self = {group[offsetof(GroupSlots, workspaces) / sizeof(*group)],
                    static_cast<uint32_t>(group[0])};
  CollectiveTurn turn(*driver, ordinal, stream, self);
  MLAFIX_TRY(turn.begin());
  MLAFIX_TRY(launch());
  return turn.end();
}

mlafix_status named(const KernelDesc &kernel, mlafix_status status) {
  return status == MLAFIX_OK
             ? status
             : prefixError(status, "kernel \"%s\": ", kernel.name.c_str());
}

/// Plans the call for every target on which it might run. Planning also checks
/// that the grid is valid.
mlafix_status validatePlans(const Call &call) {
  Plan plan;
  if (call.device.type == MLAFIX_CPU) {
    const TargetCode *code = nullptr;
    MLAFIX_TRY(chooseCpuCode(call.desc(), code));
    return planLaunch(call, *code, 1, plan);
  }
  for (const TargetCode &code : call.desc().code)
    if (!code.isCpu())
      MLAFIX_TRY(planLaunch(call, code, 1, plan));
  return MLAFIX_OK;
}

/// Sets the parameter of kind Local for callers that launch the kernel
/// themselves. When the library launches a plan, it determines the value again.
mlafix_status setLocal(mlafix_device device, Plan &plan) {
  if (plan.rows == 0 || plan.variant->local < 0)
    return MLAFIX_OK;
  const CudaDriver *driver = nullptr;
  MLAFIX_TRY(getCudaDriver(driver));
  uint64_t *slot = plan.slots;
  for (int32_t i = 0; i < plan.variant->local; ++i)
    slot += plan.variant->params[static_cast<size_t>(i)].slots;
  *slot = readsLocalMemory(*driver, plan, device.ordinal);
  return MLAFIX_OK;
}

mlafix_status planBound(mlafix_bound &bound, const Call &call) {
  Plan plan;
  MLAFIX_TRY(planLaunch(call, *bound.prepared->code,
                        bound.prepared->multiprocessors, plan));
  MLAFIX_TRY(logPlan(call, *bound.prepared, plan));
  MLAFIX_TRY(setLocal(call.device, plan));
  // Nothing below can fail, so the bound call can be changed.
  bound.call = call;
  bound.plan = plan;
  pointAtSlots(bound.plan, bound.kernelParams);
  return MLAFIX_OK;
}

} // namespace

mlafix_status mlafix::runtime::runPlan(const PreparedKernel &prepared,
                                       const Plan &plan, mlafix_device device,
                                       void *stream, uint32_t flags) {
  return device.type == MLAFIX_CPU
             ? runOnCpu(prepared, plan, stream)
             : runOnCuda(prepared, plan, device.ordinal, stream, flags);
}

extern "C" mlafix_status mlafix_launch(const mlafix_kernel *kernel,
                                       const mlafix_arg *args,
                                       uint32_t num_args, mlafix_device device,
                                       void *stream, uint32_t flags) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(kernel, "kernel", "a kernel"));
    Plan plan;
    const PreparedKernel *prepared = preparedKernel(*kernel, device);
    if (!prepared ||
        !prepared->memo.recall(args, num_args, device, flags, plan)) {
      Call call;
      MLAFIX_TRY(named(*kernel->desc, checkCall(*kernel, args, num_args, device,
                                                flags, call)));
      MLAFIX_TRY(prepareKernel(*kernel, device, prepared));
      MLAFIX_TRY(
          named(*kernel->desc, planLaunch(call, *prepared->code,
                                          prepared->multiprocessors, plan)));
      MLAFIX_TRY(logPlan(call, *prepared, plan));
      prepared->memo.keep(call, *prepared->code, plan);
    }
    return named(*kernel->desc,
                 runPlan(*prepared, plan, device, stream, flags));
  });
}

extern "C" mlafix_status mlafix_validate(const mlafix_kernel *kernel,
                                         const mlafix_arg *args,
                                         uint32_t num_args,
                                         mlafix_device device,
                                         uint32_t flags) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(kernel, "kernel", "a kernel"));
    Call call;
    MLAFIX_TRY(named(*kernel->desc,
                     checkCall(*kernel, args, num_args, device, flags, call)));
    return named(*kernel->desc, validatePlans(call));
  });
}

extern "C" mlafix_status mlafix_bind(const mlafix_kernel *kernel,
                                     const mlafix_arg *args, uint32_t num_args,
                                     mlafix_device device, uint32_t flags,
                                     mlafix_bound **bound) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(bound, "bound", "a pointer for the result"));
    *bound = nullptr;
    MLAFIX_TRY(require(kernel, "kernel", "a kernel"));
    Call call;
    MLAFIX_TRY(named(*kernel->desc,
                     checkCall(*kernel, args, num_args, device, flags, call)));
    const PreparedKernel *prepared = nullptr;
    MLAFIX_TRY(prepareKernel(*kernel, device, prepared));
    auto fresh = std::make_unique<mlafix_bound>();
    fresh->prepared = prepared;
    MLAFIX_TRY(named(*kernel->desc, planBound(*fresh, call)));
    *bound = fresh.release();
    return MLAFIX_OK;
  });
}

extern "C" void mlafix_bound_destroy(mlafix_bound *bound) noexcept {
  delete bound;
}

/// Replaces the data pointers in a copy of a bound call. There is one pointer
/// per argument.
static mlafix_status movePointers(Call &call, void *const *pointers,
                                  uint32_t num_args) {
  const KernelDesc &desc = call.desc();
  if (num_args != desc.args.size())
    return fail(MLAFIX_INVALID_ARGUMENT,
                "expected %zu pointers, one per argument, got %u",
                desc.args.size(), num_args);
  if (num_args > 0 && !pointers)
    return fail(MLAFIX_INVALID_ARGUMENT,
                "argument \"pointers\": expected an array of %u pointers, got "
                "null",
                num_args);
  for (uint32_t i = 0; i < num_args; ++i) {
    if (!desc.args[i].isTensor() || desc.args[i].isMany())
      continue;
    CallArg &arg = call.args[i];
    // An argument that was omitted has no shape, so it cannot get a pointer.
    if (pointers[i] && !arg.hasShape)
      return WRONG(desc.args[i],
                   "expected null, since it was omitted when the call was "
                   "bound, got %p",
                   pointers[i]);
    if (!pointers[i] && arg.hasShape && desc.args[i].optional && !arg.empty)
      return WRONG(desc.args[i], "expected a data pointer, since it was %s",
                   "passed when the call was bound, got null");
    arg.data = pointers[i];
    arg.present = pointers[i] != nullptr;
  }
  MLAFIX_TRY(checkPointers(call));
  return call.flags & MLAFIX_LAUNCH_DEEP_CHECKS ? checkMemory(call) : MLAFIX_OK;
}

/// Replaces a scalar argument in a copy of a bound call.
static mlafix_status replaceScalar(Call &call, uint32_t index,
                                   const mlafix_arg *value) {
  const ArgDesc &arg = call.desc().args[index];
  if (!value || value->struct_size < sizeof(mlafix_arg) ||
      value->kind != arg.kind)
    return WRONG(arg,
                 "expected a scalar of dtype %s, got null, another kind or a "
                 "struct_size that is too small",
                 arg.dtypeName.c_str());
  return readScalar(arg, *value, call.args[index]);
}

/// Replaces the data pointers and, unless `scalars` is null, the scalars in a
/// copy of a bound call.
static mlafix_status replaceArgs(Call &call, void *const *pointers,
                                 const mlafix_arg *scalars, uint32_t num_args) {
  MLAFIX_TRY(movePointers(call, pointers, num_args));
  if (!scalars)
    return MLAFIX_OK;
  for (uint32_t i = 0; i < num_args; ++i)
    if (!call.desc().args[i].isTensor())
      MLAFIX_TRY(replaceScalar(call, i, &scalars[i]));
  return checkScalarBounds(call);
}

extern "C" mlafix_status mlafix_bound_set_pointers(mlafix_bound *bound,
                                                   void *const *pointers,
                                                   uint32_t num_args) noexcept {
  return mlafix_bound_set_args(bound, pointers, nullptr, num_args);
}

extern "C" mlafix_status mlafix_bound_set_args(mlafix_bound *bound,
                                               void *const *pointers,
                                               const mlafix_arg *scalars,
                                               uint32_t num_args) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(bound, "bound", "a bound kernel"));
    const KernelDesc &desc = bound->call.desc();
    Call call = bound->call;
    MLAFIX_TRY(named(desc, replaceArgs(call, pointers, scalars, num_args)));
    return named(desc, planBound(*bound, call));
  });
}

extern "C" mlafix_status
mlafix_bound_set_scalar(mlafix_bound *bound, uint32_t index,
                        const mlafix_arg *value) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(bound, "bound", "a bound kernel"));
    const KernelDesc &desc = bound->call.desc();
    if (index >= desc.args.size() || desc.args[index].isTensor())
      return fail(MLAFIX_INVALID_ARGUMENT,
                  "kernel \"%s\": argument \"index\": expected the index of a "
                  "scalar argument (below %zu), got %u, which is %s",
                  desc.name.c_str(), desc.args.size(), index,
                  index < desc.args.size() ? "a tensor" : "out of range");
    Call call = bound->call;
    MLAFIX_TRY(named(desc, replaceScalar(call, index, value)));
    MLAFIX_TRY(named(desc, checkScalarBounds(call)));
    return named(desc, planBound(*bound, call));
  });
}

extern "C" mlafix_status mlafix_bound_launch(const mlafix_bound *bound,
                                             void *stream,
                                             uint32_t flags) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(bound, "bound", "a bound kernel"));
    MLAFIX_TRY(named(bound->call.desc(), checkGroup(bound->call)));
    return named(bound->call.desc(),
                 runPlan(*bound->prepared, bound->plan, bound->call.device,
                         stream, flags | bound->call.flags));
  });
}
