//===- PeerWaitLoads.h - loads that ranks do not wait for -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CONVERSION_MLAFIXTONVVM_PEERWAITLOADS_H
#define MLAFIX_CONVERSION_MLAFIXTONVVM_PEERWAITLOADS_H

#include "dialect/RowProgram.h"

namespace mlafix {

/// Loads the rows to send while `begin` determines if they are sent, and this
/// rank's own rows, which are merged with received ones, while it waits for
/// these. Does nothing if the kernel stores to this rank's tensors before its
/// exchange.
void loadAheadOfWaits(BeginExchangeOp begin);

} // namespace mlafix

#endif // MLAFIX_CONVERSION_MLAFIXTONVVM_PEERWAITLOADS_H
