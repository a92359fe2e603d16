//===- Assembler.cpp - finds what assembles PTX ---------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/Assembler.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

using namespace llvm;
using namespace mlafix::target;

char UnsupportedByAssembler::ID;

Assembly::~Assembly() = default;
Assembler::~Assembler() = default;

/// Returns advice if `log` says that a kernel needs too many predicate
/// registers. A GPU thread has seven of these. If a kernel needs more, ptxas
/// 13.0 spills some, and fails if it cannot.
StringRef mlafix::target::adviseOnLog(StringRef log) {
  return log.contains("Register allocation failed with register count of '7'")
             ? "; a row needs more conditions at once than this assembler can "
               "keep: use fewer predicates and branches that a row decides, or "
               "make two kernels of this one"
             : "";
}

/// Returns the value of an environment variable, or "" if it is not set.
static std::string environment(const char *name) {
  return sys::Process::GetEnv(name).value_or("");
}

/// Appends `parts` to the path `root`.
static std::string joined(StringRef root, ArrayRef<StringRef> parts) {
  SmallString<128> path(root);
  for (StringRef part : parts)
    sys::path::append(path, part);
  return std::string(path);
}

/// Appends each existing `<root>/python3.*/<folder>` to `result`, with the
/// newest Python first.
static void addPythonFolders(StringRef root, StringRef folder,
                             std::vector<std::string> &result) {
  std::vector<std::string> found;
  std::error_code error;
  for (sys::fs::directory_iterator it(root, error), end; it != end && !error;
       it.increment(error))
    if (sys::path::filename(it->path()).starts_with("python3"))
      found.push_back(joined(it->path(), {folder}));
  llvm::sort(found, [](const std::string &a, const std::string &b) {
    return StringRef(a).compare_numeric(b) > 0;
  });
  llvm::append_range(result, found);
}

/// Returns the folders that may hold unpacked PyPI wheels, in the order of
/// Python's usual sys.path. Derives them from environment variables and the
/// usual places, so that Python need not be started.
static std::vector<std::string> wheelFolders() {
  std::vector<std::string> folders;
  SmallVector<StringRef> pythonPath;
  std::string pythonPathText = environment("PYTHONPATH");
  StringRef(pythonPathText).split(pythonPath, ':', -1, /*KeepEmpty=*/false);
  for (StringRef folder : pythonPath)
    folders.push_back(folder.str());
  for (const char *variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (std::string root = environment(variable); !root.empty())
      addPythonFolders(joined(root, {"lib"}), "site-packages", folders);
  if (std::string home = environment("HOME"); !home.empty())
    addPythonFolders(joined(home, {".local", "lib"}), "site-packages", folders);
  for (StringRef root : {"/usr/local/lib", "/usr/lib"}) {
    addPythonFolders(root, "site-packages", folders);
    addPythonFolders(root, "dist-packages", folders);
  }
  return folders;
}

/// Returns the folders of CUDA toolkits: those in CUDA_HOME and CUDA_PATH, then
/// the conventional one.
static std::vector<std::string> toolkitFolders() {
  std::vector<std::string> folders;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (std::string root = environment(variable); !root.empty())
      folders.push_back(std::move(root));
  folders.push_back("/usr/local/cuda");
  return folders;
}

static Assembler *findNvJitLink() {
  static constexpr StringRef sonames[] = {"libnvJitLink.so.13",
                                          "libnvJitLink.so.12"};
  std::vector<std::string> candidates;
  std::vector<std::string> toolkits = toolkitFolders();
  std::vector<std::string> wheels = wheelFolders();
  for (StringRef soname : sonames) {
    for (const std::string &toolkit : toolkits)
      for (StringRef folder : {"lib64", "lib"})
        candidates.push_back(joined(toolkit, {folder, soname}));
    // For a name without a slash, dlopen() searches the loader's path.
    candidates.push_back(soname.str());
    for (const std::string &wheel : wheels)
      for (StringRef folder : {"cu13", "nvjitlink"})
        candidates.push_back(joined(wheel, {"nvidia", folder, "lib", soname}));
  }
  for (const std::string &candidate : candidates) {
    if (StringRef(candidate).contains('/') && !sys::fs::exists(candidate))
      continue;
    if (auto assembler = expectedToOptional(openNvJitLink(candidate)))
      return *assembler;
  }
  return nullptr;
}

static Assembler *findPtxas() {
  std::vector<std::string> candidates;
  for (const std::string &toolkit : toolkitFolders())
    candidates.push_back(joined(toolkit, {"bin", "ptxas"}));
  if (ErrorOr<std::string> program = sys::findProgramByName("ptxas"))
    candidates.push_back(*program);
  for (const std::string &wheel : wheelFolders())
    for (StringRef folder : {"cu13", "cuda_nvcc"})
      candidates.push_back(joined(wheel, {"nvidia", folder, "bin", "ptxas"}));
  for (const std::string &candidate : candidates) {
    if (!sys::fs::can_execute(candidate))
      continue;
    if (auto assembler = expectedToOptional(openPtxas(candidate)))
      return *assembler;
  }
  return nullptr;
}

Expected<std::vector<Assembler *>>
mlafix::target::findAssemblers(AssemblerKind kind, StringRef ptxasPath) {
  std::vector<Assembler *> result;
  auto add = [&](Assembler *assembler) {
    if (assembler && !is_contained(result, assembler))
      result.push_back(assembler);
  };
  auto addNamed = [&](Expected<Assembler *> assembler, StringRef name,
                      StringRef what) -> Error {
    if (assembler) {
      add(*assembler);
      return Error::success();
    }
    return createStringError("expected " + name + " to name " + what +
                             ", got: " + toString(assembler.takeError()));
  };
  bool ptxas = kind == AssemblerKind::Any || kind == AssemblerKind::Ptxas;
  bool nvJitLink =
      kind == AssemblerKind::Any || kind == AssemblerKind::NvJitLink;
  constexpr StringLiteral program = "a ptxas program";
  constexpr StringLiteral library = "an nvJitLink library of CUDA 12 or 13";

  if (ptxas && !ptxasPath.empty())
    if (Error error = addNamed(openPtxas(ptxasPath), "--ptxas", program))
      return error;
  if (std::string path = environment("MLAFIX_PTXAS"); ptxas && !path.empty())
    if (Error error = addNamed(openPtxas(path), "MLAFIX_PTXAS", program))
      return error;
  if (std::string path = environment("MLAFIX_NVJITLINK");
      nvJitLink && !path.empty())
    if (Error error =
            addNamed(openNvJitLink(path), "MLAFIX_NVJITLINK", library))
      return error;
  // Search once per process, and not at all if an assembler was named.
  if (!result.empty())
    return result;
  if (ptxas) {
    static Assembler *found = findPtxas();
    add(found);
  }
  if (nvJitLink) {
    static Assembler *found = findNvJitLink();
    add(found);
  }
  return result;
}

StringRef mlafix::target::noAssemblerMessage() {
  return "expected an assembler for PTX, found none: install nvJitLink (the "
         "CUDA toolkit, or `pip install nvidia-nvjitlink`) or ptxas, and name "
         "it by CUDA_HOME, MLAFIX_NVJITLINK, MLAFIX_PTXAS or --ptxas";
}
