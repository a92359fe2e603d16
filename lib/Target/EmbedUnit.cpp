//===- EmbedUnit.cpp - C text that holds a unit ---------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/EmbedUnit.h"

#include "lib/Target/CNames.h"
#include "mlafix/runtime/base.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace mlafix::target;

void mlafix::target::writeEmbeddedUnit(raw_ostream &stream, StringRef unit,
                                       ArrayRef<HostKernel> kernels) {
  stream << formatv(R"(#ifdef {1}_UNIT
__asm__(".pushsection .rodata\n"
        ".balign 64\n"
        ".globl mlafix_begin_of_{0}\n"
        ".hidden mlafix_begin_of_{0}\n"
        "mlafix_begin_of_{0}:\n"
        ".incbin \"" {1}_UNIT "\"\n"
        ".globl mlafix_end_of_{0}\n"
        ".hidden mlafix_end_of_{0}\n"
        "mlafix_end_of_{0}:\n"
        ".byte 0\n"
        ".popsection\n");
extern __attribute__((visibility("hidden"))) const unsigned char mlafix_begin_of_{0}[];
extern __attribute__((visibility("hidden"))) const unsigned char mlafix_end_of_{0}[];
#else
#define mlafix_begin_of_{0} NULL
#define mlafix_end_of_{0} NULL
#endif

static const char *const mlafix_kernels_of_{0}[] = {{
)",
                    unit, unit.upper());
  for (const HostKernel &kernel : kernels)
    stream << formatv("    \"{0}\", \"{1}\",\n", kernel.literal,
                      kernel.bindingsLiteral);
  stream << formatv(R"(};
static mlafix_embedded mlafix_unit_of_{0} = {{
    sizeof(mlafix_embedded), {1}, "{0}", mlafix_begin_of_{0}, mlafix_end_of_{0}, mlafix_kernels_of_{0}, {2}, NULL};
)",
                    unit, MLAFIX_ABI_VERSION, kernels.size());
}

Expected<std::string>
mlafix::target::writeTvmFfi(StringRef unit, ArrayRef<json::Object> signatures) {
  if (Error error = checkUnitName(unit))
    return error;
  std::string text;
  raw_string_ostream stream(text);
  stream << formatv(
      R"(/* The kernels of the unit "{0}" as functions of TVM-FFI. Written by mlafix's compiler: do not edit.
 *
 * Compile with {1}_UNIT defined as the path of the unit's file in quotes, and link with libmlafix_tvm_ffi.a.
 */
#include "mlafix/runtime/tvm_ffi.h"

#if MLAFIX_ABI_VERSION != {2}
#error "this source is for mlafix's ABI version {2}: write it again with the installed compiler of mlafix"
#endif
#ifndef {1}_UNIT
#error "expected {1}_UNIT to be the path of the unit's file in quotes"
#endif
#ifdef __cplusplus
extern "C" {{
#endif

)",
      unit, unit.upper(), MLAFIX_ABI_VERSION);
  std::vector<HostKernel> kernels = describeKernels(unit, signatures);
  writeEmbeddedUnit(stream, unit, kernels);

  // Kernels that differ only in their bindings share one function.
  MapVector<StringRef, SmallVector<std::string>> functions;
  for (auto [index, signature] : enumerate(signatures))
    functions[*signature.getString("name")].push_back(std::to_string(index));
  CNames names;
  for (const auto &[name, indices] : functions)
    stream << formatv(R"(
MLAFIX_API int __tvm_ffi_{0}(void *self, const void *args, int32_t count, void *result) {{
  static const uint32_t kernels[] = {{{1}};
  (void)self;
  return mlafix_tvm_ffi_call(&mlafix_unit_of_{2}, kernels, {3}, args, count, result);
}
)",
                      names.makeEnd(name), join(indices, ", "), unit,
                      indices.size());
  stream << "\n#ifdef __cplusplus\n} /* extern \"C\" */\n#endif\n";
  return text;
}
