//===- MergeLoop.cpp - mlafix.merge_loop ----------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Mlafix.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlafix;

OperandRange MergeLoopOp::getChunk() {
  return cast<YieldOp>(getBody().front().getTerminator()).getValues();
}

SmallVector<Region *> MergeLoopOp::getLoopRegions() { return {&getBody()}; }

ParseResult MergeLoopOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::Argument index;
  OpAsmParser::UnresolvedOperand lower, upper;
  SmallVector<OpAsmParser::UnresolvedOperand> init;
  SmallVector<Type> types;
  IntegerAttr step;
  Builder &b = parser.getBuilder();
  index.type = b.getIndexType();
  if (succeeded(parser.parseOptionalKeyword("to_first")))
    result.addAttribute("to_first", b.getUnitAttr());
  if (parser.parseArgument(index) || parser.parseEqual() ||
      parser.parseOperand(lower) || parser.parseKeyword("to") ||
      parser.parseOperand(upper) || parser.parseKeyword("step") ||
      parser.parseAttribute(step, b.getI64Type(), "step", result.attributes) ||
      parser.parseKeyword("init"))
    return failure();
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(init, OpAsmParser::Delimiter::Paren) ||
      parser.parseColonTypeList(types) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.resolveOperand(lower, index.type, result.operands) ||
      parser.resolveOperand(upper, index.type, result.operands) ||
      parser.resolveOperands(init, types, loc, result.operands) ||
      parser.parseRegion(*result.addRegion(), index))
    return failure();
  result.addTypes(types);
  return success();
}

void MergeLoopOp::print(OpAsmPrinter &printer) {
  if (getToFirst())
    printer << " to_first";
  printer << ' ' << getInductionVar() << " = " << getLower() << " to "
          << getUpper() << " step " << getStep() << " init(" << getInit()
          << ") : " << getInit().getTypes();
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {"step", "to_first"});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult MergeLoopOp::verify() {
  if (static_cast<int64_t>(getStep()) < 1)
    return emitOpError() << "expected a step of at least 1, got "
                         << static_cast<int64_t>(getStep());
  if (getInit().getTypes() != getResultTypes())
    return emitOpError() << "expected results of the types of init, "
                         << getInit().getTypes() << ", got "
                         << getResultTypes();
  if (isOfNumbers() && (getToFirst() || getBase()))
    return emitOpError() << "expected neither to_first nor a base where a "
                            "number is carried, got "
                         << (getToFirst() ? "to_first" : "a base");
  if (isOfNumbers())
    return success();
  Type f32 = Float32Type::get(getContext());
  bool isState =
      getInit().size() == 1 && isa<StateType>(getInit()[0].getType());
  // A lowered state is a maximum, a sum and an accumulator. The accumulator is
  // a row, or the packs of a row that one lane holds.
  auto isPack = [](Type type) { return isa<VectorType>(type); };
  bool isLowered =
      getInit().size() >= 3 && getInit()[0].getType() == f32 &&
      getInit()[1].getType() == f32 &&
      (llvm::all_of(getInit().drop_front(2).getTypes(), isPack) ||
       (getInit().size() == 3 && isRowTile(getInit()[2].getType())));
  if (!isState && !isLowered)
    return emitOpError() << "expected one number of f32, one state, or its "
                            "maximum, sum and accumulator, got "
                         << getInit().size() << " values";
  if (isState && cast<StateType>(getInit()[0].getType()).getSink())
    return emitOpError() << "expected a state without a sink in its type, got "
                         << getInit()[0].getType();
  if (isLowered != getBase().has_value())
    return emitOpError() << "expected a base "
                         << (isLowered ? "beside the three values of a state, "
                                         "got none"
                                       : "in the type of the state alone, got "
                                         "one beside it");
  return success();
}

LogicalResult MergeLoopOp::verifyRegions() {
  Block &block = getBody().front();
  if (block.getNumArguments() != 1 || !getInductionVar().getType().isIndex())
    return emitOpError() << "expected a body with one index, got "
                         << block.getArgumentTypes();
  auto yield =
      dyn_cast_if_present<YieldOp>(block.empty() ? nullptr : &block.back());
  if (!yield || yield.getValues().getTypes() != getResultTypes()) {
    InFlightDiagnostic error =
        emitOpError() << "expected a body that yields a chunk of the type of "
                         "the result, "
                      << getResultTypes() << ", got ";
    return !yield || yield.getValues().empty()
               ? error << "nothing"
               : error << yield.getValues().getTypes();
  }
  WalkResult walk = getBody().walk([&](Operation *op) {
    if (!isa<StoreOp, StoreStateOp>(op))
      return WalkResult::advance();
    op->emitOpError() << "expected no store in a merge loop, got one";
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}
