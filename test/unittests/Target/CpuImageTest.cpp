//===- CpuImageTest.cpp - Links CPU code and runs it ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/CpuImage.h"

#include "lib/Target/LLVMIR.h"
#include "lib/Target/Targets.h"
#include "mlafix/Compiler.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "gtest/gtest.h"
#include <cstring>
#include <sys/mman.h>

using namespace mlafix;
using namespace mlafix::target;

/// A module with two entries. Both call one helper, which reads a table.
static constexpr const char *source = R"mlir(
module attributes {mlafix.signature = {name = "two"}} {
  llvm.mlir.global internal constant @table(dense<[10, 20, 30, 40]> : tensor<4xi64>) : !llvm.array<4 x i64>
  llvm.func internal @lookup(%i: i64) -> i64 attributes {no_inline} {
    %table = llvm.mlir.addressof @table : !llvm.ptr
    %p = llvm.getelementptr %table[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %x = llvm.load %p : !llvm.ptr -> i64
    llvm.return %x : i64
  }
  llvm.func @first(%params: !llvm.ptr, %begin: i64, %end: i64) attributes {mlafix.variant = #mlafix.variant<"first", guards = [], params = [], geometry = #mlafix.cpu<[], rows_per_block = 1>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    %out = llvm.load %params : !llvm.ptr -> !llvm.ptr
    %x = llvm.call @lookup(%begin) : (i64) -> i64
    llvm.store %x, %out : i64, !llvm.ptr
    llvm.return
  }
  llvm.func @second(%params: !llvm.ptr, %begin: i64, %end: i64) attributes {mlafix.variant = #mlafix.variant<"second", guards = [], params = [], geometry = #mlafix.cpu<[], rows_per_block = 1>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    %out = llvm.load %params : !llvm.ptr -> !llvm.ptr
    %x = llvm.call @lookup(%end) : (i64) -> i64
    %float = llvm.sitofp %x : i64 to f64
    %half = llvm.mlir.constant(0.5 : f64) : f64
    %y = llvm.fadd %float, %half : f64
    llvm.store %y, %out : f64, !llvm.ptr
    llvm.return
  }
})mlir";

static std::string compileObject(const char *target) {
  CompileOptions options;
  options.emit = Emit::Object;
  options.targets = {target};
  CompileResult result = compile(source, "two.mlir", options);
  EXPECT_TRUE(result.ok) << result.diagnostics;
  return result.output;
}

/// Executable memory that contains `bytes` from offset `shift` on. The memory
/// begins at a page boundary.
class Mapping {
public:
  Mapping(const std::string &bytes, size_t shift)
      : size(bytes.size() + shift), shift(shift) {
    base = static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memcpy(base + shift, bytes.data(), bytes.size());
    mprotect(base, size, PROT_READ | PROT_EXEC);
  }
  ~Mapping() { munmap(base, size); }
  auto entry(uint64_t offset) const {
    return reinterpret_cast<void (*)(const uint64_t *, int64_t, int64_t)>(
        base + shift + offset);
  }

private:
  char *base;
  size_t size, shift;
};

TEST(CpuImage, runs_wherever_it_is_mapped) {
  std::string object = compileObject("x86-64");
  llvm::Expected<CpuImage> image = linkCpuImage(object, {"first", "second"});
  ASSERT_TRUE(bool(image)) << llvm::toString(image.takeError());
  ASSERT_EQ(image->offsets.size(), 2u);
  for (size_t shift : {0, 64, 4096, 8192 + 192}) {
    Mapping mapping(image->bytes, shift);
    int64_t integer = 0;
    double number = 0;
    uint64_t first[] = {reinterpret_cast<uint64_t>(&integer)};
    uint64_t second[] = {reinterpret_cast<uint64_t>(&number)};
    mapping.entry(image->offsets[0])(first, 2, 3);
    mapping.entry(image->offsets[1])(second, 2, 3);
    EXPECT_EQ(integer, 30);
    EXPECT_EQ(number, 40.5);
  }
}

