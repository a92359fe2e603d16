//===- RowInterpreterMemory.cpp - what rows access -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/RowInterpreterImpl.h"

using namespace mlir;
using namespace mlafix;

RowInterpreter::RowElements
RowInterpreter::elementsOf(const MemoryAccess &access, int64_t size) {
  if (!access.isPart())
    return {0, size, 1, true};
  DimAttr dim = access.getProduct().getGroup();
  int64_t group = dim.isBound()
                      ? dim.getSize()
                      : launch.groupSizes.lookup(access.getArgNumber());
  isUnknown |= group == 0;
  if (isUnknown)
    return {};
  int64_t groups = size / group;
  int64_t g = access.group ? need(access.group) : 0,
          m = access.member ? need(access.member) : 0;
  RowElements elements;
  elements.isInside = g >= 0 && g < groups && m >= 0 && m < group;
  elements.first = elements.isInside ? g * group + m : access.group ? g : m;
  elements.count = access.group ? (access.member ? 1 : group) : groups;
  elements.step = access.group ? 1 : group;
  return elements;
}

bool RowInterpreter::access(const MemoryAccess &access) {
  unsigned argument = access.getArgNumber();
  if (llvm::is_contained(launch.absent, argument) ||
      (access.predicate && need(access.predicate) == 0))
    return false;
  ArrayRef<int64_t> sizes = launch.sizes.find(argument)->second;
  Element element;
  bool isInside = true;
  for (auto [index, size] : llvm::zip(access.indices, sizes)) {
    element.push_back(need(index));
    isInside &= element.back() >= 0 && element.back() < size;
  }
  RowElements part;
  if (access.isTile || access.isPart())
    part = elementsOf(access, sizes.back());
  if (isUnknown)
    return false;
  if (!isInside || !part.isInside) {
    if (access.isPart())
      element.push_back(part.first);
    log.report(Question::Bounds, argument, access.op, row, element);
    return false;
  }
  if (!access.isTile) {
    if (access.isPart())
      element.push_back(part.first);
    log.add(access, row, element);
    if (access.isWrite)
      noteStored(access, element);
    return true;
  }
  for (int64_t at : log.getPlaces(argument)) {
    if (!part.contains(at))
      continue;
    element.push_back(at);
    log.add(access, row, element);
    element.pop_back();
  }
  return true;
}

void RowInterpreter::noteStored(const MemoryAccess &access,
                                const Element &element) {
  Place place = {access.getArgNumber(), {element.begin(), element.end()}};
  if (!isReplay) {
    memory.erase(place);
    return;
  }
  // What is stored as a byte from another type is another number there.
  auto store = dyn_cast<StoreOp>(access.op);
  bool converts = store && access.getElementType().isInteger(8) &&
                  !store.getValue().getType().isInteger(8);
  if (store)
    memory[place] = converts ? std::nullopt : get(store.getValue());
  else if (auto state = dyn_cast<StoreStateOp>(access.op))
    memory[place] = get(state.getState());
  else
    memory[place] = std::nullopt;
}

std::optional<int64_t> RowInterpreter::readInitial(Operation *op,
                                                   const Place &place) {
  if (!isReplay)
    return oracle(op->getResult(0), row);
  auto found = launch.elements.find(place.first);
  if (found == launch.elements.end())
    return std::nullopt;
  size_t at = 0;
  for (auto [index, size] :
       llvm::zip(place.second, launch.sizes.find(place.first)->second))
    at = at * size + index;
  return at < found->second.size() ? std::optional(found->second[at])
                                   : std::nullopt;
}

std::optional<int64_t> RowInterpreter::read(const MemoryAccess &access) {
  Place place = {access.getArgNumber(), {}};
  for (Value index : access.indices)
    place.second.push_back(get(index).value_or(0));
  if (access.isPart())
    place.second.push_back(
        elementsOf(access, launch.sizes.find(place.first)->second.back())
            .first);
  auto [it, isNew] = memory.try_emplace(place, 0);
  if (isNew)
    it->second = readInitial(access.op, place);
  return it->second;
}

void RowInterpreter::load(LoadOp op) {
  MemoryAccess access = op.getAccesses().front();
  bool happens = this->access(access);
  if (isRowTile(op.getType()) || !isNumber(op.getType()))
    return;
  if (happens) {
    values[op] = read(access);
    return;
  }
  bool isOff = access.predicate && get(access.predicate) == 0;
  values[op] = isOff && op.getOther() ? get(op.getOther()) : 0;
}

/// A state that is not read, or of which a part is out of bounds, is empty.
void RowInterpreter::loadState(LoadStateOp op) {
  SmallVector<MemoryAccess, 2> accesses = op.getAccesses();
  bool happens = access(accesses[0]);
  happens &= access(accesses[1]);
  if (!isReplay)
    return;
  std::optional<int64_t> lse = happens ? read(accesses[1]) : kEmptyLse;
  values[op] = lse ? std::optional(lseOfLoaded(*lse)) : std::nullopt;
}
