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

/// Converts an attribute to JSON. A dictionary becomes an object, an array of
/// attributes or numbers an array, and a unit attribute true. Integers,
/// booleans and strings keep their value. Other attributes are an error.
llvm::Expected<llvm::json::Value> toJson(mlir::Attribute attribute);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_JSON_H
