//===- CpuImage.cpp - an object as position-independent bytes -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// JITLink links the object for a fixed address, but the runtime maps the image
// at another address. So the object may only have relocations that are relative
// to the code: to an instruction or, on AArch64, to the 4 KiB page of an
// instruction. The image then works at any multiple of its alignment on x86-64,
// and at any page boundary on AArch64.
//
//===----------------------------------------------------------------------===//

#include "lib/Target/CpuImage.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ExecutionEngine/JITLink/JITLink.h"
#include "llvm/ExecutionEngine/JITLink/aarch64.h"
#include "llvm/ExecutionEngine/JITLink/x86_64.h"
#include "llvm/ExecutionEngine/Orc/SymbolStringPool.h"
#include "llvm/Object/ObjectFile.h"

using namespace llvm;
using namespace llvm::jitlink;
using namespace mlafix::target;

// The address for which the image is linked, on a page boundary. It is not 0,
// because JITLink treats 0 as null.
static constexpr uint64_t linkAddress = 0x100000;
// The alignment in bytes of images in a unit and of the runtime's mapping.
static constexpr uint64_t imageAlignment = 64;

static Error undefined(ArrayRef<std::string> names) {
  return createStringError("expected CPU code without undefined symbols, got " +
                           join(names, ", "));
}

namespace {

/// The state that ImageContext and ImageMemory share during one link. It must
/// outlive both.
struct LinkState {
  ArrayRef<std::string> entries;
  CpuImage image;
  Error error = Error::success();
};

/// An allocation whose finalisation does nothing: the linked bytes stay in
/// LinkState::image. They are neither mapped nor executed here.
class InFlight final : public JITLinkMemoryManager::InFlightAlloc {
public:
  void abandon(OnAbandonedFunction onAbandoned) override {
    onAbandoned(Error::success());
  }
  void finalize(OnFinalizedFunction onFinalized) override {
    onFinalized(
        JITLinkMemoryManager::FinalizedAlloc(orc::ExecutorAddr(linkAddress)));
  }
};

/// Places the sections one after another in the image.
class ImageMemory final : public JITLinkMemoryManager {
public:
  explicit ImageMemory(LinkState &state) : state(state) {}

  void allocate(const JITLinkDylib *, LinkGraph &graph,
                OnAllocatedFunction onAllocated) override {
    BasicLayout layout(graph);
    uint64_t size = 0;
    for (auto &[group, segment] : layout.segments()) {
      if (segment.Alignment.value() > imageAlignment)
        return onAllocated(createStringError(
            "expected CPU code with an alignment of at most " +
            Twine(imageAlignment) + " bytes, got " +
            Twine(segment.Alignment.value())));
      size = alignTo(size, segment.Alignment);
      segment.Addr = orc::ExecutorAddr(linkAddress + size);
      size += segment.ContentSize;
    }
    std::string &bytes = state.image.bytes;
    bytes.assign(size, '\0');
    for (auto &[group, segment] : layout.segments())
      segment.WorkingMem =
          bytes.data() + (segment.Addr.getValue() - linkAddress);
    if (Error error = layout.apply())
      return onAllocated(std::move(error));
    onAllocated(std::make_unique<InFlight>());
  }

  void deallocate(std::vector<FinalizedAlloc> allocations,
                  OnDeallocatedFunction onDeallocated) override {
    for (FinalizedAlloc &allocation : allocations)
      allocation.release();
    onDeallocated(Error::success());
  }

private:
  LinkState &state;
};

class ImageContext final : public JITLinkContext {
public:
  explicit ImageContext(LinkState &state)
      : JITLinkContext(nullptr), state(state), memory(state) {}

  JITLinkMemoryManager &getMemoryManager() override { return memory; }

  void notifyFailed(Error error) override {
    state.error = joinErrors(std::move(state.error), std::move(error));
  }

  void lookup(const LookupMap &symbols,
              std::unique_ptr<JITLinkAsyncLookupContinuation> next) override {
    if (symbols.empty())
      return next->run(AsyncLookupResult());
    std::vector<std::string> names;
    for (const auto &[symbol, flags] : symbols)
      names.push_back(("'" + *symbol + "'").str());
    llvm::sort(names);
    next->run(undefined(names));
  }