/// The code finds the table of `source` by an adrp instruction, which gives the
/// page at a distance from the code's page, and by the table's offset in its
/// page. The image is smaller than a page and begins at a page boundary, so the
/// distance in every adrp must be 0.
TEST(CpuImage, of_aarch64_runs_from_any_page) {
  std::string object = compileObject("aarch64");
  llvm::Expected<CpuImage> image = linkCpuImage(object, {"first", "second"});
  ASSERT_TRUE(bool(image)) << llvm::toString(image.takeError());
  const std::string &bytes = image->bytes;
  auto instruction = [&](size_t at) {
    uint32_t word;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    return word;
  };
  ASSERT_LT(bytes.size(), 4096u);
  bool hasPage = false;
  for (size_t at = 0; at + 4 <= bytes.size(); at += 4)
    if ((instruction(at) & 0x9f000000) == 0x90000000) { // adrp
      hasPage = true;
      EXPECT_EQ(instruction(at) & 0x60ffffe0, 0u) << "another page at " << at;
    }
  EXPECT_TRUE(hasPage);
}

TEST(CpuImage, names_an_entry_that_is_missing) {
  llvm::Expected<CpuImage> image =
      linkCpuImage(compileObject("x86-64"), {"third"});
  ASSERT_FALSE(bool(image));
  EXPECT_EQ(llvm::toString(image.takeError()),
            "expected a function 'third' in the CPU code, got none");
}

static std::string compileIR(const std::string &ir,
                             llvm::TargetMachine &machine) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> module =
      llvm::parseIR({ir, "kernel.ll"}, diagnostic, context);
  EXPECT_TRUE(module) << diagnostic.getMessage().str();
  module->setTargetTriple(machine.getTargetTriple());
  module->setDataLayout(machine.createDataLayout());
  llvm::Expected<std::string> object =
      generateCode(*module, machine, /*assembly=*/false);
  EXPECT_TRUE(bool(object));
  return *object;
}

/// Compiles `ir` for a fixed address. The compiler itself only makes
/// position-independent code.
static std::string compileForFixedAddress(const char *ir, const char *target,
                                          llvm::CodeModel::Model model) {
  // Initialises the back end.
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> ours =
      createTargetMachine(**lookupTarget(target));
  EXPECT_TRUE(bool(ours));
  std::unique_ptr<llvm::TargetMachine> machine(
      (*ours)->getTarget().createTargetMachine((*ours)->getTargetTriple(),
                                               (*ours)->getTargetCPU(), "", {},
                                               llvm::Reloc::Static, model));
  return compileIR(ir, *machine);
}

TEST(CpuImage, refuses_an_absolute_address) {
  const std::pair<const char *, llvm::CodeModel::Model> cases[] = {
      {"x86-64", llvm::CodeModel::Small}, {"aarch64", llvm::CodeModel::Large}};
  for (auto [target, model] : cases) {
    std::string object = compileForFixedAddress(R"(
@table = internal constant [2 x i64] [i64 5, i64 6]
define void @k(ptr %params, i64 %begin, i64 %end) nounwind {
  %p = getelementptr i64, ptr @table, i64 %begin
  %x = load i64, ptr %p
  store i64 %x, ptr %params
  ret void
})",
                                                target, model);
    llvm::Expected<CpuImage> image = linkCpuImage(object, {"k"});
    ASSERT_FALSE(bool(image)) << target;
    std::string message = llvm::toString(image.takeError());
    EXPECT_EQ(message.find("expected relocations relative to the code, got "),
              0u)
        << target << ": " << message;
  }
}

using Wide = unsigned __int128;
using SignedWide = __int128;

