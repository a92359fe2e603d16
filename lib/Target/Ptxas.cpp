//===- Ptxas.cpp - PTX to cubin by a process of its own -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/Assembler.h"

#include "lib/Target/Cubin.h"
#include "lib/Target/Process.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include <map>
#include <mutex>

using namespace llvm;
using namespace mlafix::target;

namespace {

/// Returns environment variables that make ptxas use huge pages for the 20 MB
/// that it touches, if the system allows programs to request them. With small
/// pages, page faults took half of the time in which ptxas assembles a small
/// kernel. The user's own tunables come last and therefore override these.
std::vector<std::string> allocatorVariables() {
  std::string tunables =
      "GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.top_pad=33554432";
  if (std::optional<std::string> users = sys::Process::GetEnv("GLIBC_TUNABLES"))
    tunables += ":" + *users;
  return {std::move(tunables)};
}

class Ptxas final : public Assembler {
public:
  Ptxas(StringRef path, std::string description, bool splits)
      : path(path), description(std::move(description)), splits(splits) {}

  StringRef name() const override { return description; }
  std::unique_ptr<Assembly> begin(const TargetSpec &target,
                                  const AssemblyOptions &options) override;

  std::string path;
  std::string description;
  bool splits; ///< true if this ptxas supports --split-compile
};

/// A ptxas process, which initialises while its PTX is still being generated.
class PtxasAssembly final : public Assembly {
public:
  PtxasAssembly(const Ptxas &ptxas, const TargetSpec &target,
                const AssemblyOptions &options)
      : ptxas(ptxas), process(start(ptxas, target, options)) {}

  ~PtxasAssembly() override {
    if (!process)
      consumeError(process.takeError());
  }

  Expected<std::string> finish(StringRef ptx) override {
    if (!process)
      return process.takeError();
    Expected<Process::Result> result = (*process)->finish(ptx);
    if (!result)
      return result.takeError();
    if (isDone(*result))
      return std::move(result->output);
    StringRef log = StringRef(result->log).trim();
    if (log.empty() && !result->status)
      log = "it made no whole cubin, and its status went to a host that reaps "
            "every child (SIGCHLD)";
    std::string message =
        (ptxas.description + " cannot assemble the kernel: " + log).str() +
        adviseOnLog(log).str();
    if (log.contains("Unsupported .version") ||
        log.contains("is not defined for option 'gpu-name'"))
      return make_error<UnsupportedByAssembler>(std::move(message));
    return createStringError(message);
  }

private:
  /// Returns true if ptxas succeeded. Without an exit status, a complete cubin
  /// and no error message mean success.
  static bool isDone(const Process::Result &result) {
    if (result.status)
      return *result.status == 0;
    StringRef log = result.log;
    if (log.contains("error   :") || log.contains("fatal   :"))
      return false;
    auto resources = expectedToOptional(readResources(result.output));
    return resources && !resources->empty();
  }

  static Expected<std::unique_ptr<Process>>
  start(const Ptxas &ptxas, const TargetSpec &target,
        const AssemblyOptions &options) {
    std::string arch = ("-arch=" + target.name).str();
    SmallVector<StringRef> arguments = {arch, "/dev/stdin", "-o",
                                        "/dev/stdout"};
    // Use one thread per code version, of which a kernel has up to four. With
    // one version, threads only cost time (0.5 ms of 17 ms).
    if (ptxas.splits && !options.isSingle)
      arguments.push_back("--split-compile=4");
    if (options.lineInfo)
      arguments.push_back("--generate-line-info");
    if (options.isCautious)
      arguments.push_back("-O1");
    return Process::start(ptxas.path, arguments, allocatorVariables());
  }

  const Ptxas &ptxas;
  Expected<std::unique_ptr<Process>> process;
};

std::unique_ptr<Assembly> Ptxas::begin(const TargetSpec &target,
                                       const AssemblyOptions &options) {
  return std::make_unique<PtxasAssembly>(*this, target, options);
}

} // namespace

Expected<Assembler *> mlafix::target::openPtxas(StringRef name) {
  std::string path = name.str();
  if (!name.contains('/')) {
    ErrorOr<std::string> found = sys::findProgramByName(name);
    if (!found)
      return createStringError("there is no program '" + name + "' on PATH");
    path = *found;
  }
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Assembler>> opened;
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Assembler> &slot = opened[path];
  if (slot)
    return slot.get();
  Expected<std::unique_ptr<Process>> process =
      Process::start(path, {"--version"});
  if (!process)
    return process.takeError();
  Expected<Process::Result> answer = (*process)->finish("");
  if (!answer)
    return answer.takeError();
  StringRef log = answer->output;
  // One line is "Cuda compilation tools, release 13.0, V13.0.88".
  auto [before, after] = log.split(", V");
  StringRef version =
      after.take_while([](char c) { return isDigit(c) || c == '.'; });
  if (answer->status.value_or(0) != 0 || version.empty())
    return createStringError("'" + path +
                             "' is not ptxas: it answers "
                             "--version with '" +
                             StringRef(answer->output + answer->log).trim() +
                             "'");
  unsigned major = 0;
  bool splits =
      !version.split('.').first.getAsInteger(10, major) && major >= 13;
  slot = std::make_unique<Ptxas>(path, ("ptxas " + version).str(), splits);
  return slot.get();
}
