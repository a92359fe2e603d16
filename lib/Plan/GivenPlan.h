//===- GivenPlan.h - fields of plans that a user gives ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PLAN_GIVENPLAN_H
#define MLAFIX_PLAN_GIVENPLAN_H

#include "dialect/Plan.h"
#include "lib/Machine/MachineModel.h"

namespace mlafix {

/// Name of the attribute on a kernel that is not planned yet with the fields
/// that its author gives, an array of strings: NAME=VALUE, or
/// VERSION.NAME=VALUE.
inline constexpr llvm::StringLiteral kGivenPlanAttr = "mlafix.given_plan";

/// Fields that override decisions about a kernel's code versions. `NAME=VALUE`
/// applies to all of them but `any`, the version for calls that no other takes;
/// `VERSION.NAME=VALUE` applies to one. NAME is a field of PlanFields.def, or
/// `lanes`, `rows` or `parts` of a layout.
class GivenPlan {
public:
  /// Parses the fields. An error describes the fault in `texts`.
  static llvm::Expected<GivenPlan> parse(llvm::ArrayRef<std::string> texts);

  bool isEmpty() const { return entries.empty(); }
  /// A code version that has fields but is not one of `names`.
  std::optional<llvm::StringRef>
  findUnknown(llvm::ArrayRef<llvm::StringRef> names) const;

  /// Returns `layout` with the lanes, rows and parts that are given for
  /// `version`, a code version's name without the kernel's name. A row has
  /// `packs` packs. If rows are in parts and only lanes are given, each lane
  /// keeps its number of packs. Emits an error at `kernel` if a row cannot be
  /// distributed like that.
  llvm::FailureOr<LayoutAttr> adapt(KernelOp kernel, llvm::StringRef version,
                                    LayoutAttr layout, int64_t packs) const;

  /// Overwrites those of a plan's `numbers` that are given for `version`.
  void set(llvm::StringRef version,
           llvm::MutableArrayRef<int64_t> numbers) const;

private:
  struct Entry {
    std::string version; ///< empty: all versions but `any`
    std::string name;
    int64_t value;

    bool isFor(llvm::StringRef other) const {
      return version.empty() ? other != "any" : other == version;
    }
  };
  llvm::SmallVector<Entry> entries;
};

} // namespace mlafix

#endif // MLAFIX_PLAN_GIVENPLAN_H
