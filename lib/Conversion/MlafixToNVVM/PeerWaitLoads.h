//===- PeerWaitLoads.h - moves loads out of waits for ranks -----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CONVERSION_MLAFIXTONVVM_PEERWAITLOADS_H
#define MLAFIX_CONVERSION_MLAFIXTONVVM_PEERWAITLOADS_H

#include "dialect/RowProgram.h"

namespace mlafix {

/// Moves loads before the waits of an exchange. The rows to send are loaded
/// while `begin` finds out if they are sent. This rank's own rows, which are
/// merged with received rows, are loaded while this rank waits for the received
/// rows. Does nothing if the kernel stores to this rank's tensors before the
/// exchange ends.
void loadAheadOfWaits(BeginExchangeOp begin);

} // namespace mlafix

#endif // MLAFIX_CONVERSION_MLAFIXTONVVM_PEERWAITLOADS_H
