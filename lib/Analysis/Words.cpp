//===- Words.cpp - what messages call a kernel's values -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/RowModel.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlafix;

bool mlafix::isInMlir(Location loc) {
  auto range = loc->findInstanceOf<FileLineColRange>();
  StringRef file = range ? range.getFilename().getValue() : "<stdin>";
  return file == "<stdin>" || file.ends_with(".mlir");
}

/// What a kernel in Python calls an operation on integers; "" where that is not
/// one word.
static StringRef spellInPython(Operation *op) {
  bool isBool = op->getResult(0).getType().isInteger(1);
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case<arith::AddIOp>([](auto) { return "+"; })
      .Case<arith::SubIOp>([](auto) { return "-"; })
      .Case<arith::MulIOp>([](auto) { return "*"; })
      .Case<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>(
          [](auto) { return "//"; })
      .Case<arith::RemSIOp, arith::RemUIOp>([](auto) { return "%"; })
      .Case<arith::AndIOp>([&](auto) { return isBool ? "and" : "&"; })
      .Case<arith::OrIOp>([&](auto) { return isBool ? "or" : "|"; })
      .Case<arith::XOrIOp>([&](auto) { return isBool ? "!=" : "^"; })
      .Case<arith::ShLIOp>([](auto) { return "<<"; })
      .Case<arith::ShRSIOp, arith::ShRUIOp>([](auto) { return ">>"; })
      .Case<arith::MinSIOp, arith::MinUIOp>([](auto) { return "min"; })
      .Case<arith::MaxSIOp, arith::MaxUIOp>([](auto) { return "max"; })
      .Case<arith::SelectOp>([](auto) { return "where"; })
      .Default(StringRef());
}

std::string mlafix::describe(const Variable &variable) {
  if (!variable.value)
    return "a value that is not linear";
  if (BlockArgument argument = getKernelArgument(variable.value))
    return ("the entries of " +
            cast<KernelOp>(argument.getOwner()->getParentOp())
                .getArgName(argument.getArgNumber()))
        .str();
  Operation *op = variable.value.getDefiningOp();
  if (auto load = dyn_cast_or_null<LoadOp>(op))
    if (BlockArgument argument = getKernelArgument(load.getSource()))
      return ("what is read from " +
              cast<KernelOp>(argument.getOwner()->getParentOp())
                  .getArgName(argument.getArgNumber()))
          .str();
  if (isa_and_nonnull<arith::CmpFOp>(op))
    return "a comparison of floats";
  if (!op)
    return "a value that a loop carries";
  if (isa<arith::FPToSIOp, arith::FPToUIOp>(op))
    return "an integer made of a float";
  auto kernel = op->getParentOfType<KernelOp>();
  StringRef word = isInMlir(kernel.getLoc()) ? "" : spellInPython(op);
  return word.empty() ? ("the result of " + op->getName().getStringRef()).str()
                      : ("the result of '" + word + "'").str();
}
