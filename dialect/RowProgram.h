//===- RowProgram.h - ops of a distributed kernel ---------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_ROWPROGRAM_H
#define MLAFIX_DIALECT_ROWPROGRAM_H

#include "dialect/Mlafix.h"

#define GET_OP_CLASSES
#include "dialect/RowProgramOps.h.inc"

#endif // MLAFIX_DIALECT_ROWPROGRAM_H
