//===- Plan.h - the fields of a code version's plan -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_PLAN_H
#define MLAFIX_DIALECT_PLAN_H

#include "dialect/Mlafix.h"

#include "llvm/Support/Error.h"

namespace mlafix {

/// The fields of a plan, in the order of PlanFields.def.
enum class PlanField : unsigned {
#define MLAFIX_PLAN_NUMBER(FIELD, NAME, INITIAL, LEAST, MOST, MEANING) FIELD,
#define MLAFIX_PLAN_NAMED_NUMBER(FIELD, NAME, NAMES, INITIAL, LEAST, MOST,     \
                                 MEANING)                                      \
  FIELD,
#define MLAFIX_PLAN_FLAG(FIELD, NAME, MEANING) FIELD,
#define MLAFIX_PLAN_CHOICE(FIELD, NAME, VALUES, MEANING) FIELD,
#include "dialect/PlanFields.def"
};

/// The rule that determines the number of threads of a block (PlanFields.def).
enum class BlockRule {
#define MLAFIX_PLAN_VALUE(VALUES, VALUE, NAME, MEANING) VALUE,
#include "dialect/PlanFields.def"
};

/// The values of the field `resident` that are not a number of blocks.
inline constexpr int64_t kFittingResident = -1, kAnyResident = 0;

/// Describes one field of a plan.
struct PlanFieldSpec {
  llvm::StringLiteral name;
  int64_t initial, least, most;
  /// The names of the values, starting with `least`. Values after the last name
  /// have no name.
  llvm::ArrayRef<llvm::StringLiteral> choices;

  /// Returns the text of `value`, which must be a valid value of the field.
  std::string spell(int64_t value) const;
  /// Returns the value that `text` spells. The error says what was expected.
  llvm::Expected<int64_t> read(llvm::StringRef text) const;
};

/// Returns all fields, in the order of PlanField.
llvm::ArrayRef<PlanFieldSpec> getPlanFields();

/// Returns the value of `field` in the plan of `kernel`. The kernel must have a
/// plan.
inline int64_t getPlanned(KernelOp kernel, PlanField field) {
  return kernel.getPlanAttr().getNumber(field);
}

} // namespace mlafix

#endif // MLAFIX_DIALECT_PLAN_H
