//===- Diagnostics.cpp - MLIR's diagnostics as plain structs --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/Diagnostics.h"

#include "lib/Transforms/Passes.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"

using namespace mlafix;

SourceLocation mlafix::toSourceLocation(mlir::Location location) {
  auto range = location->findInstanceOf<mlir::FileLineColRange>();
  if (!range)
    return {};
  return {range.getFilename().str(), range.getStartLine(),
          range.getStartColumn(), range.getEndLine(), range.getEndColumn()};
}

mlir::Location mlafix::fromSourceLocation(mlir::MLIRContext *context,
                                          const SourceLocation &location) {
  if (!location.isKnown())
    return mlir::UnknownLoc::get(context);
  auto file = mlir::StringAttr::get(context, location.file);
  if (location.endLine == 0)
    return mlir::FileLineColRange::get(file, location.line, location.column);
  return mlir::FileLineColRange::get(file, location.line, location.column,
                                     location.endLine, location.endColumn);
}

static Diagnostic convert(mlir::Diagnostic &diagnostic) {
  Diagnostic result;
  switch (diagnostic.getSeverity()) {
  case mlir::DiagnosticSeverity::Error:
    result.severity = Diagnostic::Severity::Error;
    break;
  case mlir::DiagnosticSeverity::Warning:
    result.severity = Diagnostic::Severity::Warning;
    break;
  case mlir::DiagnosticSeverity::Note:
    result.severity = Diagnostic::Severity::Note;
    break;
  case mlir::DiagnosticSeverity::Remark:
    result.severity = Diagnostic::Severity::Remark;
    break;
  }
  result.message = diagnostic.str();
  result.location = toSourceLocation(diagnostic.getLocation());
  for (mlir::DiagnosticArgument &known : diagnostic.getMetadata()) {
    if (known.getKind() !=
        mlir::DiagnosticArgument::DiagnosticArgumentKind::Attribute)
      continue;
    auto fields = llvm::dyn_cast<mlir::DictionaryAttr>(known.getAsAttribute());
    auto dim =
        fields ? fields.getAs<mlir::StringAttr>(kUnboundDimKey) : nullptr;
    if (!dim)
      continue;
    result.kind = Diagnostic::Kind::UnboundDim;
    result.subject = dim.getValue().str();
  }
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    result.notes.push_back(convert(note));
  return result;
}

DiagnosticCollector::DiagnosticCollector(mlir::MLIRContext *context,
                                         std::vector<Diagnostic> &diagnostics,
                                         bool forward)
    : ScopedDiagnosticHandler(context) {
  setHandler([&diagnostics, forward](mlir::Diagnostic &diagnostic) {
    diagnostics.push_back(convert(diagnostic));
    // Failure passes the diagnostic on to the next handler.
    return llvm::failure(forward);
  });
}

RepeatedWarnings::RepeatedWarnings(mlir::MLIRContext *context)
    : ScopedDiagnosticHandler(context) {
  setHandler([this](mlir::Diagnostic &diagnostic) {
    bool isRepeated =
        diagnostic.getSeverity() == mlir::DiagnosticSeverity::Warning &&
        !given
             .insert({diagnostic.getLocation().getAsOpaquePointer(),
                      diagnostic.str()})
             .second;
    // Failure passes the diagnostic on to the next handler.
    return llvm::success(isRepeated);
  });
}
