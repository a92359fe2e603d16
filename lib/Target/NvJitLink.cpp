//===- NvJitLink.cpp - PTX to cubin in process ----------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// libnvJitLink exports each function under a name that ends in a CUDA version,
// such as `__nvJitLinkCreate_13_0`: the functions of its own version and those
// of earlier minor versions. A program that includes nvJitLink.h calls the
// functions of this header's version. This file does not include the header. It
// declares the functions itself, and uses those of the newest version that the
// library exports.
//
//===----------------------------------------------------------------------===//

#include "lib/Target/Assembler.h"

#include "llvm/ADT/Twine.h"
#include <cstdint>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>

using namespace llvm;
using namespace mlafix::target;

namespace {

enum : int {
  statusSuccess = 0,
  statusOutdatedLibrary = 14,
  statusUnrecognizedArch = 16,
  statusUnsupportedArch = 17,
};
constexpr int inputPtx = 2;
using LinkHandle = struct Link *;

/// The library functions used here. The arguments of X are the member of
/// Functions, the name without prefix and version, and the parameter types.
#define MLAFIX_NVJITLINK_FUNCTIONS(X)                                          \
  X(create, "Create", LinkHandle *, uint32_t, const char *const *)             \
  X(destroy, "Destroy", LinkHandle *)                                          \
  X(addData, "AddData", LinkHandle, int, const void *, size_t, const char *)   \
  X(complete, "Complete", LinkHandle)                                          \
  X(cubinSize, "GetLinkedCubinSize", LinkHandle, size_t *)                     \
  X(cubin, "GetLinkedCubin", LinkHandle, void *)                               \
  X(errorLogSize, "GetErrorLogSize", LinkHandle, size_t *)                     \
  X(errorLog, "GetErrorLog", LinkHandle, char *)

struct Functions {
#define X(member, name, ...) int (*member)(__VA_ARGS__) = nullptr;
  MLAFIX_NVJITLINK_FUNCTIONS(X)
#undef X
};

class NvJitLink final : public Assembler {
public:
  NvJitLink(Functions functions, std::string description)
      : functions(functions), description(std::move(description)) {}

  StringRef name() const override { return description; }

  std::unique_ptr<Assembly> begin(const TargetSpec &target,
                                  const AssemblyOptions &options) override;

  Expected<std::string> link(StringRef ptx, const TargetSpec &target,
                             const AssemblyOptions &options) const {
    std::string arch = ("-arch=" + target.name).str();
    SmallVector<const char *> arguments = {arch.c_str()};
    if (options.lineInfo)
      arguments.push_back("-lineinfo");
    if (options.isCautious)
      arguments.push_back("-Xptxas=-O1"); // nvJitLink refuses a plain -O1
    LinkHandle link = nullptr;
    if (int status =
            functions.create(&link, arguments.size(), arguments.data()))
      return failure(status, link);
    // `text.size() + 1` includes the terminating zero, which the parser needs.
    std::string text = ptx.str();
    int status = functions.addData(link, inputPtx, text.c_str(),
                                   text.size() + 1, "kernel.ptx");
    if (status == statusSuccess)
      status = functions.complete(link);
    size_t size = 0;
    if (status == statusSuccess)
      status = functions.cubinSize(link, &size);
    std::string cubin(size, '\0');
    if (status == statusSuccess)
      status = functions.cubin(link, cubin.data());
    if (status != statusSuccess)
      return failure(status, link);
    functions.destroy(&link);
    return cubin;
  }

private:
  /// Destroys `link` and returns an error with the library's log.
  Error failure(int status, LinkHandle link) const {
    std::string log;
    size_t size = 0;
    if (link && functions.errorLogSize(link, &size) == statusSuccess && size) {
      log.resize(size);
      if (functions.errorLog(link, log.data()) != statusSuccess)
        log.clear();
    }
    if (link)
      functions.destroy(&link);
    StringRef text = StringRef(log.c_str()).trim();
    std::string message =
        (description + " cannot assemble the kernel (status " + Twine(status) +
         ")" + (text.empty() ? "" : ": ") + text + adviseOnLog(text))
            .str();
    if (status == statusOutdatedLibrary || status == statusUnrecognizedArch ||
        status == statusUnsupportedArch ||
        text.contains("Unsupported .version"))
      return make_error<UnsupportedByAssembler>(std::move(message));
    return createStringError(message);
  }

  Functions functions;
  std::string description;
};

/// An nvJitLink run. The library runs in this process, so nothing can start
/// early.
class NvJitLinkAssembly final : public Assembly {
public:
  NvJitLinkAssembly(const NvJitLink &library, const TargetSpec &target,
                    const AssemblyOptions &options)
      : library(library), target(target), options(options) {}
  Expected<std::string> finish(StringRef ptx) override {
    return library.link(ptx, target, options);
  }

private:
  const NvJitLink &library;
  const TargetSpec &target;
  AssemblyOptions options;
};

std::unique_ptr<Assembly> NvJitLink::begin(const TargetSpec &target,
                                           const AssemblyOptions &options) {
  return std::make_unique<NvJitLinkAssembly>(*this, target, options);
}

/// Fills `functions` with the functions of the version major.minor. Returns the
/// name of the first missing symbol, or "" if none is missing.
std::string resolve(void *library, unsigned major, unsigned minor,
                    Functions &functions) {
  std::string symbol;
#define X(member, name, ...)                                                   \
  symbol = ("__nvJitLink" name "_" + Twine(major) + "_" + Twine(minor)).str(); \
  functions.member = reinterpret_cast<decltype(functions.member)>(             \
      dlsym(library, symbol.c_str()));                                         \
  if (!functions.member)                                                       \
    return symbol;
  MLAFIX_NVJITLINK_FUNCTIONS(X)
#undef X
  return "";
}

Expected<std::unique_ptr<Assembler>> open(StringRef path) {
  // Never close the library: it keeps threads and caches.
  void *library = dlopen(path.str().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return createStringError(dlerror());
  unsigned major = 0, minor = 0;
  using Version = int (*)(unsigned *, unsigned *);
  auto version = reinterpret_cast<Version>(dlsym(library, "nvJitLinkVersion"));
  if (!version || version(&major, &minor) != statusSuccess)
    return createStringError("'" + path + "' is not an nvJitLink library");
  std::string description =
      ("nvJitLink " + Twine(major) + "." + Twine(minor)).str();
  Functions functions;
  std::string missing; // first symbol missing for the library's own version
  for (unsigned compatible = minor + 1; compatible-- > 0;) {
    std::string symbol = resolve(library, major, compatible, functions);
    if (symbol.empty())
      return std::make_unique<NvJitLink>(functions, description);
    if (missing.empty())
      missing = symbol;
  }
  return createStringError("'" + path + "', " + description +
                           ", does not export " + missing +
                           "; install a matching libnvJitLink");
}

} // namespace

Expected<Assembler *> mlafix::target::openNvJitLink(StringRef path) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Assembler>> opened;
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Assembler> &slot = opened[path.str()];
  if (!slot) {
    Expected<std::unique_ptr<Assembler>> assembler = open(path);
    if (!assembler)
      return assembler.takeError();
    slot = std::move(*assembler);
  }
  return slot.get();
}
