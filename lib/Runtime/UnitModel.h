//===- UnitModel.h - What a unit says, as plain structs ---------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A unit's contents as C++ structs, which correspond to docs/UnitFormat.md.
// Manifest.cpp and ManifestJson.cpp fill in the structs from JSON and check
// every index and count. So the rest of the runtime uses the structs without
// checks.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_UNITMODEL_H
#define MLAFIX_RUNTIME_UNITMODEL_H

#include "mlafix/LaneGroups.h"
#include "mlafix/UnitKinds.h"
#include "mlafix/UnitLimits.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mlafix::runtime {

namespace limits = mlafix::limits;

/// Returns true if an argument of this mlafix_arg_kind is several tensors.
inline bool isMany(int32_t kind) {
  return kind == MLAFIX_ARG_PEERS || kind == MLAFIX_ARG_LIST;
}

/// An argument of a kernel. The fields that every launch reads come first and
/// are adjacent, so that they take few cache lines. A launch has to fetch these
/// lines again, because the driver evicts them between launches.
struct ArgDesc {
  int32_t kind = 0;          ///< the mlafix_arg_kind that a call must pass
  int32_t dtype = 0;         ///< a tensor's mlafix_dtype
  uint32_t elementBytes = 0; ///< a power of two; 1 if elements share a byte
  uint32_t perByte = 1;      ///< number of elements per byte: 1 or 2
  int32_t access = 0;
  bool optional = false;
  /// The number of rows of a tile in tiled storage (tiles have 4 columns); 0 if
  /// the tensor is not tiled.
  uint8_t tileRows = 0;
  bool boundPresent =
      false; ///< true if the binding makes an optional tensor required
  uint32_t numDims = 0;
  uint32_t most = 0; ///< largest number of tensors, if isMany()
  int32_t atMostId = -1;
  /// Indices into KernelDesc::dimNames; -1 for a dim without a name.
  int32_t dimIds[MLAFIX_MAX_DIMS];
  /// The required size and stride of each dim; -1 if any value is allowed.
  int64_t shape[MLAFIX_MAX_DIMS], strides[MLAFIX_MAX_DIMS];

  std::string name;
  std::string dtypeName; ///< the dtype's name in the manifest
  std::vector<std::string> dims;
  std::string atMost; ///< name of the dim that bounds a scalar, or ""
  /// The C strings of `dims`, for the C interface.
  std::vector<const char *> dimPointers;

  /// Returns true if the argument has sizes and strides.
  bool isTensor() const { return kind == MLAFIX_ARG_TENSOR || isMany(); }
  /// Returns true if the argument has one tensor per rank.
  bool isPeers() const { return kind == MLAFIX_ARG_PEERS; }
  /// Returns true if the argument is several tensors (of ranks or a list). Its
  /// first dim counts the tensors.
  bool isMany() const { return runtime::isMany(kind); }
  bool isSwizzled() const { return tileRows != 0; }
  bool isAbsent() const { return access == MLAFIX_ABSENT; }
  bool isWritten() const {
    return access == MLAFIX_WRITE || access == MLAFIX_UPDATE;
  }
  uint32_t ndim() const { return numDims; }
};

/// A condition on a call under which a code version may run. Guards.def lists
/// the kinds.
struct Guard {
  GuardKind kind;
  uint64_t args = 0;  ///< bit set of the arguments that it tests
  uint32_t first = 0; ///< the first argument that it tests
  uint32_t dim = 0;
  int64_t number = 0;

  const GuardSpec &spec() const { return specOf(kind); }
};

static_assert(MLAFIX_MAX_ARGS <= 64, "a guard has a bit for each argument");

/// One step of evaluating a LaunchCheck. CheckSteps.def lists the kinds.
struct CheckStep {
  CheckStepKind kind = CheckStepKind::Constant;
  uint32_t of[3] = {}; ///< indices of earlier steps: its operands
  uint32_t arg = 0, dim = 0;
  int64_t value = 0;

  bool isLeaf() const { return kind <= CheckStepKind::Scalar; }
};

/// A condition on sizes and scalars. If it is false, nothing is launched.
struct LaunchCheck {
  std::string text; ///< the condition as in the kernel's source
  std::vector<CheckStep> steps;
};