/// Returns the result of `opcode` (a division or remainder) for x and y, which
/// have `bits` bits.
static Wide divide(llvm::StringRef opcode, Wide x, Wide y, unsigned bits) {
  unsigned rest = 128 - bits;
  SignedWide a = static_cast<SignedWide>(x << rest) >> rest;
  SignedWide b = static_cast<SignedWide>(y << rest) >> rest;
  return opcode == "udiv"   ? x / y
         : opcode == "urem" ? x % y
         : opcode == "sdiv" ? a / b
                            : a % b;
}

namespace {
/// A division in the LLVM type `type`, which has `bits` bits. The operands are
/// loaded in the type `stored`.
struct Division {
  const char *stored, *type;
  unsigned storedBits, bits;
};
} // namespace

/// Returns a function in LLVM IR. It applies `opcode` to the number at x and
/// the next number, and stores the result at x.
static std::string divisionIR(llvm::StringRef opcode, const Division &d) {
  auto convert = [](llvm::StringRef from, llvm::StringRef value,
                    llvm::StringRef to, bool widens) {
    return ((widens ? "zext " : "bitcast ") + from + " " + value + " to " + to +
            "\n")
        .str();
  };
  bool widens = d.storedBits < d.bits;
  return "define void @k(ptr %x, i64 %begin, i64 %end) nounwind {\n"
         "%y = getelementptr i128, ptr %x, i64 1\n"
         "%c = load " +
         std::string(d.stored) +
         ", ptr %x\n"
         "%d = load " +
         d.stored +
         ", ptr %y\n"
         "%a = " +
         convert(d.stored, "%c", d.type, widens) +
         "%b = " + convert(d.stored, "%d", d.type, widens) +
         "%q = " + opcode.str() + " " + d.type +
         " %a, %b\n"
         "%r = " +
         convert(d.type, "%q", "i128", d.bits < 128) +
         "store i128 %r, ptr %x\nret void\n}\n";
}

static std::vector<Wide> wideNumbers(unsigned bits) {
  std::vector<Wide> numbers;
  for (unsigned shift : {0, 31, 62, 63, 64, 65, 126, 127})
    for (int more : {-1, 0, 6})
      numbers.push_back(((static_cast<Wide>(1) << shift) + more)
                            << (128 - bits) >>
                        (128 - bits));
  return numbers;
}

/// Compilers usually call a runtime library for divisions of more than 64 bits.
/// This code must not.
TEST(CpuImage, divides_wide_integers_without_a_library) {
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine =
      createTargetMachine(**lookupTarget("x86-64"));
  ASSERT_TRUE(bool(machine));
  for (Division d :
       {Division{"i128", "i128", 128, 128},
        Division{"<1 x i128>", "<1 x i128>", 128, 128},
        Division{"i65", "i65", 65, 65}, Division{"i64", "i65", 64, 65}})
    for (const char *opcode : {"udiv", "urem", "sdiv", "srem"}) {
      llvm::Expected<CpuImage> image =
          linkCpuImage(compileIR(divisionIR(opcode, d), **machine), {"k"});
      ASSERT_TRUE(bool(image)) << llvm::toString(image.takeError());
      Mapping mapping(image->bytes, 0);
      for (Wide x : wideNumbers(d.storedBits))
        for (Wide y : wideNumbers(d.storedBits)) {
          if (y == 0 || (opcode[0] == 's' && y == static_cast<Wide>(-1)))
            continue;
          Wide numbers[] = {x, y};
          mapping.entry(image->offsets[0])(
              reinterpret_cast<uint64_t *>(numbers), 0, 1);
          EXPECT_TRUE(numbers[0] << (128 - d.bits) ==
                      divide(opcode, x, y, d.bits) << (128 - d.bits))
              << opcode << " of " << d.type;
        }
    }
}

TEST(CpuImage, refuses_what_is_no_object) {
  llvm::Expected<CpuImage> image = linkCpuImage("no object", {"first"});
  ASSERT_FALSE(bool(image));
  llvm::consumeError(image.takeError());
}
