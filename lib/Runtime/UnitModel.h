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
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mlafix::runtime {

namespace limits = mlafix::limits;

/// True if arguments of this mlafix_arg_kind are several tensors.
inline bool isMany(int32_t kind) {
  return kind == MLAFIX_ARG_PEERS || kind == MLAFIX_ARG_LIST;
}

/// The fields that every launch reads come first, adjacent: between launches
/// the driver evicts them from the caches.
struct ArgDesc {
  int32_t kind = 0;          ///< mlafix_arg_kind of the argument
  int32_t dtype = 0;         ///< tensors only
  uint32_t elementBytes = 0; ///< a power of two; 1 if elements share a byte
  uint32_t perByte = 1;      ///< elements per byte: 1 or 2
  int32_t access = 0;
  bool optional = false;
  uint8_t tileRows = 0; ///< tiled tensors: rows per tile (of 4 columns); 0: not
                        ///< tiled
  bool boundPresent = false; ///< tensors: optional in the source, required here
  uint32_t numDims = 0;
  uint32_t most = 0; ///< several tensors: the most that there may be
  int32_t atMostId = -1;
  int32_t dimIds[MLAFIX_MAX_DIMS]; ///< indices into KernelDesc::dimNames; -1:
                                   ///< no constraint
  int64_t shape[MLAFIX_MAX_DIMS], strides[MLAFIX_MAX_DIMS]; ///< -1: any

  std::string name;
  std::string dtypeName; ///< as in the manifest
  std::vector<std::string> dims;
  std::string atMost;                    ///< scalars; "": no bound
  std::vector<const char *> dimPointers; ///< C strings of `dims`, for the C
                                         ///< interface

  /// True if it has sizes and strides.
  bool isTensor() const { return kind == MLAFIX_ARG_TENSOR || isMany(); }
  /// True if each rank passes one.
  bool isPeers() const { return kind == MLAFIX_ARG_PEERS; }
  /// True if it is several tensors (of ranks or a list); the first dim counts
  /// them.
  bool isMany() const { return runtime::isMany(kind); }
  bool isSwizzled() const { return tileRows != 0; }
  bool isAbsent() const { return access == MLAFIX_ABSENT; }
  bool isWritten() const {
    return access == MLAFIX_WRITE || access == MLAFIX_UPDATE;
  }
  uint32_t ndim() const { return numDims; }
};

/// The guard's entry in Guards.def.
struct Guard {
  GuardKind kind;
  uint64_t args = 0;  ///< bit set of the arguments that it tests
  uint32_t first = 0; ///< the first of these arguments
  uint32_t dim = 0;
  int64_t number = 0;

  const GuardSpec &spec() const { return specOf(kind); }
};

static_assert(MLAFIX_MAX_ARGS <= 64, "a guard has a bit for each argument");

/// See CheckSteps.def.
struct CheckStep {
  CheckStepKind kind = CheckStepKind::Constant;
  uint32_t of[3] = {}; ///< indices of earlier steps
  uint32_t arg = 0, dim = 0;
  int64_t value = 0;

  bool isLeaf() const { return kind <= CheckStepKind::Scalar; }
};

/// A condition on sizes and scalars; if it is false, nothing is launched.
struct LaunchCheck {
  std::string text; ///< source text
  std::vector<CheckStep> steps;
};

struct Param {
  ParamKind kind;
  uint32_t arg = 0, dim = 0;
  uint32_t bytes = 8; ///< size that the GPU entry takes
  uint32_t slots = 1; ///< number of 8-byte slots in a launch
};

struct Extent {
  enum Kind { TensorSize, ScalarValue, Constant } kind;
  uint32_t arg = 0, dim = 0;
  int64_t value = 0; ///< Constant
  /// TensorSize: if above 1, the size counts pieces of this many, at least one
  int64_t per = 1;
};

/// Groups of lanes that share the pieces of each row.
struct Groups : LaneGroups {
  Extent pieces{};
};

struct Geometry {
  enum Kind { Rows, Ragged, Groups } kind = Rows;
  std::vector<Extent> extents; ///< Ragged: the rows, then the inner extents;
                               ///< else all extents
  int64_t lanes = 1;           ///< lanes per row
  runtime::Groups groups;
  int64_t rowsPerBlock = 1;
  std::optional<Extent> parts; ///< blocks of each row, which do not wait for
                               ///< each other
  int64_t threads = 1; ///< most threads per block; rowsPerBlock belongs to
                       ///< it
  /// the fewest threads to which a launch may halve a block
  int64_t leastThreads = 1;
  int64_t blocksPerSm = 1;
  int64_t cluster = 1; ///< Rows: blocks per row
};

struct CodeVersion {
  std::string entry;
  std::vector<Guard> guards;
  std::vector<Param> params;
  Geometry geometry;
  bool dependentLaunch = false;
  uint64_t offset = 0;     ///< CPU: offset of the entry in the image
  uint64_t stackBytes = 0; ///< CPU: stack bytes per call; 0: little
  int32_t local = -1;      ///< the parameter of kind Local, or -1
  int32_t group = -1;      ///< first slot of the parameter of kind Group, or -1
  /// For kind Local: slots of the pointers of all tensors that are read, except
  /// peers' tensors.
  std::vector<uint32_t> readSlots;
};

struct Image {
  enum Format { Cubin, Ptx, Cpu } format;
  uint64_t offset = 0, size = 0; ///< within the file
  std::string assembler;
};

/// True for the name of a CPU target (mlafix/Targets.def), of any architecture.
bool isCpuTarget(const std::string &target);
/// The level of a CPU target of this machine's architecture; -1 for others.
int cpuLevelOf(const std::string &target);

struct TargetCode {
  std::string target;
  int computeCapability = 0; ///< 10 x major + minor; 0: CPU
  int cpuLevel = -1;         ///< level of a CPU target that this machine
                             ///< supports
  std::vector<Image> images;
  std::vector<CodeVersion> variants;

  bool isCpu() const { return computeCapability == 0; }
};

/// The compiler's answer to a question about an argument: text for people; no
/// launch depends on it.
struct ProofDesc {
  uint32_t arg = 0;
  std::string question, verdict, reason, element;
};

struct KernelDesc {
  std::string name;
  std::vector<std::pair<std::string, std::string>> bindings; ///< sorted
  /// Values of names that a lookup may omit; sorted.
  std::vector<std::pair<std::string, std::string>> defaults;
  std::string bindingsText; ///< "D=128,T=bf16"
  std::vector<ArgDesc> args;
  std::vector<std::string> dimNames;
  std::vector<std::pair<uint32_t, uint32_t>> aliases;
  std::vector<LaunchCheck> checks;
  std::vector<ProofDesc> proofs; ///< empty in units of older compilers
  std::vector<TargetCode> code;
  bool collective = false; ///< all ranks of a group launch it together
  bool exchanges = false;  ///< ranks also store to each other
};

struct UnitDesc {
  std::string producer;
  size_t manifestBytes = 0; ///< after the header
  std::vector<KernelDesc> kernels;
};

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_UNITMODEL_H