struct Param {
  ParamKind kind;
  uint32_t arg = 0, dim = 0;
  uint32_t bytes = 8; ///< size in bytes among the GPU entry's parameters
  uint32_t slots = 1; ///< number of 8-byte slots in a launch
};

struct Extent {
  enum Kind { TensorSize, ScalarValue, Constant } kind;
  uint32_t arg = 0, dim = 0;
  int64_t value = 0; ///< the number, for Constant
  /// For TensorSize: the tensor's size is divided by this number and rounded
  /// up. If the number is more than 1, the extent is at least 1.
  int64_t per = 1;
};

/// The limits of lane groups, and the number of states in a row's running
/// merge, which the groups divide among themselves ("pieces" in the manifest).
struct Groups : LaneGroups {
  Extent pieces{};
};

struct Geometry {
  enum Kind { Rows, Ragged, Groups } kind = Rows;
  /// All extents of the grid. For Ragged: the rows, then the inner extents.
  std::vector<Extent> extents;
  int64_t lanes = 1; ///< number of lanes per row
  runtime::Groups groups;
  int64_t rowsPerBlock = 1;
  /// The number of blocks per row, if several blocks compute a row without
  /// waiting for each other.
  std::optional<Extent> parts;
  /// The largest number of threads per block. A block with so many threads
  /// computes `rowsPerBlock` rows.
  int64_t threads = 1;
  /// The smallest number of threads to which a launch may halve a block.
  int64_t leastThreads = 1;
  int64_t blocksPerSm = 1;
  int64_t cluster = 1; ///< number of blocks of a row's cluster, for Rows
};

struct CodeVersion {
  std::string entry;
  std::vector<Guard> guards;
  std::vector<Param> params;
  Geometry geometry;
  bool dependentLaunch = false;
  uint64_t offset = 0;     ///< offset of the CPU entry in the image
  uint64_t stackBytes = 0; ///< stack bytes per call on a CPU; 0: up to 64 KiB
  int32_t local = -1;      ///< index of the parameter of kind Local, or -1
  int32_t group = -1;      ///< first slot of the parameter of kind Group, or -1
  /// The slots of the pointers of all tensors that are read, except peers'
  /// tensors. They determine the parameter of kind Local.
  std::vector<uint32_t> readSlots;
};

struct Image {
  enum Format { Cubin, Ptx, Cpu } format;
  uint64_t offset = 0, size = 0; ///< in bytes, within the file
  std::string assembler;
};

/// Returns true if `target` is the name of a CPU target (mlafix/Targets.def) of
/// any architecture.
bool isCpuTarget(const std::string &target);
/// Returns the level of a CPU target of this machine's architecture, or -1 for
/// any other name.
int cpuLevelOf(const std::string &target);

struct TargetCode {
  std::string target;
  int computeCapability = 0; ///< 10 * major + minor; 0 for a CPU target
  /// The level of the CPU target, or -1 if it is not for this machine's
  /// architecture.
  int cpuLevel = -1;
  std::vector<Image> images;
  std::vector<CodeVersion> variants;

  bool isCpu() const { return computeCapability == 0; }
};

/// The compiler's answer to a question about an argument. It is text for
/// people: no launch depends on it.
struct ProofDesc {
  uint32_t arg = 0;
  std::string question, verdict, reason, element;
};

struct KernelDesc {
  std::string name;
  std::vector<std::pair<std::string, std::string>> bindings; ///< sorted by name
  /// The default values of names, which a lookup may omit. Sorted by name.
  std::vector<std::pair<std::string, std::string>> defaults;
  std::string bindingsText; ///< the bindings as text: "D=128,T=bf16"
  std::vector<ArgDesc> args;
  std::vector<std::string> dimNames;
  std::vector<std::pair<uint32_t, uint32_t>> aliases;
  std::vector<LaunchCheck> checks;
  std::vector<ProofDesc> proofs; ///< empty if an older compiler wrote the unit
  std::vector<TargetCode> code;
  bool collective = false; ///< true if all ranks of a group launch together
  bool exchanges = false;  ///< true if the ranks also store to each other
};

struct UnitDesc {
  std::string producer;
  size_t manifestBytes = 0; ///< size of the manifest, which follows the header
  std::vector<KernelDesc> kernels;
};

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_UNITMODEL_H
