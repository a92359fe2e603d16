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

/// Like makeByteLayout and makeByteSpan of Overlap.h, for a tensor argument
/// whose shape has been checked. For several tensors, describes the first one,
/// without the dim that counts them.
bool makeByteLayout(const ArgDesc &desc, const CallArg &arg,
                    ByteLayout &layout);
bool makeByteSpan(const ArgDesc &desc, const CallArg &arg, bool distinct,
                  ByteSpan &span);

/// True if the strides are those of a contiguous tensor, so that a caller may
/// omit them.
bool isContiguous(const ArgDesc &desc, const CallArg &arg);

/// Checks that a tiled tensor has space for whole tiles of rows and columns.
mlafix_status checkSwizzle(const ArgDesc &desc, const CallArg &arg);

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_BYTES_H