  Error notifyResolved(LinkGraph &graph) override {
    StringMap<uint64_t> addresses;
    for (Symbol *symbol : graph.defined_symbols())
      if (symbol->hasName())
        addresses[*symbol->getName()] = symbol->getAddress().getValue();
    for (const std::string &entry : state.entries) {
      auto found = addresses.find(entry);
      if (found == addresses.end())
        return createStringError("expected a function '" + entry +
                                 "' in the CPU code, got none");
      state.image.offsets.push_back(found->second - linkAddress);
    }
    return Error::success();
  }

  void notifyFinalized(JITLinkMemoryManager::FinalizedAlloc alloc) override {
    alloc.release();
  }

  LinkGraphPassFunction getMarkLivePass(const Triple &) const override {
    return [&state = state](LinkGraph &graph) {
      StringSet<> names;
      for (const std::string &entry : state.entries)
        names.insert(entry);
      for (Symbol *symbol : graph.defined_symbols())
        symbol->setLive(symbol->hasName() &&
                        names.contains(*symbol->getName()));
      return Error::success();
    };
  }

  Error modifyPassConfig(LinkGraph &, PassConfiguration &config) override {
    // The section check runs after dead stripping, so that it ignores sections
    // that no entry point uses. The GOT exists when either check runs, so its
    // entries are checked, too.
    config.PostPrunePasses.push_back(checkSections);
    config.PreFixupPasses.push_back(checkRelocations);
    return Error::success();
  }

private:
  static Error checkSections(LinkGraph &graph) {
    for (Section &section : graph.sections())
      if (!section.blocks().empty() &&
          (section.getMemProt() & orc::MemProt::Write) != orc::MemProt::None)
        return createStringError("expected CPU code without writable data, "
                                 "got a section '" +
                                 section.getName() + "'");
    return Error::success();
  }

  static Error checkRelocations(LinkGraph &graph) {
    auto isRelative = graph.getTargetTriple().isAArch64() ? isRelativeOnAArch64
                                                          : isRelativeOnX86;
    for (Block *block : graph.blocks())
      for (const Edge &edge : block->edges())
        if (edge.isRelocation() && !isRelative(edge.getKind()))
          return createStringError(
              "expected relocations relative to the code, got " +
              Twine(graph.getEdgeKindName(edge.getKind())) + " in section '" +
              block->getSection().getName() + "'");
    return Error::success();
  }

  static bool isRelativeOnAArch64(Edge::Kind kind) {
    switch (kind) {
    case aarch64::Delta64:
    case aarch64::Delta32:
    case aarch64::NegDelta64:
    case aarch64::NegDelta32:
    case aarch64::Branch26PCRel:
    case aarch64::CondBranch19PCRel:
    case aarch64::TestAndBranch14PCRel:
    case aarch64::LDRLiteral19:
    case aarch64::ADRLiteral21:
    case aarch64::Page21:
    case aarch64::PageOffset12:
      return true;
    default:
      return false;
    }
  }

  static bool isRelativeOnX86(Edge::Kind kind) {
    switch (kind) {
    case x86_64::Delta64:
    case x86_64::Delta32:
    case x86_64::NegDelta64:
    case x86_64::NegDelta32:
    case x86_64::PCRel32:
    case x86_64::BranchPCRel32:
      return true;
    default:
      return false;
    }
  }

  LinkState &state;
  ImageMemory memory;
};

} // namespace

Error mlafix::target::checkDefined(StringRef object) {
  auto file =
      object::ObjectFile::createObjectFile(MemoryBufferRef(object, "kernel.o"));
  if (!file)
    return file.takeError();
  std::vector<std::string> names;
  for (const object::SymbolRef &symbol : (*file)->symbols()) {
    Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    if (!(*flags & object::SymbolRef::SF_Undefined) ||
        (*flags & object::SymbolRef::SF_FormatSpecific))
      continue;
    Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    names.push_back(("'" + *name + "'").str());
  }
  llvm::sort(names);
  return names.empty() ? Error::success() : undefined(names);
}

Expected<CpuImage> mlafix::target::linkCpuImage(StringRef object,
                                                ArrayRef<std::string> entries) {
  // The pool must outlive the graph: if a lookup fails, its symbol names are
  // released after the graph.
  auto names = std::make_shared<orc::SymbolStringPool>();
  auto graph =
      createLinkGraphFromObject(MemoryBufferRef(object, "kernel.o"), names);
  if (!graph)
    return graph.takeError();
  LinkState state;
  state.entries = entries;
  // The link is synchronous: it is complete when link() returns.
  jitlink::link(std::move(*graph), std::make_unique<ImageContext>(state));
  if (state.error)
    return std::move(state.error);
  return std::move(state.image);
}
