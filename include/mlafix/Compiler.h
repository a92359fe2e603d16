//===- Compiler.h - kernels in the DSL to code ------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The compiler as one function. The tools and the Python package call it. This
// header includes no LLVM or MLIR header.
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

/// The kind of output that compile() makes. CompilerOptions.def describes each
/// kind. The order of the enumerators has a meaning. The kinds up to MLIR are
/// text: JSON (Signature, Report, Faults), source text for hosts (Header,
/// TvmFfi), or IR after a stage of the passes. The kinds before Layout need no
/// target, and may leave names unbound.
enum class Emit {
#define MLAFIX_EMISSION(EMIT, NAME, MEANING) EMIT,
#include "mlafix/CompilerOptions.def"
};

/// Values for a kernel's names and its optional arguments: {{"H", "128"}, {"T",
/// "bf16"}, {"out_lse", "absent"}}. An optional argument is bound to "absent"
/// or "present". Binding a lower-case dim is an optimisation.
using Bindings = std::vector<std::pair<std::string, std::string>>;

struct CompileOptions {
  /// The name of the kernel to compile. If empty, all kernels of the source are
  /// compiled.
  std::string kernel;
  /// Sets of bindings. Each kernel is compiled once per set. If there is no
  /// set, each kernel is compiled once, without bindings.
  std::vector<Bindings> specializations;
  /// The names of the targets, such as "sm_90" or "x86-64-v3". "cpu" means
  /// every CPU target of the host's architecture.
  std::vector<std::string> targets;
  Emit emit = Emit::Unit;
  /// The name of the only code version to generate, or "" to generate all
  /// versions. GPUs have "dense", "place", "fast" and "any"; CPUs have
  /// "streamed", "apart" and "any". Units need all versions, since a single
  /// version does not always support every legal call. So `variant` must be
  /// empty for units.
  std::string variant;
  /// Fields that override the compiler's decisions about code versions for
  /// GPUs. "lanes=8" is for all versions but `any`, "dense.lanes=8" for one
  /// version. `dialect/PlanFields.def` lists all fields except "lanes" and
  /// "rows".
  std::vector<std::string> plan;
  /// If true, an access that is not proved in bounds is an error, as in kernels
  /// with `bounds = "prove"`. If false, such an access gets a bounds guard.
  bool provesBounds = false;
  AssemblerKind assembler = AssemblerKind::Any;
  /// The path of the `ptxas` to use. If empty, a search finds one.
  std::string ptxas;
  /// A text by which the caller identifies the source. Units store it, so that
  /// the caller can find the units that it compiled ahead of time.
  std::string digest;
  /// For Emit::Faults: the launch, as a JSON object with one entry per
  /// argument. A tensor is {"sizes": […], "elements": […]}, with elements only
  /// if the kernel reads them one by one. An omitted tensor is null, and a
  /// scalar is its value.
  std::string launch;
  /// If true, adds source locations for profilers to PTX, cubins and MLIR text.
  /// The code stays the same. The unit then contains the source's path.
  bool lineInfo = false;
  /// For Header and TvmFfi: the name of the unit in the program, a C
  /// identifier.
  std::string unitName;
  /// If true, `messages` also has what the passes decided, and why. These
  /// messages have the severity Remark and are located at the kernel and its
  /// operations. There are none if the passes end at the canonical stage or
  /// before it, as for Emit::Canonical, Emit::Report and Emit::Faults.
  bool remarks = false;
  /// If true, the passes obey MLIR's command-line options, such as
  /// --mlir-print-ir-after-all. The program must have registered these options.
  /// The passes then run one after another.
  bool passOptions = false;
};

/// The resources that one GPU entry point uses, as the assembler reports them.
struct ResourceUsage {
  std::string entry;
  std::string target;
  unsigned registers = 0; ///< registers per thread
  std::uint64_t localBytes =
      0; ///< bytes per thread: stack and spilled registers
  std::uint64_t sharedBytes = 0; ///< bytes of static shared memory per block
};

/// The time spent in one stage, summed over the whole compilation.
struct Timing {
  std::string stage;
  double milliseconds = 0;
};

struct CompileResult {
  bool ok = false;
  /// The output of the kind `CompileOptions::emit`, if `ok` is true.
  std::string output;
  /// The messages as text, one per paragraph. If the location is known, a
  /// message is `file:line:column: error: …`. If `ok` is true, there may be
  /// warnings. If it is false, the messages explain the failure.
  std::string diagnostics;
  /// The messages of `diagnostics`, as a list.
  std::vector<Diagnostic> messages;
  std::vector<ResourceUsage> resources;
  std::vector<Timing> timings;
};

/// Returns published numbers of a common chip for `target`
/// (lib/Machine/Chips.def): the number of multiprocessors, as
/// {"multiprocessors", 132}, and the memory bandwidth in GB/s, as {"bandwidth",
/// 4800}. Returns an empty list if these numbers are unknown.
std::vector<std::pair<std::string, std::int64_t>>
chipNumbers(std::string_view target);

/// Returns the versions: "mlafix 0.1.0, LLVM 22.1.8".
std::string_view compilerVersion();

/// Returns the name of `emit` in options, for example "mlir" or "unit".
std::string_view spelling(Emit emit);

/// Parses a name such as "mlir" or "unit". On failure, sets `error` and returns
/// false.
bool parseEmit(std::string_view text, Emit &emit, std::string &error);

/// Parses a name such as "any" or "ptxas". On failure, sets `error` and returns
/// false.
bool parseAssembler(std::string_view text, AssemblerKind &kind,
                    std::string &error);

/// Compiles the kernels in `source`, which is text in MLIR's syntax or its
/// bytecode. Messages call the source `name`. Unit, Header and TvmFfi accept
/// any number of kernels, sets of bindings and targets. Every other output
/// needs exactly one kernel and at most one set of bindings. Layout and the
/// outputs after it in Emit also need exactly one target.
///
/// If the source is already in the LLVM dialect and has `mlafix.signature`, the
/// passes are skipped. Emit::MLIR gives such a source. The source is for one
/// target, and has no names left to bind.
///
/// Emit::Signature gives {"name", "args", "aliases", "names"}.
/// docs/UnitFormat.md describes the arguments. In addition, a tensor has
/// "dtype_name" if its dtype is a variable, and "dtype_moved" if the variable
/// stands for every dtype. "names" maps each name that can be bound to its
/// default, or to null if the name must be bound.
///
/// Equal arguments give equal outputs, byte for byte. Several threads may call
/// this function at the same time.
CompileResult compile(std::string_view source, std::string_view name,
                      const CompileOptions &options);

/// Parses text such as "H=128,D=128,T=bf16". On failure, sets `error` and
/// returns false.
bool parseBindings(std::string_view text, Bindings &bindings,
                   std::string &error);

} // namespace mlafix

#endif // MLAFIX_COMPILER_H
