//===- Bytes.h - Where the bytes of an argument lie -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_BYTES_H
#define MLAFIX_RUNTIME_BYTES_H

#include "Call.h"
#include "Overlap.h"

namespace mlafix::runtime {

/// These functions correspond to makeByteLayout() and makeByteSpan() of
/// Overlap.h, for a tensor argument whose shape has been checked. If the
/// argument is several tensors, the functions describe the first one and skip
/// the dim that counts the tensors.
bool makeByteLayout(const ArgDesc &desc, const CallArg &arg,
                    ByteLayout &layout);
bool makeByteSpan(const ArgDesc &desc, const CallArg &arg, bool distinct,
                  ByteSpan &span);

/// Returns true if `arg` has the strides of a contiguous tensor. A later caller
/// may then omit the strides.
bool isContiguous(const ArgDesc &desc, const CallArg &arg);

/// Checks that a tiled tensor has memory for whole tiles of rows and columns.
mlafix_status checkSwizzle(const ArgDesc &desc, const CallArg &arg);

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_BYTES_H
