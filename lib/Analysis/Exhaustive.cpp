//===- Exhaustive.cpp - executes all small launches -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/RowInterpreter.h"

#include "dialect/KnownNumbers.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

#include <random>

using namespace mlir;
using namespace mlafix;

namespace {
/// A quantity of a launch that the search varies, from `low` to `high`.
struct Choice {
  enum Kind { Size, Scalar, Presence } kind;
  int64_t low, high;
  /// The (argument, dim) pairs that this size determines. For a scalar or a
  /// presence, only the argument is used.
  SmallVector<std::pair<unsigned, unsigned>> places;
  /// The name of the size that bounds a scalar from above; empty if none does.
  StringRef atMost;
  StringRef name;
};

/// A dim that is a product of two factors, each a named size or a number.
struct Product {
  unsigned argument, dim;
  SmallVector<size_t, 2> choices;
  int64_t number = 1;
  int64_t group = 0; ///< the group size, or 0 if it is the last of `choices`
};

class SmallLaunches {
public:
  SmallLaunches(KernelOp kernel, int64_t most) : kernel(kernel), most(most) {
    collect();
  }
  std::vector<Violation> run();

private:
  void collect();
  void addSize(StringRef name, unsigned argument, unsigned dim);
  size_t addNamed(StringRef name);
  SmallLaunch makeLaunch(ArrayRef<int64_t> chosen);
  bool isLegal(ArrayRef<int64_t> chosen) const;
  void runLaunch(const SmallLaunch &launch);
  void add(ArrayRef<Violation> violations);

  KernelOp kernel;
  int64_t most;
  std::vector<Choice> choices;
  // Maps a named size to its position in `choices`.
  llvm::MapVector<StringRef, size_t> named;
  std::vector<Product> products;
  std::vector<Violation> found;
  std::mt19937 random{1};

  static constexpr int kEnumerated = 40, kRandom = 24;
};
} // namespace

size_t SmallLaunches::addNamed(StringRef name) {
  auto [it, isNew] = named.insert({name, choices.size()});
  KnownNumber size = getKnownSize(kernel, name);
  if (isNew)
    choices.push_back({Choice::Size,
                       size.least,
                       std::min(most, size.most.value_or(most)),
                       {},
                       "",
                       name});
  return it->second;
}

/// Returns the least row length of `argument` for which all of its slices are
/// inside the row.
static int64_t countSliced(KernelOp kernel, unsigned argument) {
  int64_t most = 0;
  for (const MemoryAccess &access : collectAccesses(kernel))
    if (access.slice && access.getArgument() &&
        access.getArgNumber() == argument)
      most = std::max(most, access.slice->end);
  return most;
}

void SmallLaunches::addSize(StringRef name, unsigned argument, unsigned dim) {
  if (name.empty()) {
    choices.push_back({Choice::Size, 0, most, {{argument, dim}}, "", name});
    return;
  }
  std::optional<Factors> factors = Factors::of(name);
  if (!factors) {
    Choice &choice = choices[addNamed(name)];
    choice.places.push_back({argument, dim});
    auto type = cast<MemRefType>(kernel.getArgumentTypes()[argument]);
    if (dim + 1 == type.getRank()) {
      int64_t sliced = countSliced(kernel, argument);
      if (!getKnownSize(kernel, name)
               .isOfLaunch()) // the verifier refuses shorter rows
        choice.low = std::max(choice.low, sliced);
      choice.high = std::max(choice.high, sliced);
    }
    return;
  }
  Product product = {argument, dim, {}};
  for (StringRef factor : {factors->groups, factors->group}) {
    int64_t number;
    product.group = 0;
    if (factor.getAsInteger(10, number))
      product.choices.push_back(addNamed(factor));
    else
      product.number *= product.group = number;
  }
  products.push_back(product);
}

void SmallLaunches::collect() {
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    Type type = kernel.getArgumentTypes()[i];
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref) {
      if (!type.isIntOrIndex())
        continue;
      Choice scalar = {Choice::Scalar, -1, most + 1, {{i, 0}}, "", ""};
      if (type.isInteger(1))
        scalar.low = 0, scalar.high = 1;
      KnownNumber known = getKnownScalar(kernel, i);
      scalar.atMost = known.atMost;
      scalar.low = std::max(scalar.low, known.least);
      scalar.high = std::min(scalar.high, known.most.value_or(scalar.high));
      choices.push_back(scalar);
      continue;
    }
    for (int64_t dim = 0; dim < memref.getRank(); ++dim) {
      if (!memref.isDynamicDim(dim))
        continue;
      addSize(cast<StringAttr>(kernel.getArgDims(i)[dim]).getValue(), i, dim);
    }
    if (kernel.isArgOptional(i) && !kernel.isArgAbsent(i)) {
      // Use one choice for all optional arguments, since most are passed or
      // omitted together.
      auto last = llvm::find_if(choices, [](const Choice &choice) {
        return choice.kind == Choice::Presence;
      });
      if (last != choices.end())
        last->places.push_back({i, 0});
      else
        choices.push_back({Choice::Presence, 0, 1, {{i, 0}}, "", ""});
    }
  }
}

