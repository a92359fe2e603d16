//===- Main.cpp - the pass driver and the compiler ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// mlafix-opt compiles kernels if it gets an option of the compiler, such as
// --emit or --target. Otherwise it runs passes, as mlir-opt does.
//
//===----------------------------------------------------------------------===//

#include "Main.h"

#include "lib/Compiler/Dialects.h"
#include "lib/Compiler/Pipeline.h"
#include "lib/Compiler/TextCheck.h"
#include "mlafix/Compiler.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace llvm;
using namespace mlafix;

//===----------------------------------------------------------------------===//
// The compiler
//===----------------------------------------------------------------------===//

/// The names that --target accepts, one per line.
static constexpr char targetList[] =
#define MLAFIX_GPU_TARGET(CAPABILITY) "sm_" #CAPABILITY "\n"
#define MLAFIX_CPU_TARGET(NAME, ARCHITECTURE, LEVEL) NAME "\n"
#include "mlafix/Targets.def"
    ;

namespace {

/// The treatment of accesses that are not proved in bounds: each gets a bounds
/// guard, or is reported as an error.
enum class OpenBounds { Guard, Prove };

/// The options with which mlafix-opt compiles. The constructor adds them to the
/// options of the pass driver.
struct CompilerCommandLine {
  cl::OptionCategory category{
      "mlafix compiler",
      "Any of these compiles kernels instead of running passes."};
  cl::list<std::string> targets{
      "target", cl::CommaSeparated, cl::value_desc("name,…"),
      cl::desc("Names that --list-targets prints, or cpu for every level of "
               "this machine's architecture"),
      cl::cat(category)};
  cl::opt<bool> listTargets{"list-targets",
                            cl::desc("Print the names of all targets and exit"),
                            cl::cat(category)};
  cl::list<std::string> specializations{
      "specialize", cl::value_desc("NAME=VALUE,…"),
      cl::desc("Values for a kernel's upper-case names, absent or present for "
               "its optional arguments; may be given again (units)"),
      cl::cat(category)};
  cl::opt<std::string> kernel{
      "kernel", cl::value_desc("name"),
      cl::desc("The kernel to compile (default: every one)"),
      cl::cat(category)};
  cl::opt<std::string> variant{
      "variant", cl::value_desc("name"),
      cl::desc(
          "Make the code of one code version only: dense_few, dense, place, "
          "fast or "
          "any, on a CPU streamed, apart or any (default: all; not for units)"),
      cl::cat(category)};
  cl::list<std::string> plan{
      "mlafix-plan", cl::CommaSeparated, cl::value_desc("NAME=VALUE,…"),
      cl::desc("Fields that take the place of what is decided about the code "
               "versions of a GPU, or VERSION.NAME=VALUE about one "
               "(#mlafix.plan in docs/Dialect.md)"),
      cl::cat(category)};
  cl::opt<Emit> emit{"emit", cl::desc("What to write (default: unit):"),
                     cl::init(Emit::Unit),
                     cl::ValuesClass{
#define MLAFIX_EMISSION(EMIT, NAME, MEANING)                                   \
  clEnumValN(Emit::EMIT, NAME, MEANING),
#include "mlafix/CompilerOptions.def"
                     },
                     cl::cat(category)};
  cl::opt<OpenBounds> bounds{
      "bounds", cl::desc("Accesses that are not proved to be in bounds:"),
      cl::init(OpenBounds::Guard),
      cl::values(clEnumValN(OpenBounds::Guard, "guard",
                            "get a bounds guard, where the kernel says nothing "
                            "else (default)"),
                 clEnumValN(OpenBounds::Prove, "prove", "are errors")),
      cl::cat(category)};
  cl::opt<AssemblerKind> assembler{
      "assembler",
      cl::desc("Where PTX is assembled (default: the first found):"),
      cl::init(AssemblerKind::Any),
      cl::ValuesClass{
#define MLAFIX_ASSEMBLER(KIND, NAME, MEANING)                                  \
  clEnumValN(AssemblerKind::KIND, NAME, MEANING),
#include "mlafix/CompilerOptions.def"
      },
      cl::cat(category)};
  cl::opt<std::string> ptxas{"ptxas", cl::value_desc("path"),
                             cl::desc("A ptxas to prefer to all else"),
                             cl::cat(category)};
  cl::opt<std::string> launch{
      "launch", cl::value_desc("JSON"),
      cl::desc("The arguments of a launch, for --emit=faults: "
               "'{\"x\": {\"sizes\": [2], \"elements\": [0, 1]}, \"n\": 2}'"),
      cl::cat(category)};
  cl::opt<bool> lineInfo{
      "line-info",
      cl::desc("PTX and cubins name the source's lines, for profilers"),
      cl::cat(category)};
  cl::opt<std::string> unitName{
      "name", cl::value_desc("identifier"),
      cl::desc("What header and tvm-ffi call the unit (default: the output's "
               "file name without its extension)"),
      cl::cat(category)};
  cl::opt<bool> remarks{
      "mlafix-remarks",
      cl::desc("Say why layouts, code versions, prefetches and so on were "
               "chosen, or were not"),
      cl::cat(category)};
  cl::opt<bool> timePieces{
      "time-pieces", cl::desc("Print the time of each stage in milliseconds"),
      cl::cat(category)};
  cl::opt<unsigned> repeat{
      "repeat", cl::init(1), cl::value_desc("count"),
      cl::desc("Compile so many times; times are the last one's"),
      cl::cat(category)};
  cl::opt<bool> resourceUsage{
      "resource-usage",
      cl::desc("Print each entry's registers, local and shared memory"),
      cl::cat(category)};

