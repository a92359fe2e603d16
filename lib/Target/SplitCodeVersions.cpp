//===- SplitCodeVersions.cpp - code versions one by one -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The code versions of a kernel share no definitions, so code can be generated
// for them in parallel once they are in separate modules.
//
//===----------------------------------------------------------------------===//

#include "lib/Target/LLVMIR.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

using namespace llvm;
using namespace mlafix::target;

using OwningModule = mlir::OwningOpRef<mlir::ModuleOp>;
using Definitions = SetVector<mlir::Operation *>;

/// Adds all functions and globals that `op` uses, directly or indirectly, to
/// `used`. Returns false if they cannot be determined.
static bool addUses(mlir::Operation *op, const mlir::SymbolTable &symbols,
                    Definitions &used) {
  auto add = [&](StringRef name) {
    mlir::Operation *target = symbols.lookup(name);
    return target && (!used.insert(target) || addUses(target, symbols, used));
  };
  auto function = dyn_cast<mlir::LLVM::LLVMFuncOp>(op);
  if (!function) {
    auto uses = mlir::SymbolTable::getSymbolUses(op);
    return uses && all_of(*uses, [&](const mlir::SymbolTable::SymbolUse &use) {
             return add(use.getSymbolRef().getRootReference());
           });
  }
  // MLIR's own symbol search is slow, since it looks at every attribute of a
  // body. It suffices to look at ops with SymbolUserOpInterface: all symbol
  // uses of a function are in such ops, except for its personality.
  if (function.getPersonality())
    return false;
  mlir::WalkResult walked =
      function.walk([&](mlir::SymbolUserOpInterface user) {
        bool isKnown = false;
        if (auto address = dyn_cast<mlir::LLVM::AddressOfOp>(*user))
          isKnown = add(address.getGlobalName());
        else if (auto call = dyn_cast<mlir::LLVM::CallOp>(*user))
          isKnown = call.getCallee() && add(*call.getCallee());
        return isKnown ? mlir::WalkResult::advance()
                       : mlir::WalkResult::interrupt();
      });
  return !walked.wasInterrupted();
}

static bool isDeclaration(mlir::Operation *op) {
  auto function = dyn_cast<mlir::LLVM::LLVMFuncOp>(op);
  return function && function.isExternal();
}

std::vector<OwningModule>
mlafix::target::splitCodeVersions(mlir::ModuleOp module,
                                  ArrayRef<std::string> entries) {
  if (entries.size() < 2)
    return {};
  // Do not split a module with an op that is no function or global, since this
  // op may apply to the whole module.
  for (mlir::Operation &op : *module.getBody())
    if (!isa<mlir::LLVM::LLVMFuncOp, mlir::LLVM::GlobalOp>(op))
      return {};
  mlir::SymbolTable symbols(module);
  std::vector<Definitions> parts(entries.size());
  SmallPtrSet<mlir::Operation *, 8> taken;
  for (auto [entry, part] : zip_equal(entries, parts)) {
    mlir::Operation *function = symbols.lookup(entry);
    if (!function)
      return {};
    part.insert(function);
    if (!addUses(function, symbols, part))
      return {};
    for (mlir::Operation *op : part)
      if (!isDeclaration(op) && !taken.insert(op).second)
        return {};
  }
  std::vector<OwningModule> result;
  for (const Definitions &part : parts) {
    OwningModule one = mlir::ModuleOp::create(module.getLoc());
    (*one)->setAttrs(module->getAttrDictionary());
    for (mlir::Operation &op : make_early_inc_range(*module.getBody())) {
      if (!part.contains(&op))
        continue;
      if (isDeclaration(&op))
        one->push_back(op.clone());
      else
        op.moveBefore(one->getBody(), one->getBody()->end());
    }
    result.push_back(std::move(one));
  }
  return result;
}

std::string mlafix::target::joinPtx(ArrayRef<std::string> modules) {
  // All modules begin with the same directives. Keep one copy, at the top.
  // Everything after them, including labels, is local to a function.
  constexpr StringLiteral lastDirective = ".address_size 64\n";
  std::string result = modules.front();
  for (StringRef text : modules.drop_front()) {
    assert(text.contains(lastDirective) && "PTX by LLVM has a header");
    result += text.split(lastDirective).second;
  }
  return result;
}
