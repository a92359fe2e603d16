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

/// An argument in the form that the kernel needs. Every launch has a Call with
/// MLAFIX_MAX_ARGS of these structs on its stack. To save time, their fields
/// are not initialised.
struct CallArg {
  /// False if a tensor is omitted or its data pointer is null.
  bool present;
  /// False if a tensor is omitted. Its sizes and strides are then meaningless.
  bool hasShape;
  bool empty;    ///< true if some size of a tensor is 0
  uint8_t table; ///< for several tensors: index into Call::tables
  void *data;
  uint64_t scalar; ///< for a scalar: its value as a parameter slot
  int64_t sizes[MLAFIX_MAX_DIMS];
  int64_t strides[MLAFIX_MAX_DIMS];
};

/// The parameter of kind Group. Compiled code reads this layout.
struct GroupSlots {
  uint32_t rank, ranks;
  uint64_t timeoutNs;
  uint64_t *failure;
  void *workspaces[MLAFIX_MAX_RANKS];
};
static_assert(sizeof(GroupSlots) == 8 * (3 + MLAFIX_MAX_RANKS),
              "slots without gaps");

/// Returns true if the caller's struct is large enough for the fields of the
/// first version of mlafix_group.
inline bool isGroup(const mlafix_group *group) {
  return group && group->struct_size >= offsetof(mlafix_group, slots);
}

/// Returns the field `slots` of a group, or 0 if the caller's header is too old
/// to have it.
inline uint64_t slotsOf(const mlafix_group &group) {
  return group.struct_size >= sizeof(mlafix_group) ? group.slots : 0;
}

struct Call {
  const KernelDesc *kernel;
  mlafix_device device;
  uint32_t flags;
  CallArg args[MLAFIX_MAX_ARGS];
  uint32_t numTables; ///< number of arguments that are several tensors
  bool hasGroup;      ///< true if `group` is filled in
  void *tables[limits::peers][MLAFIX_MAX_RANKS];
  /// The Group parameter of a collective kernel on a GPU. It is set if
  /// `hasGroup` is true.
  GroupSlots group;
  uint64_t
      blockSlots; ///< the group's `slots`: how many blocks may store to peers

  const KernelDesc &desc() const { return *kernel; }
};

/// Fills in `call`. Makes every check that does not need the driver, and calls
/// checkMemory() if `flags` request deep checks.
mlafix_status checkCall(const mlafix_kernel &kernel, const mlafix_arg *args,
                        uint32_t numArgs, mlafix_device device, uint32_t flags,
                        Call &call);

/// Makes the checks whose result may change with the data pointers. A bound
/// call repeats these checks when its pointers change.
mlafix_status checkPointers(const Call &call);

/// Returns a scalar argument as a parameter slot. A bool other than 0 or 1 gets
/// a slot value that no valid bool has.
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

/// Returns the value of an integer argument, of which a Call has the slot.
inline int64_t integerOf(const Call &call, uint32_t index) {
  uint64_t slot = call.args[index].scalar;
  return call.desc().args[index].kind == MLAFIX_ARG_I32
             ? static_cast<int32_t>(slot)
             : static_cast<int64_t>(slot);
}

/// Returns true if arguments `a` and `b` are tensors that may have the same
/// address although one of them is written.
bool mayCoincide(const Call &call, uint32_t a, uint32_t b);

/// Checks a scalar argument and writes its value to `out`.
mlafix_status readScalar(const ArgDesc &desc, const mlafix_arg &arg,
                         CallArg &out);

/// Checks a tensor argument and writes its pointer, sizes and strides to `arg`.
mlafix_status readTensor(const ArgDesc &desc, const mlafix_tensor *tensor,
                         mlafix_device device, CallArg &arg);

/// Checks an argument of several tensors (peers or a list) and adds their
/// addresses to `call`.
mlafix_status readMany(const ArgDesc &desc, const mlafix_peers *peers,
                       mlafix_device device, Call &call, CallArg &out);

/// Makes the checks of checkPointers() for the arguments that are several
/// tensors.
mlafix_status checkManyPointers(const Call &call);

/// Fails if some rank has not taken part in an earlier launch of the group.
mlafix_status checkGroup(const Call &call);

/// Checks the bounds of scalars and the kernel's other conditions on sizes and
/// scalars. All arguments must have been read.
mlafix_status checkScalarBounds(const Call &call);

/// Asks the driver whether each pointer is valid memory for the device.
mlafix_status checkMemory(const Call &call);

/// A planned launch without its parameters: code version and grid.
struct PlannedGrid {
  const CodeVersion *variant;
  uint32_t index; ///< index of `variant` among the code versions
  uint32_t numParams;
  uint32_t grid;         ///< number of blocks (CUDA)
  uint32_t threads;      ///< threads per block (CUDA)
  uint32_t groupThreads; ///< threads per lane group (CUDA); 0: no lane groups
  int64_t rows;          ///< number of rows; 0: nothing to launch
  int64_t rowBytes;      ///< approximate bytes touched per row (CPU)
};

/// A launch as it is planned: code version, grid and packed parameters.
struct Plan : PlannedGrid {
  uint64_t slots[limits::slots];
};

/// Selects the code version, computes the grid and packs the parameters into
/// `plan`.
mlafix_status planLaunch(const Call &call, const TargetCode &code,
                         int64_t multiprocessors, Plan &plan);

/// Sets `refused` to the reason why a code version rejects a call: the first
/// guard that fails, and the call's value for it. Sets it to "" if the code
/// version accepts the call.
mlafix_status explainVersion(const Call &call, const CodeVersion &variant,
                             std::string &refused);

/// The number of bytes of arguments that a launch reads and writes. Each
/// element counts once.
struct Traffic {
  uint64_t read, written;
};
Traffic countTraffic(const Call &call);

/// Logs the candidate code versions and the plan, if MLAFIX_LOG_DEBUG messages
/// are wanted.
mlafix_status logPlan(const Call &call, const PreparedKernel &prepared,
                      const Plan &plan);

/// Launches on the CUDA stream `stream`, or on the CPU.
mlafix_status runPlan(const PreparedKernel &prepared, const Plan &plan,
                      mlafix_device device, void *stream, uint32_t flags);

/// Returns true if the launch may use programmatic dependent launch.
bool isDependent(const Plan &plan, uint32_t flags);

} // namespace mlafix::runtime

struct mlafix_bound {
  mlafix::runtime::Call call;
  const mlafix::runtime::PreparedKernel *prepared;
  mlafix::runtime::Plan plan;
  void *kernelParams[MLAFIX_MAX_PARAMS]; ///< addresses in plan.slots
};

#endif // MLAFIX_RUNTIME_CALL_H
