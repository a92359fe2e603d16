//===- MlafixThread.h - the dialect of one thread's program -----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_MLAFIXTHREAD_H
#define MLAFIX_DIALECT_MLAFIXTHREAD_H

#include "dialect/Mlafix.h"

#include "dialect/MlafixThreadDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/MlafixThreadAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialect/MlafixThreadOps.h.inc"

#endif // MLAFIX_DIALECT_MLAFIXTHREAD_H
