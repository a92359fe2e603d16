//===- UnitModel.h - What a unit says, as plain structs ---------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// docs/UnitFormat.md in C++. The Manifest*.cpp fill these in from JSON and
// check every index and count, so that the rest of the runtime indexes without
// asking.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_UNITMODEL_H
#define MLAFIX_RUNTIME_UNITMODEL_H

#include "mlafix/LaneGroups.h"
#include "mlafix/UnitKinds.h"
#include "mlafix/UnitLimits.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mlafix::runtime {

namespace limits = mlafix::limits;

/// True if arguments of a mlafix_arg_kind are several tensors.
inline bool isMany(int32_t kind) {
  return kind == MLAFIX_ARG_PEERS || kind == MLAFIX_ARG_LIST;
}

/// The fields that every launch reads come first and are adjacent: since the
/// last launch the driver has replaced the contents of the caches.
struct ArgDesc {
  int32_t kind = 0;          ///< the mlafix_arg_kind that a call passes
  int32_t dtype = 0;         ///< tensors
  uint32_t elementBytes = 0; ///< a power of two; of those that share a byte, 1
  uint32_t perByte = 1;      ///< elements that share a byte
  int32_t access = 0;
  bool optional = false;
  uint8_t tileRows = 0; ///< rows and columns in tiles of so many x 4; 0: not
  bool boundPresent = false; ///< tensors: optional in the source, not here
  uint32_t numDims = 0;
  uint32_t most = 0; ///< of several tensors: how many there may be
  int32_t atMostId = -1;
  int32_t dimIds[MLAFIX_MAX_DIMS]; ///< into KernelDesc::dimNames; -1: ties
                                   ///< nothing
  int64_t shape[MLAFIX_MAX_DIMS], strides[MLAFIX_MAX_DIMS]; ///< -1: any

  std::string name;
  std::string dtypeName; ///< as in the manifest
  std::vector<std::string> dims;
  std::string atMost;                    ///< scalars; "": no bound
  std::vector<const char *> dimPointers; ///< of `dims`, for the C interface

  /// True if it has sizes and strides.
  bool isTensor() const { return kind == MLAFIX_ARG_TENSOR || isMany(); }
  /// True if each rank has one.
  bool isPeers() const { return kind == MLAFIX_ARG_PEERS; }
  /// True if it is several, of ranks or of a list; the first dim counts them.
  bool isMany() const { return runtime::isMany(kind); }
  bool isSwizzled() const { return tileRows != 0; }
  bool isAbsent() const { return access == MLAFIX_ABSENT; }
  bool isWritten() const {
    return access == MLAFIX_WRITE || access == MLAFIX_UPDATE;
  }
  uint32_t ndim() const { return numDims; }
};

/// The entry of its kind in Guards.def.
struct Guard {
  GuardKind kind;
  uint64_t args = 0;  ///< a bit for each argument that it is about
  uint32_t first = 0; ///< of these in the unit's order
  uint32_t dim = 0;
  int64_t number = 0;

  const GuardSpec &spec() const { return specOf(kind); }
};

static_assert(MLAFIX_MAX_ARGS <= 64, "a guard has a bit for each argument");

/// See CheckSteps.def.
struct CheckStep {
  CheckStepKind kind = CheckStepKind::Constant;
  uint32_t of[3] = {}; ///< steps before this one
  uint32_t arg = 0, dim = 0;
  int64_t value = 0;

  bool isLeaf() const { return kind <= CheckStepKind::Scalar; }
};

/// A condition on sizes and scalars without which nothing is launched.
struct LaunchCheck {
  std::string text; ///< as the source says it
  std::vector<CheckStep> steps;
};

struct Param {
  ParamKind kind;
  uint32_t arg = 0, dim = 0;
  uint32_t bytes = 8; ///< what the GPU entry takes
  uint32_t slots = 1; ///< of the launch's 8-byte slots
};

struct Extent {
  enum Kind { TensorSize, ScalarValue, Constant } kind;
  uint32_t arg = 0, dim = 0;
  int64_t value = 0;
};

/// Lane groups that share the pieces of each row.
struct Groups : LaneGroups {
  Extent pieces{};
};

struct Geometry {
  enum Kind { Rows, Ragged, Groups } kind = Rows;
  std::vector<Extent> extents; ///< Ragged: the rows, then the inner; else all
  int64_t lanes = 1;           ///< Groups: of a row
  runtime::Groups groups;
  int64_t rowsPerBlock = 1;
  int64_t threads = 1;      ///< of a block, at most; rowsPerBlock goes with it
  int64_t leastThreads = 1; ///< the fewest that a launch may halve it to
  int64_t blocksPerSm = 1;
  int64_t cluster = 1; ///< Rows: blocks that share a row
};

struct CodeVersion {
  std::string entry;
  std::vector<Guard> guards;
  std::vector<Param> params;
  Geometry geometry;
  bool dependentLaunch = false;
  uint64_t offset = 0;     ///< CPU: of the entry in the image
  uint64_t stackBytes = 0; ///< CPU: that a call takes; 0: any stack has them
  int32_t local = -1;      ///< the parameter of kind Local, or -1 for none
  int32_t group = -1; ///< where the slots of kind Group begin, or -1 for none
  /// The slots of the pointers that it is about: of all tensors that are read,
  /// but those of ranks.
  std::vector<uint32_t> readSlots;
};

struct Image {
  enum Format { Cubin, Ptx, Cpu } format;
  uint64_t offset = 0, size = 0; ///< in the file
  std::string assembler;
};

/// True for the name of a CPU target (mlafix/Targets.def), of any architecture.
bool isCpuTarget(const std::string &target);
/// The level of a CPU target of this machine's architecture; -1 for other
/// names.
int cpuLevelOf(const std::string &target);

struct TargetCode {
  std::string target;
  int computeCapability = 0; ///< 10 x major + minor; 0: CPU
  int cpuLevel = -1;         ///< of a CPU target that this machine may run
  std::vector<Image> images;
  std::vector<CodeVersion> variants;

  bool isCpu() const { return computeCapability == 0; }
};

/// The compiler's answer to a question about an argument: words for people,
/// which no launch depends on.
struct ProofDesc {
  uint32_t arg = 0;
  std::string question, verdict, reason, element;
};

struct KernelDesc {
  std::string name;
  std::vector<std::pair<std::string, std::string>> bindings; ///< sorted
  /// The values of names that a look-up does not give; sorted.
  std::vector<std::pair<std::string, std::string>> defaults;
  std::string bindingsText; ///< "D=128,T=bf16"
  std::vector<ArgDesc> args;
  std::vector<std::string> dimNames;
  std::vector<std::pair<uint32_t, uint32_t>> aliases;
  std::vector<LaunchCheck> checks;
  std::vector<ProofDesc> proofs; ///< none in a unit of an older compiler
  std::vector<TargetCode> code;
  bool collective = false; ///< all ranks of a group launch it together
  bool exchanges = false;  ///< and store to each other
};

struct UnitDesc {
  std::string producer;
  size_t manifestBytes = 0; ///< after the header
  std::vector<KernelDesc> kernels;
};

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_UNITMODEL_H
