//===- Diagnostic.h - messages and where they are ---------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// This header needs no LLVM or MLIR header.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIAGNOSTIC_H
#define MLAFIX_DIAGNOSTIC_H

#include <string>
#include <vector>

namespace mlafix {

/// A range of a source file. Lines and columns count from 1 (columns in bytes
/// of UTF-8); `endColumn` is one past the last character. Zero: not known.
struct SourceLocation {
  std::string file;
  unsigned line = 0;
  unsigned column = 0;
  unsigned endLine = 0;
  unsigned endColumn = 0;

  bool isKnown() const { return line != 0; }
};

/// One message about a source.
struct Diagnostic {
  enum class Severity { Error, Warning, Note, Remark };
  /// The kind of a message, for callers that give advice in their own words.
  enum class Kind {
    Other,
    SeveralKernels, ///< one kernel must be chosen; of `subject` many
    UnboundDim,     ///< the dim `subject` must be bound
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
