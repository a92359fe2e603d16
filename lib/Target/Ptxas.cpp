//===- Ptxas.cpp - PTX to cubin by a process of its own -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/Assembler.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <mutex>

using namespace llvm;
using namespace mlafix::target;

namespace {

/// A file in the temporary folder that goes when this does.
struct TemporaryFile {
  static Expected<TemporaryFile> create(StringRef suffix) {
    SmallString<128> path;
    if (std::error_code error =
            sys::fs::createTemporaryFile("mlafix", suffix, path))
      return createStringError(error, "cannot make a temporary file: " +
                                          error.message());
    return TemporaryFile(path);
  }

  Expected<std::string> read() const {
    auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false,
                                        /*RequiresNullTerminator=*/false);
    if (!buffer)
      return createStringError(buffer.getError(),
                               "cannot read '" + path +
                                   "': " + buffer.getError().message());
    return (*buffer)->getBuffer().str();
  }

  std::string path;

private:
  explicit TemporaryFile(StringRef path) : path(path), remover(path) {}
  FileRemover remover;
};

/// Runs `program`; `*log` becomes what it wrote to both of its outputs. Returns
/// its exit status, or an error if it could not be started.
Expected<int> run(StringRef program, ArrayRef<StringRef> arguments,
                  std::string *log) {
  Expected<TemporaryFile> file = TemporaryFile::create("log");
  if (!file)
    return file.takeError();
  SmallVector<StringRef> all = {program};
  llvm::append_range(all, arguments);
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(file->path),
                                          StringRef(file->path)};
  std::string error;
  bool notStarted = false;
  int status = sys::ExecuteAndWait(program, all, std::nullopt, redirects, 0, 0,
                                   &error, &notStarted);
  if (notStarted || status < 0)
    return createStringError("cannot run '" + program +
                             "': " + (error.empty() ? "it crashed" : error));
  Expected<std::string> text = file->read();
  if (!text)
    return text.takeError();
  *log = std::move(*text);
  return status;
}

class Ptxas final : public Assembler {
public:
  Ptxas(StringRef path, std::string description, bool splits)
      : path(path), description(std::move(description)), splits(splits) {}

  StringRef name() const override { return description; }

  Expected<std::string> assemble(StringRef ptx,
                                 const TargetSpec &target) override {
    Expected<TemporaryFile> input = TemporaryFile::create("ptx");
    if (!input)
      return input.takeError();
    Expected<TemporaryFile> output = TemporaryFile::create("cubin");
    if (!output)
      return output.takeError();
    std::error_code error;
    raw_fd_ostream stream(input->path, error);
    stream << ptx;
    stream.close();
    if (error || stream.has_error()) {
      error = error ? error : stream.error();
      stream.clear_error();
      return createStringError(error, "cannot write '" + input->path +
                                          "': " + error.message());
    }
    std::string arch = ("-arch=" + target.name).str();
    SmallVector<StringRef> arguments = {arch, input->path, "-o", output->path};
    // A thread for each variant: a kernel has up to three.
    if (splits)
      arguments.push_back("--split-compile=4");
    std::string log;
    Expected<int> status = run(path, arguments, &log);
    if (!status)
      return status.takeError();
    if (*status == 0)
      return output->read();
    std::string message = description + " cannot assemble the kernel: " +
                          StringRef(log).trim().str();
    if (StringRef(log).contains("Unsupported .version") ||
        StringRef(log).contains("is not defined for option 'gpu-name'"))
      return make_error<UnsupportedByAssembler>(std::move(message));
    return createStringError(message);
  }

private:
  std::string path;
  std::string description;
  bool splits; ///< Knows --split-compile.
};

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
  std::string log;
  Expected<int> status = run(path, {"--version"}, &log);
  if (!status)
    return status.takeError();
  // "Cuda compilation tools, release 13.0, V13.0.88"
  auto [before, after] = StringRef(log).split(", V");
  StringRef version =
      after.take_while([](char c) { return isDigit(c) || c == '.'; });
  if (*status != 0 || version.empty())
    return createStringError("'" + path +
                             "' is no ptxas: it answers "
                             "--version with '" +
                             StringRef(log).trim() + "'");
  unsigned major = 0;
  bool splits =
      !version.split('.').first.getAsInteger(10, major) && major >= 13;
  slot = std::make_unique<Ptxas>(path, ("ptxas " + version).str(), splits);
  return slot.get();
}
