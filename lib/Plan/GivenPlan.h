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

/// Fields that take the place of what is decided about a kernel's code
/// versions: `NAME=VALUE` for all of them but `any`, which is for calls that no
/// other takes, or `VERSION.NAME=VALUE` for one. Besides the fields of
/// PlanFields.def, NAME is `lanes`, `rows` or `parts`, of a layout.
class GivenPlan {
public:
  /// The error names what is wrong with `texts`.
  static llvm::Expected<GivenPlan> parse(llvm::ArrayRef<std::string> texts);

  bool isEmpty() const { return entries.empty(); }
  /// A code version that fields are given for and that is none of `names`.
  std::optional<llvm::StringRef>
  findUnknown(llvm::ArrayRef<llvm::StringRef> names) const;

  /// `layout` with the lanes, rows and parts that are given for `version`, a
  /// code version's name without its kernel's; a row has `packs` packs. If rows
  /// are in parts and lanes alone are given, lanes hold as many packs as
  /// before. An error at `kernel` if a row cannot be shared so.
  llvm::FailureOr<LayoutAttr> adapt(KernelOp kernel, llvm::StringRef version,
                                    LayoutAttr layout, int64_t packs) const;

  /// Sets `numbers`, a plan's, as far as they are given for `version`.
  void set(llvm::StringRef version,
           llvm::MutableArrayRef<int64_t> numbers) const;

private:
  struct Entry {
    std::string version; ///< empty: all but `any`
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
