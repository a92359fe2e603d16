//===- Numbers.h - scalars as 64-bit numbers --------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_NUMBERS_H
#define MLAFIX_ANALYSIS_NUMBERS_H

#include "mlir/IR/BuiltinAttributes.h"

#include <optional>

namespace mlafix {

/// An integer or boolean as its value, an f32 as its bits; none for others.
std::optional<int64_t> numberOf(mlir::Attribute attribute);

/// The reverse. `type` is an integer, an index or f32.
mlir::Attribute attributeOf(mlir::Type type, int64_t number);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_NUMBERS_H
