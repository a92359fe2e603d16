//===- Diagnostic.h - messages and where they are ---------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Declares messages of the compiler. Includes no LLVM or MLIR header.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIAGNOSTIC_H
#define MLAFIX_DIAGNOSTIC_H

#include <string>
#include <vector>

namespace mlafix {

/// A range in a source file. Lines and columns count from 1, and columns count
/// UTF-8 bytes. `endColumn` is one past the last character. A number is 0 if it
/// is unknown.
struct SourceLocation {
  std::string file;
  unsigned line = 0;
  unsigned column = 0;
  unsigned endLine = 0;
  unsigned endColumn = 0;

  bool isKnown() const { return line != 0; }
};

/// A message of the compiler about a source, with its notes.
struct Diagnostic {
  enum class Severity { Error, Warning, Note, Remark };
  /// The kind of a message, for callers that add their own advice.
  enum class Kind {
    Other,
    SeveralKernels, ///< the caller must choose one of the kernels in `subject`
    UnboundDim,     ///< the dim in `subject` must be bound
  };

  Severity severity = Severity::Error;
  std::string message;
  SourceLocation location;
  std::vector<Diagnostic> notes;
  Kind kind = Kind::Other;
  std::string subject = {};
};

} // namespace mlafix

#endif // MLAFIX_DIAGNOSTIC_H
