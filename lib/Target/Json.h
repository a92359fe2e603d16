//===- Json.h - attributes as JSON ------------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_JSON_H
#define MLAFIX_LIB_TARGET_JSON_H

#include "mlir/IR/Attributes.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mlafix::target {

/// Converts an attribute: dictionaries to objects; arrays of attributes or
/// numbers to arrays; integers, booleans and strings to themselves; unit
/// attributes to true. Anything else is an error.
llvm::Expected<llvm::json::Value> toJson(mlir::Attribute attribute);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_JSON_H
