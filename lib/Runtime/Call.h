//===- Call.h - One call: its arguments, checked ----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A launch goes through four steps, each in its own file:
//   checkCall    (Check.cpp)      arguments against the kernel's signature
//   checkMemory  (DeepCheck.cpp)  pointers against the driver, if requested
//   planLaunch   (Plan.cpp)       code version, grid, packed parameters
//   runPlan      (Launch.cpp)     CUDA or CPU
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_CALL_H
#define MLAFIX_RUNTIME_CALL_H

#include "Status.h"
#include "UnitModel.h"

#include <cstddef>
#include <cstring>

namespace mlafix::runtime {

struct PreparedKernel;

/// One argument as the kernel sees it. Left uninitialised on purpose: a Call
/// lives on the stack of every launch.
struct CallArg {
  /// Tensors: false if the data pointer is null or there is no tensor.
  bool present;
  /// Tensors: false if omitted; then sizes and strides have no meaning.
  bool hasShape;
  bool empty;    ///< tensors: some size is 0
  uint8_t table; ///< of Call::tables, the addresses of several tensors
  void *data;
  uint64_t scalar; ///< scalars: as a parameter slot
  int64_t sizes[MLAFIX_MAX_DIMS];
  int64_t strides[MLAFIX_MAX_DIMS];
};

/// The parameter of kind Group.
struct GroupSlots {
  uint32_t rank, ranks;
  uint64_t timeoutNs;
  uint64_t *failure;
  void *workspaces[MLAFIX_MAX_RANKS];
};
static_assert(sizeof(GroupSlots) == 8 * (3 + MLAFIX_MAX_RANKS),
              "slots without gaps");

/// True if a group has the fields that every mlafix_group has had.
inline bool isGroup(const mlafix_group *group) {
  return group && group->struct_size >= offsetof(mlafix_group, slots);
}

/// The slots of a group, which one of an older header leaves out.
inline uint64_t slotsOf(const mlafix_group &group) {
  return group.struct_size >= sizeof(mlafix_group) ? group.slots : 0;
}

struct Call {
  const KernelDesc *kernel;
  mlafix_device device;
  uint32_t flags;
  CallArg args[MLAFIX_MAX_ARGS];
  uint32_t numTables; ///< arguments of several tensors
  bool hasGroup;      ///< whether `group` is filled in
  void *tables[limits::peers][MLAFIX_MAX_RANKS];
  /// Collective kernels on a GPU: as the compiled code takes it.
  GroupSlots group;
  uint64_t blockSlots; ///< of the group: blocks that store to the peers

  const KernelDesc &desc() const { return *kernel; }
};

/// Fills in `call` and makes every check that needs no driver.
mlafix_status checkCall(const mlafix_kernel &kernel, const mlafix_arg *args,
                        uint32_t numArgs, mlafix_device device, uint32_t flags,
                        Call &call);

/// The checks that depend on data pointers alone; for new pointers of a bound.
mlafix_status checkPointers(const Call &call);

/// A scalar argument as a parameter slot. A bool that is none, since it is
/// neither 0 nor 1, has a slot like no other.
inline uint64_t scalarSlot(const mlafix_arg &arg) {
  uint64_t slot = 0;
  switch (arg.kind) {
  case MLAFIX_ARG_I64:
    return static_cast<uint64_t>(arg.value.i64);
  case MLAFIX_ARG_I32:
    return static_cast<uint32_t>(arg.value.i32);
  case MLAFIX_ARG_F32:
    std::memcpy(&slot, &arg.value.f32, sizeof(float));
    return slot;
  default:
    return arg.value.boolean;
  }
}

/// True if two tensors, one of them written, may lie at the same address.
bool mayCoincide(const Call &call, uint32_t a, uint32_t b);

/// Reads a scalar argument into its slot.
mlafix_status readScalar(const ArgDesc &desc, const mlafix_arg &arg,
                         CallArg &out);

/// Reads a tensor.
mlafix_status readTensor(const ArgDesc &desc, const mlafix_tensor *tensor,
                         mlafix_device device, CallArg &arg);

/// Reads an argument of several tensors, of the ranks or of a list.
mlafix_status readMany(const ArgDesc &desc, const mlafix_peers *peers,
                       mlafix_device device, Call &call, CallArg &out);

/// Does for such arguments what checkPointers() does for one tensor.
mlafix_status checkManyPointers(const Call &call);

/// Checks that every rank has come to the earlier launches of the call's group.
mlafix_status checkGroup(const Call &call);

/// The bounds of scalars by dims, and what else the kernel assumes of sizes and
/// scalars, once all arguments are read.
mlafix_status checkScalarBounds(const Call &call);

/// Asks the driver about each pointer.
mlafix_status checkMemory(const Call &call);

/// Bytes from a tensor's lowest to past its highest; 0 if empty or absent.
struct ByteRange {
  uint64_t begin, bytes;
};
ByteRange byteRange(const ArgDesc &desc, const CallArg &arg);

/// The launch that was planned.
struct Plan {
  const CodeVersion *variant;
  uint32_t index; ///< of the variant
  uint32_t numParams;
  uint32_t grid;         ///< CUDA: blocks
  uint32_t threads;      ///< CUDA: of a block
  uint32_t groupThreads; ///< CUDA: of a lane group in a block, if there are any
  int64_t rows;          ///< 0: nothing
  int64_t rowBytes;      ///< CPU: memory that a row touches, about
  uint64_t slots[limits::slots];
};

/// Chooses the code version, computes the grid and packs the parameters.
mlafix_status planLaunch(const Call &call, const TargetCode &code,
                         int64_t multiprocessors, Plan &plan);

/// Why a code version does not take a call: what its first guard that does not
/// hold expected and got. Empty if it takes it.
mlafix_status explainVersion(const Call &call, const CodeVersion &variant,
                             std::string &refused);

/// Bytes of the arguments that are read and written, each element once.
struct Traffic {
  uint64_t read, written;
};
Traffic countTraffic(const Call &call);

/// Logs, at MLAFIX_LOG_DEBUG, the code versions that were offered and the plan.
mlafix_status logPlan(const Call &call, const PreparedKernel &prepared,
                      const Plan &plan);

/// Launches on `stream`, or on the CPU.
mlafix_status runPlan(const PreparedKernel &prepared, const Plan &plan,
                      mlafix_device device, void *stream, uint32_t flags);

/// True if the launch may carry the dependent-launch attribute.
bool isDependent(const Plan &plan, uint32_t flags);

} // namespace mlafix::runtime

struct mlafix_bound {
  mlafix::runtime::Call call;
  const mlafix::runtime::PreparedKernel *prepared;
  mlafix::runtime::Plan plan;
  void *kernelParams[MLAFIX_MAX_PARAMS]; ///< into plan.slots
};

#endif // MLAFIX_RUNTIME_CALL_H
