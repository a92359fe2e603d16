//===- Compiler.h - kernels in the DSL to code ------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The compiler as one function, which the tools and the Python package use.
// This header needs no LLVM or MLIR header.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_COMPILER_H
#define MLAFIX_COMPILER_H

#include "mlafix/AssemblerKind.h"
#include "mlafix/Diagnostic.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mlafix {

/// The output of compile(); the table in CompilerOptions.def describes each.
/// Those up to MLIR are JSON (Signature, Report, Faults), text for hosts
/// (Header, TvmFfi), or text after a stage of the passes; those before Layout
/// need no target, and are generic without bindings.
enum class Emit {
#define MLAFIX_EMISSION(EMIT, NAME, MEANING) EMIT,
#include "mlafix/CompilerOptions.def"
};

/// Values for a kernel's names (upper-case ones, and lower-case dims as an
/// optimisation), and "absent" or "present" for
/// optional arguments: {{"H", "128"}, {"T", "bf16"}, {"out_lse", "absent"}}.
using Bindings = std::vector<std::pair<std::string, std::string>>;

struct CompileOptions {
  /// The kernel to compile; empty: all that the source holds.
  std::string kernel;
  /// Each kernel is compiled once for each of these; an empty list is one
  /// without bindings.
  std::vector<Bindings> specializations;
  /// Names such as "sm_90" or "x86-64-v3"; "cpu" is every
  /// CPU target of the architecture that the compiler runs on.
  std::vector<std::string> targets;
  Emit emit = Emit::Unit;
  /// Makes the code of one code version alone ("dense", "place", "fast" or
  /// "any", on a CPU "streamed", "apart" or "any"), which may not run every
  /// legal call: for everything but a unit. Empty: all of them.
  std::string variant;
  /// True if an access that is not proved to be in bounds is an error, as in
  /// kernels with `bounds = "prove"`; otherwise it gets a bounds guard.
  bool provesBounds = false;
  AssemblerKind assembler = AssemblerKind::Any;
  /// The `ptxas` to use before any other; may be empty.
  std::string ptxas;
  /// Names what the source was made of, in the caller's way to count; units
  /// hold it, so that the caller finds what it compiled ahead.
  std::string digest;
  /// Of Emit::Faults: the launch, in JSON: each argument by its name, a tensor
  /// as {"sizes": […], "elements": […]} (the elements where the kernel reads
  /// them one by one), null where it is omitted, a scalar as its value.
  std::string launch;
  /// PTX and cubins name the line of the source that each instruction is from,
  /// for profilers, and text in MLIR's syntax the location of each operation.
  /// The code is the same, the unit is not: it holds the source's path.
  bool lineInfo = false;
  /// Header and TvmFfi: what the program calls the unit, a C identifier.
  std::string unitName;
  /// The result's messages say what the passes decided, and why: with the
  /// severity Remark, at the locations of the kernel and its operations. For
  /// emissions after Emit::Canonical.
  bool remarks = false;
  /// True if the passes follow MLIR's options about passes on the command line
  /// of this program, which has registered them (--mlir-print-ir-after-all).
  /// They then run one after the other.
  bool passOptions = false;
};

/// The resources of a GPU entry point, as the assembler reports them.
struct ResourceUsage {
  std::string entry;
  std::string target;
  unsigned registers = 0;        ///< per thread
  std::uint64_t localBytes = 0;  ///< per thread: stack frame and spills
  std::uint64_t sharedBytes = 0; ///< per block, static
};

/// Time spent in one stage, in milliseconds, over everything compiled.
struct Timing {
  std::string stage;
  double milliseconds = 0;
};

struct CompileResult {
  bool ok = false;
  /// The output that `CompileOptions::emit` names, if `ok`.
  std::string output;
  /// One message per paragraph, `file:line:column: error: …` where a location
  /// is known. May hold warnings when `ok`; says why when not.
  std::string diagnostics;
  /// The same, message by message.
  std::vector<Diagnostic> messages;
  std::vector<ResourceUsage> resources;
  std::vector<Timing> timings;
};

/// Published numbers of a chip that is common for `target`
/// (lib/Machine/Chips.def): {"multiprocessors", 132}, {"bandwidth", 4800} (of
/// the memory, in GB/s). Empty where nothing is known.
std::vector<std::pair<std::string, std::int64_t>>
chipNumbers(std::string_view target);

/// "mlafix 0.1.0, LLVM 22.1.8".
std::string_view compilerVersion();

/// The spelling of `emit` in options: "mlir", "unit".
std::string_view spelling(Emit emit);

/// Parses "mlir", "unit". On failure returns false and sets `error`.
bool parseEmit(std::string_view text, Emit &emit, std::string &error);

/// Parses "any", "ptxas". On failure returns false and sets `error`.
bool parseAssembler(std::string_view text, AssemblerKind &kind,
                    std::string &error);

/// Compiles the kernels in `source`, text in MLIR's syntax or its bytecode;
/// `name` is its name in messages. A unit, and the text of its hosts (Header,
/// TvmFfi), is of any number of kernels, sets of bindings and targets; every
/// other emission requires exactly one kernel, at most one set of bindings and,
/// from Layout on, one target.
///
/// Source that is already in the LLVM dialect and carries `mlafix.signature`
/// (what Emit::MLIR gives) skips the passes; it is for one target and has no
/// bindings left.
///
/// Emit::Signature gives {"name", "args", "aliases", "names"}: the arguments as
/// docs/UnitFormat.md has them, a tensor's with "dtype_name" where its dtype is
/// a variable, and "dtype_moved" where it stands for every dtype; "names" maps
/// each name that can be bound to its default, or to null where it must be
/// bound.
///
/// The same arguments give the same bytes. Safe to call from several threads.
CompileResult compile(std::string_view source, std::string_view name,
                      const CompileOptions &options);

/// Parses "H=128,D=128,T=bf16". On failure returns false and sets `error`.
bool parseBindings(std::string_view text, Bindings &bindings,
                   std::string &error);

} // namespace mlafix

#endif // MLAFIX_COMPILER_H
