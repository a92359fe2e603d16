//===- GivenPlan.cpp - plan fields that a user gives ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Plan/GivenPlan.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

/// The layout fields that a user may set. A user may not set the number of
/// elements in a pack, since the guards rely on it, or the number of packs per
/// lane, since it follows from the number of lanes.
static constexpr PlanFieldSpec layoutFields[] = {
    {"lanes", 1, 1, 1024, {}},
    {"rows", 1, 1, 1024, {}},
    {"parts", 1, 1, INT32_MAX, {}}};

/// Returns the field called `name`, or null if a user may not set such a field.
/// The rule of a block may not be set, since it only records a reason.
static const PlanFieldSpec *findField(StringRef name) {
  auto hasName = [&](const PlanFieldSpec &spec) { return spec.name == name; };
  if (const auto *found = llvm::find_if(layoutFields, hasName);
      found != std::end(layoutFields))
    return found;
  ArrayRef<PlanFieldSpec> fields = getPlanFields();
  const auto *found = llvm::find_if(fields, hasName);
  bool isReason =
      found - fields.begin() == static_cast<unsigned>(PlanField::Block);
  return found == fields.end() || isReason ? nullptr : found;
}

static std::string listNames() {
  SmallVector<StringRef> names;
  for (const PlanFieldSpec &field : layoutFields)
    names.push_back(field.name);
  for (const PlanFieldSpec &field : getPlanFields())
    if (findField(field.name))
      names.push_back(field.name);
  return llvm::join(names, ", ");
}

llvm::Expected<GivenPlan> GivenPlan::parse(ArrayRef<std::string> texts) {
  GivenPlan plan;
  for (StringRef text : texts) {
    // Use std::tie, because a C++17 lambda cannot capture a structured binding.
    StringRef path, value;
    std::tie(path, value) = text.trim().split('=');
    StringRef version, name = path.trim();
    if (size_t dot = name.rfind('.'); dot != StringRef::npos) {
      version = name.take_front(dot);
      name = name.drop_front(dot + 1);
    }
    const PlanFieldSpec *field = findField(name);
    if (!field)
      return llvm::createStringError(
          "expected a field of a plan as NAME=VALUE or VERSION.NAME=VALUE, "
          "with a name out of " +
          listNames() + ", got '" + text + "'");
    llvm::Expected<int64_t> number = field->read(value.trim());
    if (!number)
      return number.takeError();
    plan.entries.push_back({version.str(), name.str(), *number});
  }
  return plan;
}

std::optional<StringRef>
GivenPlan::findUnknown(ArrayRef<StringRef> names) const {
  for (const Entry &entry : entries)
    if (!entry.version.empty() && !llvm::is_contained(names, entry.version))
      return entry.version;
  return std::nullopt;
}

FailureOr<LayoutAttr> GivenPlan::adapt(KernelOp kernel, StringRef version,
                                       LayoutAttr layout, int64_t packs) const {
  std::optional<int64_t> lanes, rows, parts;
  for (const Entry &entry : entries) {
    if (!entry.isFor(version))
      continue;
    if (entry.name == "lanes")
      lanes = entry.value;
    else if (entry.name == "rows")
      rows = entry.value;
    else if (entry.name == "parts")
      parts = entry.value;
  }
  if (!lanes && !rows && !parts)
    return layout;
  if (layout.isGrouped() || layout.isClustered() || kernel.getExchange())
    return kernel.emitError()
           << "expected no 'lanes', 'rows' or 'parts' for a code version "
              "whose rows span groups of lanes, blocks or ranks, got one for '"
           << version << "'";
  int64_t ofRow = lanes.value_or(layout.getLanes()), held = layout.getPacks();
  if (parts || !layout.isInParts())
    held = llvm::divideCeil(packs, ofRow * parts.value_or(1));
  LayoutAttr adapted = LayoutAttr::getChecked(
      [&] { return kernel.emitError(); }, kernel.getContext(), ofRow, held,
      layout.getPack(), rows.value_or(layout.getRows()), /*groups=*/int64_t(1),
      /*blocks=*/int64_t(1),
      static_cast<int64_t>(llvm::divideCeil(packs, ofRow * held)));
  if (!adapted)
    return failure();
  return adapted;
}

void GivenPlan::set(StringRef version, MutableArrayRef<int64_t> numbers) const {
  ArrayRef<PlanFieldSpec> fields = getPlanFields();
  for (const Entry &entry : entries) {
    if (!entry.isFor(version))
      continue;
    const auto *field = llvm::find_if(fields, [&](const PlanFieldSpec &spec) {
      return spec.name == entry.name;
    });
    if (field != fields.end())
      numbers[field - fields.begin()] = entry.value;
  }
}
