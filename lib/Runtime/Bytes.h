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

/// As makeByteLayout and makeByteSpan of Overlap.h, of a tensor argument of a
/// call, or of the first of several tensors, without the dim that counts them.
/// Its shape has been checked.
bool makeByteLayout(const ArgDesc &desc, const CallArg &arg,
                    ByteLayout &layout);
bool makeByteSpan(const ArgDesc &desc, const CallArg &arg, bool distinct,
                  ByteSpan &span);

/// True if strides are those of a tensor without gaps, and may be left out.
bool isContiguous(const ArgDesc &desc, const CallArg &arg);

/// Checks that the rows and columns of a tensor in tiles have room in whole
/// tiles.
mlafix_status checkSwizzle(const ArgDesc &desc, const CallArg &arg);

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_BYTES_H
