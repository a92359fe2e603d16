//===- PeerFlagsBuilder.h - flags of ranks that wait ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CONVERSION_MLAFIXTONVVM_PEERFLAGSBUILDER_H
#define MLAFIX_CONVERSION_MLAFIXTONVVM_PEERFLAGSBUILDER_H

#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace mlafix {

/// NVPTX's name of the scope of all threads of the device.
inline constexpr llvm::StringLiteral kDevice = "device";

/// Builds what the ops need by which ranks wait for each other, at the place of
/// one of them.
class PeerFlags {
public:
  PeerFlags(mlir::Operation *op, mlir::Value group, mlir::Type layout,
            unsigned addressSpace)
      : b(op), loc(op->getLoc()), group(group), layout(layout),
        pointer(
            mlir::LLVM::LLVMPointerType::get(b.getContext(), addressSpace)) {
    rank = field(kRank, b.getI32Type());
    ranks = field(kRanks, b.getI32Type());
    own = workspace(rank);
    thread = buildThreadId(b, loc);
  }

  mlir::Value wait();
  mlir::Value release(mlir::Value arrived);
  /// What `mlafix.begin_exchange` answers.
  struct Begin {
    mlir::Value last; ///< the number of the last collective, i64
    mlir::Value turn; ///< index
    mlir::Value sends;
  };
  Begin beginExchange();
  mlir::Value endExchange(mlir::Value last, mlir::Value sends);

private:
  /// The fields of what a launch says of the group.
  enum Field { kRank, kRanks, kTimeout, kFailure, kWorkspaces };

  mlir::Value i32(int64_t value) {
    return mlir::arith::ConstantIntOp::create(b, loc, value, 32);
  }
  mlir::Value i64(int64_t value) {
    return mlir::arith::ConstantIntOp::create(b, loc, value, 64);
  }
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value x,
                      mlir::Value y) {
    return mlir::arith::CmpIOp::create(b, loc, predicate, x, y);
  }
  mlir::Value negate(mlir::Value x) {
    return mlir::arith::XOrIOp::create(
        b, loc, x, mlir::arith::ConstantIntOp::create(b, loc, true, 1));
  }
  mlir::Value both(mlir::Value x, mlir::Value y) {
    return mlir::arith::AndIOp::create(b, loc, x, y);
  }

  mlir::Value field(Field index, mlir::Type type);
  mlir::Value workspace(mlir::Value ofRank);
  mlir::Value buildFirstSlot();
  mlir::Value at(mlir::Value workspace, int64_t offset,
                 mlir::Value ofRank = {});
  mlir::Value load(mlir::Value address, mlir::LLVM::AtomicOrdering ordering,
                   llvm::StringRef scope = {});
  void store(mlir::Value value, mlir::Value address,
             mlir::LLVM::AtomicOrdering ordering, llvm::StringRef scope = {});
  mlir::Value hasNotFailed();
  void tell(int64_t flags, mlir::Value epoch, mlir::Value first,
            mlir::Value step, mlir::LLVM::AtomicOrdering ordering);
  mlir::Value waitForAll(int64_t flags, mlir::Value epoch, mlir::Value first,
                         mlir::Value step, mlir::Value failed);
  mlir::Value poll(mlir::Value flag, mlir::Value epoch);
  mlir::Value waitFor(mlir::Value flag, mlir::Value epoch);
  void reportFailure();
  mlir::Value countBlock();
  void finish(mlir::Value epoch, mlir::Value arrived);
  void countLaunch(mlir::Value epoch);
  void forEachRank(mlir::Value first, mlir::Value step,
                   llvm::function_ref<void(mlir::Value)> build);
  void branch(mlir::Value condition, llvm::function_ref<void()> build);

  mlir::OpBuilder b;
  mlir::Location loc;
  mlir::Value group;
  mlir::Type layout;
  mlir::Type pointer;
  mlir::Value rank, ranks;
  mlir::Value own; ///< this rank's workspace
  mlir::Value thread;
};

} // namespace mlafix

#endif // MLAFIX_CONVERSION_MLAFIXTONVVM_PEERFLAGSBUILDER_H
