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

/// Turns dictionaries into objects, arrays (of attributes or numbers) into
/// arrays, and integers, booleans and strings into themselves; a unit attribute
/// is true. Anything else is an error.
llvm::Expected<llvm::json::Value> toJson(mlir::Attribute attribute);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_JSON_H
