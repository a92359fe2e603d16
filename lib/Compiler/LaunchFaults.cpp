//===- LaunchFaults.cpp - the violations of a launch as JSON --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/ProofReport.h"

#include "lib/Analysis/RowInterpreter.h"

using namespace llvm;
using namespace mlafix;

/// Converts a JSON number to the interpreter's form, in which an f32 is its
/// bits. Returns nullopt if it is not a number of `type`.
static std::optional<int64_t> readNumber(const json::Value &value,
                                         mlir::Type type) {
  if (isa<mlir::FloatType>(type)) {
    std::optional<double> number = value.getAsNumber();
    if (value.getAsString() == "nan")
      number = NAN;
    else if (value.getAsString() == "inf")
      number = INFINITY;
    else if (value.getAsString() == "-inf")
      number = -INFINITY;
    if (!number)
      return std::nullopt;
    return APFloat(float(*number)).bitcastToAPInt().getZExtValue();
  }
  if (std::optional<bool> flag = value.getAsBoolean())
    return *flag;
  return value.getAsInteger();
}

/// Returns an error about argument `name`. A null `got` means that the value is
/// missing.
static Error wrong(StringRef name, const Twine &expected,
                   const json::Value *got) {
  return createStringError("argument \"" + name + "\": expected " + expected +
                           ", got " +
                           (got ? formatv("{0}", *got).str() : "none"));
}

static Error readElements(const json::Array &elements, StringRef name,
                          mlir::Type type, std::vector<int64_t> &numbers) {
  for (const json::Value &element : elements) {
    std::optional<int64_t> number = readNumber(element, type);
    if (!number)
      return wrong(name, "elements of its dtype", &element);
    numbers.push_back(*number);
  }
  return Error::success();
}

static Error readTensor(const json::Value &value, StringRef name,
                        mlir::MemRefType type, unsigned index,
                        SmallLaunch &launch) {
  const json::Object *object = value.getAsObject();
  const json::Value *given = object ? object->get("sizes") : &value;
  const json::Array *sizes = object ? object->getArray("sizes") : nullptr;
  if (!sizes || int64_t(sizes->size()) != type.getRank())
    return wrong(name,
                 "\"sizes\" with a number for each of " +
                     Twine(type.getRank()) + " dims",
                 given);
  int64_t count = 1;
  for (auto [size, fixed] : zip(*sizes, type.getShape())) {
    std::optional<int64_t> number = size.getAsInteger();
    if (!number || *number < 0 ||
        (!mlir::ShapedType::isDynamic(fixed) && *number != fixed) ||
        MulOverflow(count, *number, count))
      return wrong(name, "sizes that the kernel takes", given);
    launch.sizes[index].push_back(*number);
  }
  const json::Array *elements = object->getArray("elements");
  if (!elements)
    return Error::success();
  if (int64_t(elements->size()) != count) {
    json::Value got = int64_t(elements->size());
    return wrong(name, Twine(count) + " elements, as its sizes say", &got);
  }
  return readElements(*elements, name, type.getElementType(),
                      launch.elements[index]);
}

/// Reads the expected contents of outputs from {"the tolerance": …, "out":
/// […]}. No argument can be called "the tolerance", since that has a space.
static Error readExpected(KernelOp kernel, const json::Object &expected,
                          SmallLaunch &launch) {
  launch.tolerance = expected.getNumber("the tolerance").value_or(0);
  for (auto [index, type] : enumerate(kernel.getArgumentTypes())) {
    StringRef name = kernel.getArgName(index);
    const json::Array *elements = expected.getArray(name);
    if (!elements || elements->empty())
      continue;
    if (Error error = readElements(
            *elements, name, cast<mlir::MemRefType>(type).getElementType(),
            launch.expected[index]))
      return error;
  }
  return Error::success();
}

static Expected<SmallLaunch> readLaunch(KernelOp kernel, StringRef text) {
  Expected<json::Value> parsed = json::parse(text);
  if (!parsed)
    return parsed.takeError();
  const json::Object *object = parsed->getAsObject();
  if (!object)
    return createStringError(
        formatv("expected an object for the launch, got {0}", *parsed).str());
  SmallLaunch launch;
  for (auto [index, type] : enumerate(kernel.getArgumentTypes())) {
    StringRef name = kernel.getArgName(index);
    const json::Value *value = object->get(name);
    auto memref = dyn_cast<mlir::MemRefType>(type);
    bool isOmitted = !value || value->kind() == json::Value::Null;
    if (memref && isOmitted && kernel.isArgOptional(index)) {
      launch.absent.push_back(index);
      launch.sizes[index].assign(memref.getRank(), 0);
    } else if (isOmitted) {
      return wrong(name, "a value", nullptr);
    } else if (memref) {
      if (Error error = readTensor(*value, name, memref, index, launch))
        return error;
    } else if (auto number = readNumber(*value, type)) {
      launch.scalars[index] = *number;
    } else {
      return wrong(name, "a number of its dtype", value);
    }
  }
  if (const json::Object *expected = object->getObject("against the reference"))
    if (Error error = readExpected(kernel, *expected, launch))
      return error;
  return launch;
}

