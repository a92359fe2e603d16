//===- MlafixOps.td - all of the dialect's definitions -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_OPS
#define MLAFIX_OPS

include "dialect/ExchangeOps.td"
include "dialect/KernelOps.td"
include "dialect/PrintOp.td"
include "dialect/PromiseOps.td"
include "dialect/RowOps.td"
include "dialect/StateOps.td"

#endif // MLAFIX_OPS
