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

/// The source range of `location`; an unknown one if it has none.
SourceLocation toSourceLocation(mlir::Location location);

/// The inverse of toSourceLocation().
mlir::Location fromSourceLocation(mlir::MLIRContext *context,
                                  const SourceLocation &location);

/// Collects every diagnostic while in scope. With `forward`, earlier handlers
/// get them as well.
class DiagnosticCollector : public mlir::ScopedDiagnosticHandler {
public:
  DiagnosticCollector(mlir::MLIRContext *context,
                      std::vector<Diagnostic> &diagnostics, bool forward);
};

/// Drops warnings that were already given while it is in scope; otherwise each
/// target and each set of bindings would repeat them.
class RepeatedWarnings : public mlir::ScopedDiagnosticHandler {
public:
  explicit RepeatedWarnings(mlir::MLIRContext *context);

private:
  std::set<std::pair<const void *, std::string>>
      given; ///< (location, message) pairs
};

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_DIAGNOSTICS_H
