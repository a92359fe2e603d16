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

/// An argument as the kernel sees it. Left uninitialised on purpose, since
/// every launch has a Call on its stack.
struct CallArg {
  /// Tensors: false if the data pointer is null or the tensor is omitted.
  bool present;
  /// Tensors: false if omitted; sizes and strides are then meaningless.
  bool hasShape;
  bool empty;    ///< tensors: some size is 0
  uint8_t table; ///< index into Call::tables, for several tensors
  void *data;
  uint64_t scalar; ///< scalars: as a parameter slot
  int64_t sizes[MLAFIX_MAX_DIMS];
  int64_t strides[MLAFIX_MAX_DIMS];
};

/// The parameter of kind Group, as compiled code reads it.
struct GroupSlots {
  uint32_t rank, ranks;
  uint64_t timeoutNs;
  uint64_t *failure;
  void *workspaces[MLAFIX_MAX_RANKS];
};
static_assert(sizeof(GroupSlots) == 8 * (3 + MLAFIX_MAX_RANKS),
              "slots without gaps");

/// True if the struct has at least the fields of the first mlafix_group.
inline bool isGroup(const mlafix_group *group) {
  return group && group->struct_size >= offsetof(mlafix_group, slots);
}

/// The `slots` of a group; 0 if the caller's older header lacks the field.
inline uint64_t slotsOf(const mlafix_group &group) {
  return group.struct_size >= sizeof(mlafix_group) ? group.slots : 0;
}

struct Call {
  const KernelDesc *kernel;
  mlafix_device device;
  uint32_t flags;
  CallArg args[MLAFIX_MAX_ARGS];
  uint32_t numTables; ///< arguments of several tensors
  bool hasGroup;      ///< true if `group` is filled in
  void *tables[limits::peers][MLAFIX_MAX_RANKS];
  /// For collective kernels on a GPU: the parameter that compiled code reads.
  GroupSlots group;
  uint64_t blockSlots; ///< of the group: blocks that store to peers

  const KernelDesc &desc() const { return *kernel; }
};

/// Fills in `call` and makes every check that does not need the driver.
mlafix_status checkCall(const mlafix_kernel &kernel, const mlafix_arg *args,
                        uint32_t numArgs, mlafix_device device, uint32_t flags,
                        Call &call);

/// Makes the checks that depend only on data pointers, for new pointers of a
/// bound call.
mlafix_status checkPointers(const Call &call);

/// A scalar argument as a parameter slot. A bool other than 0 or 1 gets a slot
/// value that matches no valid one.
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

/// True if two tensors, one of them written, may have the same address.
bool mayCoincide(const Call &call, uint32_t a, uint32_t b);

/// Reads a scalar argument into its slot.
mlafix_status readScalar(const ArgDesc &desc, const mlafix_arg &arg,
                         CallArg &out);

/// Reads a tensor.
mlafix_status readTensor(const ArgDesc &desc, const mlafix_tensor *tensor,
                         mlafix_device device, CallArg &arg);

/// Reads an argument of several tensors (peers or a list).
mlafix_status readMany(const ArgDesc &desc, const mlafix_peers *peers,
                       mlafix_device device, Call &call, CallArg &out);

/// Does for arguments of several tensors what checkPointers() does for one.
mlafix_status checkManyPointers(const Call &call);

/// Checks that every rank took part in the group's earlier launches.
mlafix_status checkGroup(const Call &call);

/// Checks the bounds of scalars and the kernel's other assumptions about sizes
/// and scalars, after all arguments are read.
mlafix_status checkScalarBounds(const Call &call);

/// Asks the driver about each pointer.
mlafix_status checkMemory(const Call &call);

/// The bytes from a tensor's lowest to its highest; 0 if empty or absent.
struct ByteRange {
  uint64_t begin, bytes;
};
ByteRange byteRange(const ArgDesc &desc, const CallArg &arg);

/// A planned launch.
struct Plan {
  const CodeVersion *variant;
  uint32_t index; ///< of the variant
  uint32_t numParams;
  uint32_t grid;         ///< CUDA: number of blocks
  uint32_t threads;      ///< CUDA: per block
  uint32_t groupThreads; ///< CUDA: per lane group; 0 without lane groups
  int64_t rows;          ///< 0: nothing to launch
  int64_t rowBytes;      ///< CPU: approximate bytes that a row touches
  uint64_t slots[limits::slots];
};

/// Selects the code version, computes the grid and packs the parameters.
mlafix_status planLaunch(const Call &call, const TargetCode &code,
                         int64_t multiprocessors, Plan &plan);

/// Explains why a code version rejects a call: the first guard that fails, and
/// its actual value. Empty if the version accepts the call.
mlafix_status explainVersion(const Call &call, const CodeVersion &variant,
                             std::string &refused);

/// Bytes of arguments read and written, counting each element once.
struct Traffic {
  uint64_t read, written;
};
Traffic countTraffic(const Call &call);

/// Logs the candidate code versions and the plan at MLAFIX_LOG_DEBUG.
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
  void *kernelParams[MLAFIX_MAX_PARAMS]; ///< point into plan.slots
};

#endif // MLAFIX_RUNTIME_CALL_H
