//===- VariantJson.h - variants as a unit holds them ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_VARIANTJSON_H
#define MLAFIX_LIB_TARGET_VARIANTJSON_H

#include "dialect/Mlafix.h"
#include "llvm/Support/JSON.h"

namespace mlafix::target {

/// An entry of "variants" (docs/UnitFormat.md), less what only code generation
/// knows.
llvm::json::Object toJson(VariantAttr variant);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_VARIANTJSON_H
