//===- LineInfo.cpp - lines of the source in generated code ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Line information lets profilers and disassemblers show the source line of an
// instruction. PTX has it as `.loc` directives, and a cubin as a line table.
// Line information contains the path of the source, so it is left out of units
// whose bytes must not depend on that path.
//
//===----------------------------------------------------------------------===//

#include "lib/Target/LLVMIR.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;

static LLVM::DIFileAttr getFile(StringAttr path) {
  SmallString<256> absolute(path.getValue());
  // Keep names that are not paths, such as "-" and "<stdin>".
  if (path.getValue().contains('/'))
    (void)llvm::sys::fs::make_absolute(absolute);
  return LLVM::DIFileAttr::get(path.getContext(),
                               llvm::sys::path::filename(absolute),
                               llvm::sys::path::parent_path(absolute));
}

/// Returns the position of the start of `range` in `scope`. If `range` is in
/// another file, from an inlined function, the position is in a lexical block
/// of `scope` for that file.
static Location getPosition(FileLineColRange range,
                            LLVM::DISubprogramAttr scope) {
  Location position = FileLineColLoc::get(
      range.getFilename(), range.getStartLine(), range.getStartColumn());
  LLVM::DIFileAttr file = getFile(range.getFilename());
  if (file == scope.getFile())
    return position;
  auto block =
      LLVM::DILexicalBlockFileAttr::get(scope, file, /*discriminator=*/0);
  return FusedLoc::get({position}, block, range.getContext());
}

static LLVM::DISubprogramAttr createScope(LLVM::LLVMFuncOp function,
                                          FileLineColRange start) {
  MLIRContext *context = function.getContext();
  LLVM::DIFileAttr file = getFile(start.getFilename());
  auto unit = LLVM::DICompileUnitAttr::get(
      DistinctAttr::create(UnitAttr::get(context)), llvm::dwarf::DW_LANG_C,
      file, StringAttr::get(context, "mlafix"), /*isOptimized=*/true,
      LLVM::DIEmissionKind::DebugDirectivesOnly, LLVM::DINameTableKind::None);
  auto type = LLVM::DISubroutineTypeAttr::get(
      context, llvm::dwarf::DW_CC_normal, ArrayRef<LLVM::DITypeAttr>());
  return LLVM::DISubprogramAttr::get(
      context, DistinctAttr::create(UnitAttr::get(context)), unit, file,
      function.getSymNameAttr(), function.getSymNameAttr(), file,
      start.getStartLine(), start.getStartLine(),
      LLVM::DISubprogramFlags::Definition | LLVM::DISubprogramFlags::Optimized,
      type, /*retainedNodes=*/{}, /*annotations=*/{});
}

void mlafix::target::attachLineInfo(ModuleOp module) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    auto start = function.getLoc()->findInstanceOf<FileLineColRange>();
    if (function.isExternal() || !start)
      continue;
    LLVM::DISubprogramAttr scope = createScope(function, start);
    function.getBody().walk([&](Operation *op) {
      auto range = op->getLoc()->findInstanceOf<FileLineColRange>();
      op->setLoc(range ? getPosition(range, scope)
                       : FileLineColLoc::get(start.getFilename(), 0, 0));
    });
    function->setLoc(FusedLoc::get(
        {FileLineColLoc::get(start.getFilename(), start.getStartLine(),
                             start.getStartColumn())},
        scope, module.getContext()));
  }
}
