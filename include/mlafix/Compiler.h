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

/// The output of compile(); CompilerOptions.def describes each. Those up to
/// MLIR are JSON (Signature, Report, Faults), text for hosts (Header, TvmFfi),
/// or IR after a stage of the passes. Those before Layout need no target, and
/// leave names unbound without bindings.
enum class Emit {
#define MLAFIX_EMISSION(EMIT, NAME, MEANING) EMIT,
#include "mlafix/CompilerOptions.def"
};

/// Values for a kernel's names and for optional arguments ("absent" or
/// "present"): {{"H", "128"}, {"T", "bf16"}, {"out_lse", "absent"}}. Binding a
/// lower-case dim is an optimisation.
using Bindings = std::vector<std::pair<std::string, std::string>>;

struct CompileOptions {
  /// The kernel to compile; empty: all in the source.
  std::string kernel;
  /// Sets of bindings. Each kernel is compiled once per set; without a set,
  /// once with no bindings.
  std::vector<Bindings> specializations;
  /// Names such as "sm_90" or "x86-64-v3"; "cpu" means every CPU target of the
  /// host's architecture.
  std::vector<std::string> targets;
  Emit emit = Emit::Unit;
  /// Generates only this code version ("dense", "place", "fast" or "any"; on a
  /// CPU "streamed", "apart" or "any"), which may not support every legal call.
  /// Not allowed for units. Empty: all versions.
  std::string variant;
  /// Fields that override the compiler's decisions about the code versions of a
  /// GPU: "lanes=8" for all versions but `any`, "dense.lanes=8" for one.
  /// `dialect/PlanFields.def` lists all fields but "lanes" and "rows".
  std::vector<std::string> plan;
  /// If true, an access that is not proved in bounds is an error, as in kernels
  /// with `bounds = "prove"`. Otherwise it gets a bounds guard.
  bool provesBounds = false;
  AssemblerKind assembler = AssemblerKind::Any;
  /// The preferred `ptxas`; may be empty.
  std::string ptxas;
  /// Identifies the origin of the source, in the caller's own scheme. Units
  /// store it, so that callers can find the units that they compiled ahead.
  std::string digest;
  /// For Emit::Faults: the launch as a JSON object by argument. A tensor is
  /// {"sizes": […], "elements": […]} (elements only if the kernel reads them
  /// one by one), an omitted one null, a scalar its value.
  std::string launch;
  /// Adds source locations for profilers: lines in PTX and cubins, locations in
  /// MLIR text. Does not change the code, but the unit, which then contains the
  /// source's path.
  bool lineInfo = false;
  /// Header and TvmFfi: the program's name for the unit, a C identifier.
  std::string unitName;
  /// Reports the decisions of the passes and their reasons as messages of
  /// severity Remark, located at the kernel and its operations. For emissions
  /// after Emit::Canonical.
  bool remarks = false;
  /// If true, the passes follow MLIR's command-line options (such as
  /// --mlir-print-ir-after-all), which this program must have registered. They
  /// then run sequentially.
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

/// Time spent in one stage over the whole compilation, in milliseconds.
struct Timing {
  std::string stage;
  double milliseconds = 0;
};

struct CompileResult {
  bool ok = false;
  /// The output that `CompileOptions::emit` names, if `ok`.
  std::string output;
  /// One message per paragraph, as `file:line:column: error: …` if the location
  /// is known. May contain warnings if `ok`; otherwise explains the failure.
  std::string diagnostics;
  /// The same messages as a list.
  std::vector<Diagnostic> messages;
  std::vector<ResourceUsage> resources;
  std::vector<Timing> timings;
};

/// Published numbers of a common chip for `target` (lib/Machine/Chips.def):
/// {"multiprocessors", 132}, {"bandwidth", 4800} (memory, GB/s). Empty if
/// unknown.
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
/// `name` is its name in messages. A unit, Header and TvmFfi cover any number
/// of kernels, sets of bindings and targets. Every other emission requires
/// exactly one kernel, at most one set of bindings and, from Layout on, one
/// target.
///
/// Source that is already in the LLVM dialect and carries `mlafix.signature`
/// (what Emit::MLIR gives) skips the passes; it is for one target and has no
/// bindings left.
///
/// Emit::Signature gives {"name", "args", "aliases", "names"}. The arguments
/// are described in docs/UnitFormat.md; in addition, a tensor has "dtype_name"
/// if its dtype is a variable, and "dtype_moved" if the variable stands for
/// every dtype. "names" maps each name that can be bound to its default, or to
/// null if it must be bound.
///
/// The same arguments give the same bytes. Safe to call from several threads.
CompileResult compile(std::string_view source, std::string_view name,
                      const CompileOptions &options);

/// Parses "H=128,D=128,T=bf16". On failure returns false and sets `error`.
bool parseBindings(std::string_view text, Bindings &bindings,
                   std::string &error);

} // namespace mlafix

#endif // MLAFIX_COMPILER_H