bool SmallLaunches::isLegal(ArrayRef<int64_t> chosen) const {
  for (auto [choice, value] : llvm::zip(choices, chosen))
    if (!choice.atMost.empty())
      for (auto [other, size] : llvm::zip(choices, chosen))
        if (other.kind == Choice::Size && other.name == choice.atMost &&
            value > size)
          return false;
  return true;
}

SmallLaunch SmallLaunches::makeLaunch(ArrayRef<int64_t> chosen) {
  SmallLaunch launch;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    if (auto type = dyn_cast<MemRefType>(kernel.getArgumentTypes()[i]))
      llvm::append_range(launch.sizes[i], type.getShape());
    if (kernel.isArgAbsent(i))
      launch.absent.push_back(i);
  }
  for (auto [choice, value] : llvm::zip(choices, chosen))
    for (auto [argument, dim] : choice.places) {
      if (choice.kind == Choice::Size)
        launch.sizes[argument][dim] = value;
      if (choice.kind == Choice::Scalar)
        launch.scalars[argument] = value;
      if (choice.kind == Choice::Presence && value == 0)
        launch.absent.push_back(argument);
    }
  for (const Product &product : products) {
    int64_t &size = launch.sizes[product.argument][product.dim];
    size = product.number;
    for (size_t choice : product.choices)
      size *= chosen[choice];
    launch.groupSizes[product.argument] =
        product.group ? product.group : chosen[product.choices.back()];
  }
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (auto type = dyn_cast<MemRefType>(kernel.getArgumentTypes()[i]))
      for (int64_t &size : launch.sizes[i])
        if (ShapedType::isDynamic(size))
          size = most;
  return launch;
}

void SmallLaunches::add(ArrayRef<Violation> violations) {
  for (const Violation &violation : violations)
    if (llvm::none_of(found, [&](const Violation &known) {
          return known.question == violation.question &&
                 known.argument == violation.argument;
        }))
      found.push_back(violation);
}

void SmallLaunches::runLaunch(const SmallLaunch &launch) {
  std::vector<std::pair<int64_t, int64_t>>
      path; // (drawn digit, number of digits) of each draw
  size_t at = 0;
  bool isRandom = false;
  auto draw = [&](int64_t count) -> int64_t {
    if (isRandom)
      return random() % count;
    if (at == path.size())
      path.push_back({0, count});
    return path[at++].first;
  };
  auto drawValue = [&](Type type) {
    if (type.isInteger(1))
      return draw(2);
    int64_t digit = draw(most + 3);
    return digit == most + 2 ? -1 : digit;
  };
  auto oracle = [&](Value value, ArrayRef<int64_t>) {
    return drawValue(value.getType());
  };
  auto grid = dyn_cast<RaggedForallOp>(kernel.getGrid());
  for (int count = 0; count < kEnumerated + kRandom; ++count) {
    at = 0;
    isRandom = count >= kEnumerated;
    SmallVector<int64_t> segments;
    if (grid) {
      unsigned argument = getKernelArgument(grid.getCuSeqlens()).getArgNumber();
      for (int64_t i = 0; i < launch.sizes.find(argument)->second[0]; ++i)
        segments.push_back(
            drawValue(IntegerType::get(kernel.getContext(), 32)));
    }
    if (auto violations = interpretRows(kernel, launch, oracle, segments))
      add(*violations);
    if (isRandom)
      continue;
    while (!path.empty() && path.back().first + 1 == path.back().second)
      path.pop_back();
    if (path.empty())
      return; // all memory contents were tried
    ++path.back().first;
  }
}

std::vector<Violation> SmallLaunches::run() {
  SmallVector<int64_t> chosen;
  for (const Choice &choice : choices)
    chosen.push_back(choice.low);
  while (true) {
    if (isLegal(chosen))
      runLaunch(makeLaunch(chosen));
    int64_t i = chosen.size();
    while (i > 0 && ++chosen[i - 1] > choices[i - 1].high) {
      chosen[i - 1] = choices[i - 1].low;
      --i;
    }
    if (i == 0)
      return found;
  }
}

std::vector<Violation> mlafix::runSmallLaunches(KernelOp kernel, int64_t most) {
  return SmallLaunches(kernel, most).run();
}
