//===- Json.cpp - attributes as JSON --------------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/Json.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace llvm;
using namespace mlafix::target;

static Expected<json::Value> fromDictionary(mlir::DictionaryAttr dictionary) {
  json::Object object;
  for (mlir::NamedAttribute entry : dictionary) {
    Expected<json::Value> value = toJson(entry.getValue());
    if (!value)
      return value.takeError();
    // Convert the key to std::string: a StringRef would not be copied.
    object[entry.getName().str()] = std::move(*value);
  }
  return json::Value(std::move(object));
}

static Expected<json::Value> fromArray(mlir::ArrayAttr attributes) {
  json::Array array;
  for (mlir::Attribute attribute : attributes) {
    Expected<json::Value> value = toJson(attribute);
    if (!value)
      return value.takeError();
    array.push_back(std::move(*value));
  }
  return json::Value(std::move(array));
}

Expected<json::Value> mlafix::target::toJson(mlir::Attribute attribute) {
  using Result = Expected<json::Value>;
  return TypeSwitch<mlir::Attribute, Result>(attribute)
      .Case<mlir::DictionaryAttr>(fromDictionary)
      .Case<mlir::ArrayAttr>(fromArray)
      // A BoolAttr is also an IntegerAttr, so test for BoolAttr first.
      .Case<mlir::BoolAttr>(
          [](mlir::BoolAttr value) -> Result { return value.getValue(); })
      .Case<mlir::IntegerAttr>([](mlir::IntegerAttr value) -> Result {
        if (value.getValue().getSignificantBits() > 64)
          return createStringError("expected integers of 64 bits in the "
                                   "manifest, got a larger one");
        return value.getValue().getSExtValue();
      })
      .Case<mlir::StringAttr>([](mlir::StringAttr value) -> Result {
        if (!json::isUTF8(value.getValue()))
          return createStringError("expected text in UTF-8 for the manifest, "
                                   "got other bytes");
        return value.str();
      })
      .Case<mlir::UnitAttr>([](mlir::UnitAttr) -> Result { return true; })
      .Case<mlir::DenseI64ArrayAttr, mlir::DenseI32ArrayAttr>(
          [](auto values) -> Result {
            json::Array array;
            for (int64_t value : values.asArrayRef())
              array.push_back(value);
            return json::Value(std::move(array));
          })
      .Default([](mlir::Attribute other) -> Result {
        std::string text;
        raw_string_ostream(text) << other;
        return createStringError("expected an attribute that the manifest has "
                                 "a form for, got " +
                                 text);
      });
}
