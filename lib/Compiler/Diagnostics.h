//===- Diagnostics.h - MLIR's diagnostics as plain structs ----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_COMPILER_DIAGNOSTICS_H
#define MLAFIX_LIB_COMPILER_DIAGNOSTICS_H

#include "mlafix/Diagnostic.h"
#include "mlir/IR/Diagnostics.h"

#include <set>

namespace mlafix {

/// The range of source that `location` names; unknown where it names none.
SourceLocation toSourceLocation(mlir::Location location);

/// The reverse.
mlir::Location fromSourceLocation(mlir::MLIRContext *context,
                                  const SourceLocation &location);

/// Adds every diagnostic to a list while it lives. With `forward`, handlers
/// made before it get them, too.
class DiagnosticCollector : public mlir::ScopedDiagnosticHandler {
public:
  DiagnosticCollector(mlir::MLIRContext *context,
                      std::vector<Diagnostic> &diagnostics, bool forward);
};

/// Keeps a warning that was given before, while it lives, from all handlers
/// made before it: each target and each choice of bindings gives it again.
class RepeatedWarnings : public mlir::ScopedDiagnosticHandler {
public:
  explicit RepeatedWarnings(mlir::MLIRContext *context);

private:
  std::set<std::pair<const void *, std::string>> given; ///< location, message
};

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_DIAGNOSTICS_H
