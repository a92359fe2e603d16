//===- RemarkMessages.h - remarks of passes as messages ---------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_COMPILER_REMARKMESSAGES_H
#define MLAFIX_LIB_COMPILER_REMARKMESSAGES_H

#include "mlir/IR/MLIRContext.h"

#include <string>

namespace mlafix {

/// While it lives, what passes say of their decisions (mlir/IR/Remarks.h)
/// becomes diagnostics: "KERNEL on WHERE: TEXT [KIND: NAME]", where KIND is
/// passed, missed or analysis.
class RemarkMessages {
public:
  /// `where`: the target, and what else tells compilations of a kernel apart.
  RemarkMessages(mlir::MLIRContext &context, std::string where);
  ~RemarkMessages();
  RemarkMessages(const RemarkMessages &) = delete;
  RemarkMessages &operator=(const RemarkMessages &) = delete;

private:
  mlir::MLIRContext &context;
};

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_REMARKMESSAGES_H
