//===- Diagnostics.h - MLIR's diagnostics as plain structs ------*- C++ -*-===//
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

/// Returns the source range of `location`. The range is unknown if `location`
/// has none.
SourceLocation toSourceLocation(mlir::Location location);

/// Returns the MLIR location of a source range: the inverse of
/// toSourceLocation().
mlir::Location fromSourceLocation(mlir::MLIRContext *context,
                                  const SourceLocation &location);

/// Collects every diagnostic while in scope. With `forward`, handlers that were
/// installed earlier receive them as well.
class DiagnosticCollector : public mlir::ScopedDiagnosticHandler {
public:
  DiagnosticCollector(mlir::MLIRContext *context,
                      std::vector<Diagnostic> &diagnostics, bool forward);
};

/// Drops repeated warnings while in scope. Without this handler, each target
/// and each set of bindings would repeat the same warnings.
class RepeatedWarnings : public mlir::ScopedDiagnosticHandler {
public:
  explicit RepeatedWarnings(mlir::MLIRContext *context);

private:
  std::set<std::pair<const void *, std::string>>
      given; ///< (location, message) pairs already seen
};

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_DIAGNOSTICS_H