  /// Returns true if the parsed command line has one of these options.
  bool areGiven() const {
    auto count = [](const auto &...option) {
      return (option.getNumOccurrences() + ...);
    };
    return count(targets, specializations, kernel, variant, plan, emit, bounds,
                 assembler, ptxas, launch, timePieces, repeat, resourceUsage,
                 lineInfo, remarks, listTargets, unitName) > 0;
  }
  bool fill(CompileOptions &result, std::string &error);
};

} // namespace

static int fail(const Twine &message) {
  errs() << "error: " << message << "\n";
  return EXIT_FAILURE;
}

static void printTimings(const CompileResult &result) {
  double total = 0;
  for (const Timing &timing : result.timings) {
    errs() << format("%9.2f ms  ", timing.milliseconds) << timing.stage << "\n";
    total += timing.milliseconds;
  }
  errs() << format("%9.2f ms  in all\n", total);
}

static void printResources(const CompileResult &result) {
  for (const ResourceUsage &usage : result.resources)
    errs() << usage.entry << " " << usage.target << ": " << usage.registers
           << " registers, " << usage.localBytes << " bytes local, "
           << usage.sharedBytes << " bytes shared\n";
}

/// Writes `text` to `path`, atomically if it is a regular file. Returns the
/// exit status.
static int writeOutput(StringRef path, StringRef text) {
  bool special =
      path == "-" || (sys::fs::exists(path) && !sys::fs::is_regular_file(path));
  if (special) {
    std::error_code error;
    raw_fd_ostream stream(path, error);
    if (!error)
      stream << text, stream.flush();
    if (stream.has_error())
      error = stream.error(), stream.clear_error();
    return error ? fail("cannot write '" + path + "': " + error.message())
                 : EXIT_SUCCESS;
  }
  Error error = writeToOutput(path, [&](raw_ostream &stream) {
    stream << text;
    return Error::success();
  });
  if (error)
    return fail("cannot write '" + path + "': " + toString(std::move(error)));
  return EXIT_SUCCESS;
}

/// Returns true if the command line has an MLIR option about passes.
static bool arePassOptionsGiven() {
  return any_of(cl::getRegisteredOptions(), [](const auto &entry) {
    StringRef name = entry.first;
    return entry.second->getNumOccurrences() > 0 &&
           (name.starts_with("mlir-print-ir-") ||
            name.starts_with("mlir-pass-"));
  });
}

bool CompilerCommandLine::fill(CompileOptions &result, std::string &error) {
  result.kernel = kernel;
  result.targets = targets;
  result.variant = variant;
  result.plan = plan;
  result.emit = emit;
  result.provesBounds = bounds == OpenBounds::Prove;
  result.assembler = assembler;
  result.ptxas = ptxas;
  result.lineInfo = lineInfo;
  result.unitName = unitName;
  result.launch = launch;
  result.remarks = remarks;
  result.passOptions = arePassOptionsGiven();
  return all_of(specializations, [&](const std::string &text) {
    return parseBindings(text, result.specializations.emplace_back(), error);
  });
}

