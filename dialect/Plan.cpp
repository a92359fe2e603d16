//===- Plan.cpp - the plan of a code version ------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Plan.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

static constexpr StringLiteral flagNames[] = {"no", "yes"};

static constexpr StringLiteral residentNames[] = {"fit", "any"};

static constexpr StringLiteral BlockRuleNames[] = {
#define MLAFIX_PLAN_VALUE(VALUES, VALUE, NAME, MEANING) NAME,
#include "dialect/PlanFields.def"
};

static constexpr PlanFieldSpec fields[] = {
#define MLAFIX_PLAN_NUMBER(FIELD, NAME, INITIAL, LEAST, MOST, MEANING)         \
  {NAME, INITIAL, LEAST, MOST, {}},
#define MLAFIX_PLAN_NAMED_NUMBER(FIELD, NAME, NAMES, INITIAL, LEAST, MOST,     \
                                 MEANING)                                      \
  {NAME, INITIAL, LEAST, MOST, NAMES},
#define MLAFIX_PLAN_FLAG(FIELD, NAME, MEANING) {NAME, 0, 0, 1, flagNames},
#define MLAFIX_PLAN_CHOICE(FIELD, NAME, VALUES, MEANING)                       \
  {NAME, 0, 0, std::size(VALUES##Names) - 1, VALUES##Names},
#include "dialect/PlanFields.def"
};

ArrayRef<PlanFieldSpec> mlafix::getPlanFields() { return fields; }

std::string PlanFieldSpec::spell(int64_t value) const {
  size_t choice = value - least;
  return choice < choices.size() ? choices[choice].str()
                                 : std::to_string(value);
}

llvm::Expected<int64_t> PlanFieldSpec::read(StringRef text) const {
  const auto *found = llvm::find(choices, text);
  if (found != choices.end())
    return least + (found - choices.begin());
  int64_t value, first = least + static_cast<int64_t>(choices.size());
  if (!text.getAsInteger(10, value) && value >= first && value <= most)
    return value;
  std::string expected = llvm::join(choices, ", ");
  if (first <= most)
    expected += (choices.empty() ? "" : " or ") +
                llvm::formatv("an integer from {0} to {1}", first, most).str();
  return llvm::createStringError("expected '" + name + "' to be " + expected +
                                 ", got '" + text + "'");
}

PlanAttr PlanAttr::get(LayoutAttr layout) {
  auto initial = llvm::map_to_vector(
      fields, [](const PlanFieldSpec &field) { return field.initial; });
  return get(layout.getContext(), layout, initial);
}

int64_t PlanAttr::getNumber(PlanField field) const {
  return getNumbers()[static_cast<unsigned>(field)];
}

PlanAttr PlanAttr::with(PlanField field, int64_t value) const {
  SmallVector<int64_t> numbers(getNumbers());
  numbers[static_cast<unsigned>(field)] = value;
  return get(getContext(), getLayout(), numbers);
}

PlanAttr PlanAttr::with(LayoutAttr layout) const {
  return get(getContext(), layout, getNumbers());
}

/// Parses plan ::= `<` `layout` `=` layout (`,` name `=` value)* `>`
Attribute PlanAttr::parse(AsmParser &parser, Type) {
  LayoutAttr layout;
  if (parser.parseLess() || parser.parseKeyword("layout") ||
      parser.parseEqual() || parser.parseCustomAttributeWithFallback(layout))
    return {};
  auto numbers = llvm::map_to_vector(
      fields, [](const PlanFieldSpec &field) { return field.initial; });
  while (succeeded(parser.parseOptionalComma())) {
    llvm::SMLoc loc = parser.getCurrentLocation();
    StringRef name, text;
    if (parser.parseKeyword(&name) || parser.parseEqual())
      return {};
    const auto *field = llvm::find_if(
        fields, [&](const PlanFieldSpec &spec) { return spec.name == name; });
    if (field == std::end(fields)) {
      auto names = llvm::map_range(
          fields, [](const PlanFieldSpec &spec) { return spec.name; });
      parser.emitError(loc) << "expected a field of a plan ("
                            << llvm::join(names, ", ") << "), got " << name;
      return {};
    }
    loc = parser.getCurrentLocation();
    std::string digits;
    int64_t number;
    if (OptionalParseResult parsed = parser.parseOptionalInteger(number);
        parsed.has_value()) {
      if (failed(*parsed))
        return {};
      digits = std::to_string(number);
      text = digits;
    } else if (parser.parseKeyword(&text)) {
      return {};
    }
    llvm::Expected<int64_t> value = field->read(text);
    if (!value) {
      parser.emitError(loc) << toString(value.takeError());
      return {};
    }
    numbers[field - fields] = *value;
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), layout, numbers);
}

/// Prints the plan without the fields that have their initial values.
void PlanAttr::print(AsmPrinter &printer) const {
  printer << "<layout = ";
  printer.printStrippedAttrOrType(getLayout());
  for (auto [field, value] : llvm::zip_equal(fields, getNumbers()))
    if (value != field.initial)
      printer << ", " << field.name << " = " << field.spell(value);
  printer << '>';
}

LogicalResult PlanAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               LayoutAttr layout, ArrayRef<int64_t> numbers) {
  if (!layout)
    return emitError() << "expected a layout, got none";
  if (numbers.size() != std::size(fields))
    return emitError() << "expected " << std::size(fields)
                       << " fields of a plan, got " << numbers.size();
  for (auto [field, value] : llvm::zip_equal(fields, numbers))
    if (value < field.least || value > field.most)
      return emitError() << "expected '" << field.name << "' to be from "
                         << field.least << " to " << field.most << ", got "
                         << value;
  for (PlanField field : {PlanField::RowBundle, PlanField::Segments})
    if (int64_t value = numbers[static_cast<unsigned>(field)];
        !llvm::isPowerOf2_64(value))
      return emitError() << "expected '"
                         << fields[static_cast<unsigned>(field)].name
                         << "' to be a power of two, got " << value;
  return success();
}
