//===- Cubin.cpp - what a cubin says about its kernels --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The assembler records what a kernel needs in the section `.nv.info`, a list
// of attributes. Each has a u8 format, a u8 attribute number and a 16-bit
// value. In format 4 the 16-bit value is a size, and that many bytes follow.
// The attributes read here have format 4 and 8 bytes: a 32-bit symbol index and
// a 32-bit value. The size of the section `.nv.shared.<kernel>` is the kernel's
// static shared memory.
//
//===----------------------------------------------------------------------===//

#include "lib/Target/Cubin.h"

#include "llvm/Object/ELF.h"
#include "llvm/Object/ELFTypes.h"
#include "llvm/Support/Endian.h"

using namespace llvm;
using namespace llvm::object;
using namespace mlafix::target;

static constexpr uint8_t sizedFormat = 0x04;
static constexpr uint8_t frameSizeAttribute = 0x11;
static constexpr uint8_t registersAttribute = 0x2f;

using File = ELFFile<ELF64LE>;

static Error truncated(size_t expected, size_t got) {
  return createStringError("expected " + Twine(expected) +
                           " bytes of a record in .nv.info, got " + Twine(got) +
                           ": the cubin is truncated");
}

/// Calls `note(attribute, symbol index, value)` for each attribute in `bytes`,
/// the contents of `.nv.info`, that has format 4 and 8 bytes.
template <typename Note>
static Error readInfo(ArrayRef<uint8_t> bytes, Note note) {
  while (!bytes.empty()) {
    if (bytes.size() < 4)
      return truncated(4, bytes.size());
    uint8_t format = bytes[0], attribute = bytes[1];
    uint16_t size =
        format == sizedFormat ? support::endian::read16le(bytes.data() + 2) : 0;
    bytes = bytes.drop_front(4);
    if (size > bytes.size())
      return truncated(size, bytes.size());
    if (size == 8)
      if (Error error = note(attribute, support::endian::read32le(bytes.data()),
                             support::endian::read32le(bytes.data() + 4)))
        return error;
    bytes = bytes.drop_front(size);
  }
  return Error::success();
}

Expected<StringMap<KernelResources>>
mlafix::target::readResources(StringRef cubin) {
  Expected<File> file = File::create(cubin);
  if (!file)
    return file.takeError();
  auto sections = file->sections();
  if (!sections)
    return sections.takeError();

  StringMap<KernelResources> kernels;
  const File::Elf_Shdr *symbols = nullptr;
  for (const File::Elf_Shdr &section : *sections)
    if (section.sh_type == ELF::SHT_SYMTAB)
      symbols = &section;
  if (!symbols)
    return createStringError("expected a cubin with a symbol table, got none");
  auto strings = file->getStringTableForSymtab(*symbols);
  if (!strings)
    return strings.takeError();

  auto note = [&](uint8_t attribute, uint32_t index, uint32_t value) -> Error {
    if (attribute != registersAttribute && attribute != frameSizeAttribute)
      return Error::success();
    auto symbol = file->getSymbol(symbols, index);
    if (!symbol)
      return symbol.takeError();
    auto name = (*symbol)->getName(*strings);
    if (!name)
      return name.takeError();
    KernelResources &kernel = kernels[*name];
    if (attribute == registersAttribute)
      kernel.registers = value;
    else
      kernel.localBytes = value;
    return Error::success();
  };

  SmallVector<std::pair<StringRef, uint64_t>> shared;
  for (const File::Elf_Shdr &section : *sections) {
    auto name = file->getSectionName(section);
    if (!name)
      return name.takeError();
    StringRef kernel = *name;
    if (kernel.consume_front(".nv.shared."))
      shared.push_back({kernel, section.sh_size});
    if (*name != ".nv.info")
      continue;
    auto contents = file->getSectionContents(section);
    if (!contents)
      return contents.takeError();
    if (Error error = readInfo(*contents, note))
      return error;
  }
  // Skip sections that belong to no kernel, such as the driver's
  // `.nv.shared.reserved.0`.
  for (auto [kernel, bytes] : shared)
    if (auto found = kernels.find(kernel); found != kernels.end())
      found->second.sharedBytes = bytes;
  return kernels;
}
