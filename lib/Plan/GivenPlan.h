//===- GivenPlan.h - plan fields that a user gives --------------*- C++ -*-===//
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

/// The attribute with the plan fields that a kernel's author gives. It is an
/// array of strings, NAME=VALUE or VERSION.NAME=VALUE. Planning removes it.
inline constexpr llvm::StringLiteral kGivenPlanAttr = "mlafix.given_plan";

/// Fields that override decisions about a kernel's code versions. `NAME=VALUE`
/// applies to all versions except `any`, which takes the calls that no other
/// version takes. `VERSION.NAME=VALUE` applies to one version. NAME is a field
/// of PlanFields.def, or `lanes`, `rows` or `parts` of a layout.
class GivenPlan {
public:
  /// Parses the fields. The returned error describes the fault in `texts`.
  static llvm::Expected<GivenPlan> parse(llvm::ArrayRef<std::string> texts);

  bool isEmpty() const { return entries.empty(); }
  /// Returns the first code version that a field names but that is not in
  /// `names`. Returns nullopt if there is none.
  std::optional<llvm::StringRef>
  findUnknown(llvm::ArrayRef<llvm::StringRef> names) const;

  /// Returns `layout` with the lanes, rows and parts that are given for
  /// `version`, a code version's name without the kernel's name. `packs` is the
  /// number of packs in a row. If rows are in parts and only lanes are given,
  /// each lane keeps its number of packs. Emits an error at `kernel` if a row
  /// cannot be distributed in this way.
  llvm::FailureOr<LayoutAttr> adapt(KernelOp kernel, llvm::StringRef version,
                                    LayoutAttr layout, int64_t packs) const;

  /// Overwrites the entries of a plan's `numbers` that are given for `version`.
  void set(llvm::StringRef version,
           llvm::MutableArrayRef<int64_t> numbers) const;

private:
  struct Entry {
    std::string version; ///< empty: all versions except `any`
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
