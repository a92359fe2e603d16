//===- UnitKinds.h - Guards, parameters and geometries of units -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The kinds in CheckSteps.def, Guards.def and Params.def as C++ enumerations.
// The compiler uses them to write units, and the runtime to read them.
// docs/UnitFormat.md describes each kind.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_UNITKINDS_H
#define MLAFIX_UNITKINDS_H

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mlafix {

//===----------------------------------------------------------------------===//
// Launch checks
//===----------------------------------------------------------------------===//

enum class CheckStepKind {
  Constant, ///< a number, in the field "value"
  Size,     ///< the size of a tensor, in the fields "arg" and "dim"
  Scalar,   ///< an integer argument, in the field "arg"
#define MLAFIX_CHECK_STEP(KIND, NAME, OPERANDS, VALUE) KIND,
#include "mlafix/CheckSteps.def"
};

//===----------------------------------------------------------------------===//
// Guards
//===----------------------------------------------------------------------===//

enum class GuardKind {
#define MLAFIX_GUARD(KIND, NAME, ARGS, NUMBER, RANGE, POINTERS, HOLDS) KIND,
#include "mlafix/Guards.def"
};

enum class GuardArgs { None, Dim, Pair, List, Alike };
enum class GuardRange { None, Alignment, Count, Any };
enum class GuardPointers { None, LowBits, Equality };

/// One line of Guards.def.
struct GuardSpec {
  GuardKind kind;
  const char *name;
  GuardArgs args;
  const char *number; ///< name of the field with the number, or ""
  GuardRange range;
  GuardPointers pointers;
  const char *holds;

  bool hasNumber() const { return range != GuardRange::None; }
  /// Returns the least number of tensors that a guard of this kind names.
  size_t leastArgs() const {
    return args == GuardArgs::None                               ? 0
           : args == GuardArgs::Pair || args == GuardArgs::Alike ? 2
                                                                 : 1;
  }
  size_t mostArgs() const {
    switch (args) {
    case GuardArgs::None:
      return 0;
    case GuardArgs::Dim:
      return 1;
    case GuardArgs::Pair:
      return 2;
    case GuardArgs::List:
    case GuardArgs::Alike:
      break;
    }
    return SIZE_MAX;
  }
  /// Returns how many tensors the guard names, for messages after "expected".
  const char *argsText() const {
    switch (args) {
    case GuardArgs::None:
      return "no argument";
    case GuardArgs::Dim:
      return "one argument";
    case GuardArgs::Pair:
      return "two arguments";
    case GuardArgs::List:
      return "one argument or more";
    case GuardArgs::Alike:
      break;
    }
    return "two arguments or more";
  }
  bool takes(int64_t number) const {
    switch (range) {
    case GuardRange::None:
      return false;
    case GuardRange::Alignment:
      return number >= 1 && number <= 4096 && (number & (number - 1)) == 0;
    case GuardRange::Count:
      return number >= 0;
    case GuardRange::Any:
      break;
    }
    return true;
  }
  /// Returns the range of the guard's number, for messages after "expected".
  const char *rangeText() const {
    switch (range) {
    case GuardRange::None:
      return "no number";
    case GuardRange::Alignment:
      return "a power of two from 1 to 4096";
    case GuardRange::Count:
      return "an integer of at least 0";
    case GuardRange::Any:
      break;
    }
    return "an integer";
  }
};

inline constexpr GuardSpec kGuards[] = {
#define MLAFIX_GUARD(KIND, NAME, ARGS, NUMBER, RANGE, POINTERS, HOLDS)         \
  {GuardKind::KIND,         NAME, GuardArgs::ARGS, NUMBER, GuardRange::RANGE,  \
   GuardPointers::POINTERS, HOLDS},
#include "mlafix/Guards.def"
};

constexpr const GuardSpec &specOf(GuardKind kind) {
  return kGuards[static_cast<size_t>(kind)];
}

/// Returns the guard kind called `name`, or null if there is none.
constexpr const GuardSpec *findGuard(std::string_view name) {
  for (const GuardSpec &spec : kGuards)
    if (name == spec.name)
      return &spec;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

enum class ParamKind {
#define MLAFIX_PARAM(KIND, NAME, OF) KIND,
#include "mlafix/Params.def"
};

enum class ParamOf { Launch, Tensor, TensorDim, Scalar, Peers, Group };

/// One line of Params.def.
struct ParamSpec {
  ParamKind kind;
  const char *name;
  ParamOf of;

  bool hasArg() const { return of != ParamOf::Launch && of != ParamOf::Group; }
  bool hasDim() const { return of == ParamOf::TensorDim; }
  bool hasRanks() const { return of == ParamOf::Peers || of == ParamOf::Group; }
  /// Returns how many 8-byte slots the parameter has for at most `ranks` ranks.
  size_t slots(size_t ranks) const {
    // A Group parameter has three slots before those of the ranks: this rank
    // and the number of ranks (two i32), the time-out, and the failure address.
    return !hasRanks() ? 1 : of == ParamOf::Group ? 3 + ranks : ranks;
  }
};

inline constexpr ParamSpec kParams[] = {
#define MLAFIX_PARAM(KIND, NAME, OF) {ParamKind::KIND, NAME, ParamOf::OF},
#include "mlafix/Params.def"
};

constexpr const ParamSpec &specOf(ParamKind kind) {
  return kParams[static_cast<size_t>(kind)];
}

/// Returns the parameter kind called `name`, or null if there is none.
constexpr const ParamSpec *findParam(std::string_view name) {
  for (const ParamSpec &spec : kParams)
    if (name == spec.name)
      return &spec;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Geometries
//===----------------------------------------------------------------------===//

/// The values of the field "kind" of a geometry.
namespace geometry {
inline constexpr const char *rows = "rows";
inline constexpr const char *ragged = "ragged";
inline constexpr const char *groups = "groups";
} // namespace geometry

} // namespace mlafix

#endif // MLAFIX_UNITKINDS_H