/// Compiles the file `input` and writes the file `output`. "-" stands for
/// standard input or output. Returns the exit status.
static int compileFile(CompilerCommandLine &options, StringRef input,
                       StringRef output) {
  if (options.listTargets)
    return writeOutput(output, targetList);
  CompileOptions compileOptions;
  std::string error;
  if (!options.fill(compileOptions, error))
    return fail("--specialize: " + error);
  if (compileOptions.unitName.empty())
    compileOptions.unitName = sys::path::stem(output).str();

  auto source = MemoryBuffer::getFileOrSTDIN(input, /*IsText=*/false);
  if (!source)
    return fail("cannot read '" + input + "': " + source.getError().message());

  if (sys::fs::equivalent(input, output) && sys::fs::is_regular_file(output))
    return fail("-o: expected another file than the source, got '" + output +
                "'");

  CompileResult result;
  for (unsigned i = 0, e = std::max(options.repeat.getValue(), 1u); i != e; ++i)
    result = compile((*source)->getBuffer(), (*source)->getBufferIdentifier(),
                     compileOptions);
  errs() << result.diagnostics;
  if (options.timePieces)
    printTimings(result);
  if (!result.ok)
    return EXIT_FAILURE;
  if (options.resourceUsage)
    printResources(result);
  return writeOutput(output, result.output);
}

//===----------------------------------------------------------------------===//
// The pass driver
//===----------------------------------------------------------------------===//

/// Returns true if the parsed command line names passes to run.
static bool arePassesGiven() {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::PassManager passes(&context);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  return failed(config.setupPassPipeline(passes)) || !passes.empty();
}

/// Returns true if the parser can read `text` within its limits of stack and
/// time; otherwise reports an error.
static bool isReadable(const MemoryBuffer &text) {
  std::optional<TextError> error;
  if (!mlir::isBytecode(text.getMemBufferRef()))
    error = checkText(text.getBuffer());
  if (!error)
    return true;
  SourceMgr sources;
  sources.AddNewSourceBuffer(
      MemoryBuffer::getMemBuffer(text.getMemBufferRef(), false), SMLoc());
  auto [line, column] = sources.getLineAndColumn(
      SMLoc::getFromPointer(text.getBufferStart() + error->offset));
  errs() << text.getBufferIdentifier() << ":" << line << ":" << column
         << ": error: " << error->message << "\n";
  return false;
}

/// Runs the passes of the command line, as mlir-opt does.
static mlir::LogicalResult runPasses(int argc, char **argv, StringRef input,
                                     StringRef output,
                                     mlir::DialectRegistry &registry) {
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::MlirOptMain(argc, argv, input, output, registry);
  std::string error;
  std::unique_ptr<MemoryBuffer> text = mlir::openInputFile(input, &error);
  StringRef plain = text ? dropByteOrderMark(text->getBuffer()) : "";
  if (text && plain.size() != text->getBufferSize())
    text = MemoryBuffer::getMemBufferCopy(plain, text->getBufferIdentifier());
  std::unique_ptr<ToolOutputFile> file =
      text && isReadable(*text) ? mlir::openOutputFile(output, &error)
                                : nullptr;
  if (!error.empty())
    errs() << "error: " << error << "\n";
  if (!file ||
      failed(mlir::MlirOptMain(file->os(), std::move(text), registry, config)))
    return mlir::failure();
  file->keep();
  return mlir::success();
}

/// Hides the thousand options of LLVM's own libraries. --help-hidden shows
/// them.
static void hideLibraryOptions() {
  for (auto &entry : cl::getRegisteredOptions())
    if (is_contained(entry.second->Categories, &cl::getGeneralCategory()))
      entry.second->setHiddenFlag(cl::Hidden);
}

#ifndef NDEBUG
/// An option that does the same as LLVM's --debug-only, which LLVM lacks if it
/// was built without assertions.
static cl::list<std::string> debugged(
    "mlafix-debug", cl::CommaSeparated, cl::value_desc("pass,…"),
    cl::desc("Print what these passes note for the compiler's authors (LDBG)"));

static void enableDebugOutput() {
  SmallVector<const char *> types;
  for (const std::string &type : debugged)
    types.push_back(type.c_str());
  DebugFlag = !types.empty();
  if (DebugFlag)
    setCurrentDebugTypes(types.data(), types.size());
}
#endif

int mlafix_opt_main(int argc, char **argv) {
  // LLVM calls this handler before it would abort. The handler prints one line
  // and exits, so that there is no core dump.
  install_fatal_error_handler([](void *, const char *reason, bool) {
    errs() << "error: LLVM cannot go on: " << reason << "\n";
    std::_Exit(EXIT_FAILURE);
  });
  hideLibraryOptions();
  registerMlafixPasses();
  mlir::DialectRegistry &registry = dialectRegistry();
  CompilerCommandLine compiler;
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "mlafix compiler and pass driver\n", registry);
#ifndef NDEBUG
  enableDebugOutput();
#endif
  if (!compiler.areGiven())
    return mlir::asMainReturnCode(
        runPasses(argc, argv, input, output, registry));
  if (arePassesGiven()) {
    errs() << "error: expected options of the compiler (--emit, --target, …) "
              "or passes, got both\n";
    return EXIT_FAILURE;
  }
  return compileFile(compiler, input, output);
}
