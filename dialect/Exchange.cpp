//===- Exchange.cpp - rows that ranks send to each other ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/KernelVerifier.h"

using namespace mlir;
using namespace mlafix;

ExchangeOp KernelOp::getExchange() {
  ExchangeOp found;
  walk([&](ExchangeOp op) {
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

/// Checks the order of accesses in a kernel with an exchange:
///
///   - Stores to peers' tensors are before the exchange.
///   - Loads of peers' tensors are after the exchange.
///   - Stores to other tensors are after the exchange.
///
/// Loads of other tensors may be anywhere.
static LogicalResult verifyOrder(KernelOp kernel, ExchangeOp exchange) {
  for (const MemoryAccess &access : collectAccesses(kernel)) {
    BlockArgument argument = access.getArgument();
    if (!argument)
      continue;
    unsigned index = argument.getArgNumber();
    Operation *ancestor =
        exchange->getBlock()->findAncestorOpInBlock(*access.op);
    bool isBefore = ancestor && ancestor->isBeforeInBlock(exchange);
    bool isSent = kernel.isArgPeers(index) && access.isWrite;
    if (isBefore == isSent || (!access.isWrite && !kernel.isArgPeers(index)))
      continue;
    return access.op->emitOpError()
           << "expected every "
           << (!access.isWrite ? "load of a tensor of all ranks"
               : isSent        ? "store to a tensor of all ranks"
                               : "store to a tensor of this rank alone")
           << (isBefore ? " after" : " before") << " the exchange, got a "
           << (access.isWrite ? "store to '" : "load of '")
           << kernel.getArgName(index) << (isBefore ? "' before" : "' after")
           << " it";
  }
  return success();
}

LogicalResult mlafix::verifyExchange(KernelOp kernel) {
  ExchangeOp exchange = kernel.getExchange();
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (kernel.isArgPeers(i) &&
        (kernel.getArgAccess(i) == "update") != bool(exchange))
      return failAt(kernel, i)
             << "expected access \"" << (exchange ? "update" : "read")
             << "\" of a tensor of all ranks in a kernel with"
             << (exchange ? " an exchange" : "out an exchange") << ", got \""
             << kernel.getArgAccess(i) << "\"; declare it Peers["
             << (exchange ? "InOut" : "In") << "[…]]";
  WalkResult walk =
      kernel.walk([&](Operation *op) {
        if (!isa<ExchangeOp, TurnOp>(op))
          return WalkResult::advance();
        if (!exchange || !kernel.isCollective()) {
          op->emitOpError()
              << "expected a kernel with "
              << (exchange ? "an argument of all ranks" : "an exchange")
              << ", got none";
          return WalkResult::interrupt();
        }
        if (isa<ExchangeOp>(op) &&
            (op != exchange || op->getParentOp() != kernel.getGrid())) {
          op->emitOpError()
              << "expected one exchange, in the grid's own block, got "
              << (op != exchange ? "a second" : "one elsewhere");
          return WalkResult::interrupt();
        }
        return WalkResult::advance();
      });
  if (walk.wasInterrupted())
    return failure();
  return exchange ? verifyOrder(kernel, exchange) : success();
}