/// Returns the size of a factor of a dim: a literal, or the size of a dim with
/// the factor's name. Returns 0 if it is unknown.
static int64_t findFactor(KernelOp kernel, const SmallLaunch &launch,
                          DimAttr factor) {
  if (factor.isBound())
    return factor.getSize();
  for (auto &[index, sizes] : launch.sizes)
    for (auto [dim, size] : enumerate(sizes))
      if (getArgumentDim(kernel.getArgument(index), dim) == factor)
        return size;
  return 0;
}

/// Sets the group sizes that follow from the sizes of the launch.
static void findGroups(KernelOp kernel, SmallLaunch &launch) {
  for (auto &[index, sizes] : launch.sizes) {
    DimAttr dim = sizes.empty() ? DimAttr()
                                : getArgumentDim(kernel.getArgument(index),
                                                 sizes.size() - 1);
    if (!dim || !dim.isProduct())
      continue;
    int64_t group = findFactor(kernel, launch, dim.getGroup()),
            groups = findFactor(kernel, launch, dim.getGroups());
    launch.groupSizes[index] = group || !groups ? group : sizes.back() / groups;
  }
}

static std::string spell(StringRef before, ArrayRef<int64_t> indices) {
  std::string text;
  raw_string_ostream stream(text);
  stream << before << "[";
  interleaveComma(indices, stream);
  stream << "]";
  return text;
}

static StringRef describe(Question question) {
  switch (question) {
  case Question::Coverage:
    return " writes it";
  case Question::OneWriter:
    return " writes it after another row did";
  case Question::Independence:
    return " reads it, which another row writes";
  case Question::WrittenFirst:
    return " reads it before writing it";
  case Question::Bounds:
    return " accesses it, which is out of bounds";
  }
  llvm_unreachable("a question");
}

static json::Object describe(KernelOp kernel, const Violation &violation) {
  StringRef name = kernel.getArgName(violation.argument);
  std::string who =
      violation.op ? spell("row ", violation.row) : std::string("no row");
  json::Object fault{{"question", spelling(violation.question)},
                     {"argument", name},
                     {"element", json::Array(violation.element)},
                     {"row", json::Array(violation.row)},
                     {"message", spell(name, violation.element) + ": " + who +
                                     describe(violation.question).str()}};
  if (violation.op)
    addLocation(fault, violation.op);
  return fault;
}

static json::Object describe(KernelOp kernel, const BrokenPromise &broken) {
  StringRef name;
  std::string who = "the launch";
  if (auto distinct = dyn_cast<DistinctOp>(broken.op)) {
    name = kernel.getArgName(
        getKernelArgument(distinct.getTable()).getArgNumber());
    who = spell(name, broken.element);
  } else if (!broken.row.empty()) {
    who = spell("row ", broken.row);
  }
  std::string promise = describePromise(broken.op);
  json::Object fault{{"question", "promise"},
                     {"argument", name},
                     {"element", json::Array(broken.element)},
                     {"row", json::Array(broken.row)},
                     {"message", who + " breaks the promise that " + promise}};
  addLocation(fault, broken.op);
  return fault;
}

static json::Object describe(KernelOp kernel, const OddValue &odd) {
  StringRef name = kernel.getArgName(odd.argument);
  std::string text =
      spell(name, odd.element) + ": " + spell("row ", odd.row) + " stores ";
  if (odd.from) {
    text += odd.question == "NaN" ? "NaN" : "an infinity";
    text += ", made of " + odd.text + " by " +
            odd.from->getName().stripDialect().str();
  } else {
    text += odd.text;
  }
  json::Object fault{{"question", odd.question},
                     {"argument", name},
                     {"element", json::Array(odd.element)},
                     {"row", json::Array(odd.row)}};
  if (odd.from) {
    json::Object origin;
    addLocation(origin, odd.from);
    if (std::optional<int64_t> line = origin.getInteger("line"))
      text += " in line " + std::to_string(*line);
    for (auto &[key, value] : origin)
      fault[key] = value;
  } else {
    addLocation(fault, odd.store);
  }
  fault["message"] = text;
  return fault;
}

static json::Object describe(const PrintedText &printed) {
  json::Object object{
      {"row", json::Array(printed.row)},
      {"message", spell("row ", printed.row) + ": " + printed.text},
      {"text", printed.text}};
  addLocation(object, PrintOp(printed.op));
  return object;
}

Expected<json::Value> mlafix::findLaunchFaults(KernelOp kernel,
                                               StringRef text) {
  Expected<SmallLaunch> launch = readLaunch(kernel, text);
  if (!launch)
    return launch.takeError();
  findGroups(kernel, *launch);
  Replay replay = replayRows(kernel, *launch);
  json::Array faults, printed;
  for (const Violation &violation : replay.violations)
    faults.push_back(describe(kernel, violation));
  for (const BrokenPromise &broken : replay.broken)
    faults.push_back(describe(kernel, broken));
  for (const OddValue &odd : replay.odd)
    faults.push_back(describe(kernel, odd));
  for (const PrintedText &one : replay.printed)
    printed.push_back(describe(one));
  return json::Object{{"faults", std::move(faults)},
                      {"printed", std::move(printed)},
                      {"printed_more", replay.textsDropped},
                      {"unknown_rows", replay.unknownRows},
                      {"is_whole", replay.isWhole}};
}
