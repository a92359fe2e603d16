//===- AccessLog.cpp - records accesses and finds violations --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/AccessLog.h"

#include "lib/Analysis/Aliasing.h"

#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace mlafix;

bool mlafix::isUniform(Value value, unsigned depth) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return bool(getKernelArgument(value));
  if (isa<IdentityOp>(op) || op->hasTrait<OpTrait::ConstantLike>())
    return true;
  return depth > 0 && isPure(op) && op->getNumRegions() == 0 &&
         op->getNumOperands() > 0 &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return isUniform(operand, depth - 1);
         });
}

/// Returns the number, row or state that a store writes, or null if it is not
/// uniform. For a row whose elements are all one number, returns that number.
static Value getUniformValue(Operation *op) {
  Value value;
  if (auto store = dyn_cast<StoreOp>(op))
    value = store.getValue();
  else if (auto state = dyn_cast<StoreStateOp>(op); state && !state.getScale())
    value = state.getState();
  if (!value || !isUniform(value))
    return {};
  while (auto splat = value.getDefiningOp<SplatOp>())
    value = splat.getScalar();
  return value;
}

bool mlafix::isSameNumber(Value x, Value y, unsigned depth) {
  if (x == y)
    return true;
  Operation *a = x.getDefiningOp(), *b = y.getDefiningOp();
  return a && b && depth > 0 && isPure(a) && a->getNumRegions() == 0 &&
         cast<OpResult>(x).getResultNumber() ==
             cast<OpResult>(y).getResultNumber() &&
         OperationEquivalence::isEquivalentTo(
             a, b,
             [&](Value x, Value y) {
               return success(isSameNumber(x, y, depth - 1));
             },
             /*markEquivalent=*/nullptr, OperationEquivalence::IgnoreLocations);
}

bool mlafix::writeOneNumber(const MemoryAccess &a, const MemoryAccess &b) {
  Value x = getUniformValue(a.op), y = getUniformValue(b.op);
  if (!x || !y || !isSameNumber(x, y))
    return false;
  // If the two values are rows, such as a running sum, their elements are equal
  // only at equal positions. So both stores must be to the same kind of part.
  bool isNumber = !isRowTile(x.getType()) && !isa<StateType>(x.getType());
  return isNumber ||
         (a.isRow == b.isRow && a.slice == b.slice &&
          bool(a.group) == bool(b.group) && bool(a.member) == bool(b.member));
}

AccessLog::AccessLog(KernelOp kernel, const SmallLaunch &launch)
    : kernel(kernel), launch(launch) {
  for (const MemoryAccess &access : collectAccesses(kernel)) {
    if (access.isRow && access.getArgument())
      ofRows.insert(access.getArgNumber());
    if (access.slice)
      ends[access.getArgNumber()].insert(
          {access.slice->begin, access.slice->end - 1, access.slice->end});
    if (!access.isPart())
      continue;
    unsigned argument = access.getArgNumber();
    DimAttr group = access.getProduct().getGroup();
    groups[argument] =
        group.isBound() ? group.getSize() : launch.groupSizes.lookup(argument);
  }
}

SmallVector<int64_t> AccessLog::getElementsOfRow(unsigned argument) const {
  int64_t group = groups.lookup(argument);
  if (group == 0) {
    std::set<int64_t> places = ends.lookup(argument);
    for (int64_t place : llvm::seq(kRowElements))
      places.insert(place);
    return llvm::to_vector(places);
  }
  SmallVector<int64_t> places;
  for (int64_t first = 0; first < kRowElements * group; first += group)
    for (int64_t member : llvm::seq(std::min(kRowElements, group)))
      places.push_back(first + member);
  return places;
}

void AccessLog::report(Question question, unsigned argument, Operation *op,
                       ArrayRef<int64_t> row, ArrayRef<int64_t> element) {
  for (const Violation &known : violations)
    if (known.question == question && known.argument == argument)
      return;
  violations.push_back({question, argument, op, SmallVector<int64_t>(row),
                        SmallVector<int64_t>(element)});
}

void AccessLog::add(const MemoryAccess &access, ArrayRef<int64_t> row,
                    ArrayRef<int64_t> element) {
  unsigned argument = access.getArgNumber();
  if (access.isRow)
    byRows.insert(argument);
  TensorElement place = {argument, {element.begin(), element.end()}};
  auto writer = writers.find(place);
  bool isOwn = writer != writers.end() && ArrayRef(writer->second.row) == row;
  if (access.isWrite) {
    if (writer != writers.end() && !isOwn &&
        !writeOneNumber(writer->second.access, access))
      report(Question::OneWriter, argument, access.op, row, element);
    writers.insert_or_assign(place, Writer{SmallVector<int64_t>(row), access});
    return;
  }
  // If rows of the argument are accessed as a whole, the log tracks only some
  // elements of each row. The log does not know which row of the grid has
  // written the other elements, so it reports no read of them.
  bool isSeen = !ofRows.contains(argument) ||
                llvm::is_contained(getElementsOfRow(argument), element.back());
  if (kernel.getArgAccess(argument) == "write" && !isOwn && isSeen)
    report(Question::WrittenFirst, argument, access.op, row, element);
  readers[place].push_back({SmallVector<int64_t>(row), access.op});
}

void AccessLog::checkCoverage() {
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    if (kernel.getArgAccess(i) != "write" ||
        llvm::is_contained(launch.absent, i))
      continue;
    ArrayRef<int64_t> sizes = launch.sizes.find(i)->second;
    // If rows of the argument are accessed as a whole, check only the tracked
    // elements of each row.
    bool isByRows = byRows.contains(i);
    SmallVector<int64_t> limits(sizes), places = getElementsOfRow(i);
    if (isByRows)
      limits.back() = llvm::count_if(
          places, [&](int64_t place) { return place < sizes.back(); });
    if (llvm::is_contained(limits, 0))
      continue;
    std::vector<int64_t> at(limits.size(), 0);
    for (int64_t dim = 1, count = 0; dim > 0 && ++count <= kMaxElements;) {
      std::vector<int64_t> element(at);
      if (isByRows)
        element.back() = places[at.back()];
      if (!writers.count({i, element})) {
        report(Question::Coverage, i, nullptr, {}, element);
        break;
      }
      dim = limits.size();
      while (dim > 0 && ++at[dim - 1] == limits[dim - 1])
        at[--dim] = 0;
    }
  }
}

void AccessLog::checkIndependence() {
  for (auto &[place, who] : readers)
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      auto writer = writers.find({i, place.second});
      if (writer == writers.end() ||
          (i != place.first && !mayBeOneTensor(kernel, i, place.first)))
        continue;
      for (const Reader &reader : who)
        if (reader.row != writer->second.row)
          report(Question::Independence, place.first, reader.op, reader.row,
                 place.second);
    }
}

std::vector<Violation> AccessLog::finish() {
  checkCoverage();
  checkIndependence();
  return std::move(violations);
}
