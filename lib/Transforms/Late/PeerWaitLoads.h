//===- PeerWaitLoads.h - loads that ranks do not wait for -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LATE_PEERWAITLOADS_H
#define MLAFIX_TRANSFORMS_LATE_PEERWAITLOADS_H

#include "dialect/RowProgram.h"

#include <optional>

namespace mlafix {

/// Has the rows that are sent be loaded while `begin` learns whether to send
/// them, and this rank's own, which are merged with what the others send, while
/// it waits for that. Not where the kernel stores to this rank's tensors before
/// its exchange.
void loadAheadOfWaits(BeginExchangeOp begin);

/// A load that loadAheadOfWaits() has made.
struct LoadAhead {
  mlir::Value pointer, condition;
  mlir::Type type;
};
std::optional<LoadAhead> asLoadAhead(mlir::Operation *op);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LATE_PEERWAITLOADS_H
