//===- Signature.h - a kernel's signature for hosts -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_SIGNATURE_H
#define MLAFIX_ANALYSIS_SIGNATURE_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// Returns the signature of a kernel in the format of units
/// (docs/UnitFormat.md): name, bindings, args, aliases, launch checks and
/// defaults, and the proofs if the kernel records them.
mlir::DictionaryAttr getSignature(KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_SIGNATURE_H
