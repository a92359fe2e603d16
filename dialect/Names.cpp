//===- Names.cpp - the names of a kernel that can be bound ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/KernelVerifier.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlafix;

/// The names of the bases of the states in `type`'s stead, if it is one.
static StringRef getBaseName(Type type) {
  auto state = dyn_cast<StateType>(type);
  return state ? state.getBase().getName() : StringRef();
}

/// Likewise of the dim of a state or a row tile.
static SmallVector<StringRef, 2> getDimNames(Type type) {
  if (auto state = dyn_cast<StateType>(type))
    return state.getDim().getNames();
  return isRowTile(type) ? getTileDim(type).getNames()
                         : SmallVector<StringRef, 2>();
}

static std::string spellDefault(KernelOp kernel, StringRef name) {
  DictionaryAttr defaults = kernel.getDefaults().value_or(DictionaryAttr());
  Attribute value = defaults ? defaults.get(name) : Attribute();
  if (auto number = dyn_cast_if_present<IntegerAttr>(value))
    return std::to_string(number.getInt());
  if (auto text = dyn_cast_if_present<StringAttr>(value))
    return text.str();
  return "";
}

SmallVector<BindableName> mlafix::getBindableNames(KernelOp kernel) {
  llvm::MapVector<StringRef, BindableName::Kind> dims, dtypes, bases, dynamic,
      presence;
  DictionaryAttr bound = kernel.getBindings().value_or(DictionaryAttr());
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref || kernel.isArgAbsent(index))
      continue;
    if (kernel.isArgOptional(index))
      presence.insert({kernel.getArgName(index), BindableName::Presence});
    for (auto [position, attr] : llvm::enumerate(kernel.getArgDims(index))) {
      StringRef name = cast<StringAttr>(attr).getValue();
      if (name.empty() || !memref.isDynamicDim(position))
        continue;
      if (std::optional<Factors> factors = Factors::of(name)) {
        for (StringRef factor : {factors->groups, factors->group})
          if (llvm::isUpper(factor.front()))
            dims.insert({factor, BindableName::Dim});
      } else if (llvm::isUpper(name.front()))
        dims.insert({name, BindableName::Dim});
      else
        dynamic.insert({name, BindableName::DynamicDim});
    }
    if (auto name = kernel.getArgAttrOfType<StringAttr>(index, kDTypeAttr))
      if (!bound || !bound.contains(name.getValue()))
        dtypes.insert({name.getValue(), BindableName::DType});
  }
  kernel.walk([&](Operation *op) {
    for (Type type : llvm::concat<const Type>(op->getOperandTypes(),
                                              op->getResultTypes())) {
      if (StringRef name = getBaseName(type); !name.empty())
        bases.insert({name, BindableName::Base});
      // An argument names it, too, unless that is absent.
      for (StringRef name : getDimNames(type))
        if (llvm::isUpper(name.front()))
          dims.insert({name, BindableName::Dim});
    }
  });

  SmallVector<BindableName> names;
  for (const auto *kind : {&dims, &dtypes, &bases, &dynamic, &presence})
    for (auto [name, kind] : *kind)
      names.push_back({name, kind, spellDefault(kernel, name)});
  return names;
}

LogicalResult mlafix::verifyNames(KernelOp kernel) {
  llvm::StringMap<BindableName::Kind> kinds;
  for (const BindableName &name : getBindableNames(kernel))
    if (!kinds.try_emplace(name.name, name.kind).second)
      return kernel.emitOpError()
             << "expected different names for dims, dtypes, bases and optional "
                "arguments, got '"
             << name.name << "' for two of them";
  DictionaryAttr bound = kernel.getBindings().value_or(DictionaryAttr());
  for (NamedAttribute entry : kernel.getDefaults().value_or(
           DictionaryAttr::get(kernel.getContext()))) {
    StringRef name = entry.getName();
    auto kind = kinds.find(name);
    if (kind == kinds.end()) {
      if (bound && bound.contains(name))
        continue;
      return kernel.emitOpError()
             << "expected 'defaults' to hold names of the kernel, got '" << name
             << "'";
    }
    auto text = dyn_cast<StringAttr>(entry.getValue());
    auto number = dyn_cast<IntegerAttr>(entry.getValue());
    auto fail = [&](StringRef expected) {
      return kernel.emitOpError()
             << "expected " << expected << " as the default of '" << name
             << "', got " << entry.getValue();
    };
    switch (kind->second) {
    case BindableName::Dim:
      if (!number || number.getInt() < 1)
        return fail("a size of at least 1");
      break;
    case BindableName::DType:
      if (!text || !getDTypeByName(kernel.getContext(), text.getValue()))
        return fail("the name of a dtype");
      break;
    case BindableName::Base:
      if (!text || (text.getValue() != "e" && text.getValue() != "2"))
        return fail("\"e\" or \"2\"");
      break;
    case BindableName::DynamicDim:
      return fail("no default, the dim being dynamic,");
    case BindableName::Presence:
      return fail("no default, the argument being optional,");
    }
  }
  return success();
}
