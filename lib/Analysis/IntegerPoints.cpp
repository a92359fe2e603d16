//===- IntegerPoints.cpp - decides if integer points exist ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Implements the Omega test (Pugh, "The Omega test: a fast and practical
// integer programming algorithm for dependence analysis", 1991). Solves the
// equalities, then eliminates a column by combining its lower with its upper
// bounds:
//
//   - If an integer always lies between the bounds, the elimination is exact.
//   - Otherwise, the combined bounds are the real shadow. If it has no point,
//     the system has none.
//   - The dark shadow has only points where the bounds leave room for an
//     integer. If it has a point, so has the system.
//   - If only the real shadow has points, a point of the system lies close to a
//     lower bound of the column.
//
// Unlike the algorithm of MLIR's Presburger library, this one can be stopped.
// That matters because even a system of few columns may take minutes.
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/IntegerPoints.h"

#include "mlir/Analysis/Presburger/Simplex.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir::presburger;
using namespace mlafix;

namespace {
using Rows = std::vector<SparseRow>;

/// The lower and upper bounds of one column.
struct Bounds {
  std::vector<const SparseRow *> lower, upper;
  int64_t mostLower = 0, mostUpper = 0; ///< largest |coefficient| of each

  bool isExact() const { return mostLower == 1 || mostUpper == 1; }
  int64_t countPairs() const { return int64_t(lower.size() * upper.size()); }
};

class PointSearch {
public:
  explicit PointSearch(Work &work) : work(work) {}
  std::optional<bool> search(Rows rows, unsigned depth = 0);

private:
  std::optional<bool> split(const Rows &rows, unsigned depth);
  std::optional<bool> searchNearBounds(const Rows &rows, unsigned column,
                                       const Bounds &bounds, unsigned depth);
  std::optional<bool> askPresburger(llvm::ArrayRef<SparseRow> rows);
  /// Looks for an integer point near rational points, in a search tree of at
  /// most `nodes` nodes. Returns false if there surely is no point, and nullopt
  /// if the search finds none although there may be one.
  std::optional<bool> dive(Rows rows, unsigned &nodes);

  Work &work;
  static constexpr unsigned kMaxDepth = 40, kDives = 256;
  static constexpr size_t kMaxRows = 160;
};
} // namespace

IntegerPolyhedron mlafix::getPolyhedron(llvm::ArrayRef<SparseRow> rows,
                                        unsigned numDims, unsigned numColumns) {
  IntegerPolyhedron set(
      PresburgerSpace::getSetSpace(numDims, 0, numColumns - numDims));
  llvm::SmallVector<llvm::DynamicAPInt> dense;
  for (const SparseRow &row : rows) {
    dense.assign(numColumns + 1, llvm::DynamicAPInt(0));
    dense.back() = llvm::DynamicAPInt(row.constant); // operator= takes an int
    for (auto [column, coefficient] : row.terms)
      dense[column] += coefficient;
    if (row.isEquality)
      set.addEquality(dense);
    else
      set.addInequality(dense);
  }
  return set;
}

/// Returns the polyhedron of `rows` in only those columns that the rows use.
/// Sets `columns` to these columns.
static IntegerPolyhedron
getPolyhedron(Rows rows, llvm::SmallVectorImpl<unsigned> &columns) {
  llvm::SmallDenseMap<unsigned, unsigned> numbers;
  for (SparseRow &row : rows)
    for (auto &[column, coefficient] : row.terms) {
      auto [it, isNew] = numbers.try_emplace(column, columns.size());
      if (isNew)
        columns.push_back(column);
      column = it->second;
    }
  return mlafix::getPolyhedron(rows, columns.size(), columns.size());
}

/// Let x be the column with the smallest coefficient in `equality`. Replaces x
/// in all rows by a new column minus multiples of the other columns. The other
/// coefficients of the equality then become remainders modulo the smallest one.
/// The new column takes x's number. Returns false on overflow.
static bool reduceEquality(Rows &rows, const SparseRow &equality) {
  auto smallest =
      *llvm::min_element(equality.terms, [](const auto &x, const auto &y) {
        return std::abs(x.second) < std::abs(y.second);
      });
  llvm::SmallVector<std::pair<unsigned, int64_t>, 6> factors;
  for (auto [column, coefficient] : equality.terms) {
    if (column == smallest.first)
      continue;
    int64_t factor = coefficient / smallest.second,
            rest = coefficient % smallest.second;
    if (std::abs(rest) > std::abs(smallest.second) / 2)
      factor += (rest < 0) == (smallest.second < 0) ? 1 : -1;
    if (factor)
      factors.push_back({column, factor});
  }
  for (SparseRow &row : rows) {
    int64_t times = row.getCoefficient(smallest.first);
    if (times)
      for (auto [column, factor] : factors) {
        int64_t product;
        if (llvm::MulOverflow(times, factor, product) ||
            product == std::numeric_limits<int64_t>::min())
          return false;
        row.terms.push_back({column, -product});
      }
  }
  return true;
}

/// Picks a column whose value at a rational point is not an integer. Fixes the
/// column at each of the two neighbouring integers in turn.
std::optional<bool> PointSearch::dive(Rows rows, unsigned &nodes) {
  Elimination left(rows);
  if (left.isEmpty())
    return false;
  if (left.getRows().empty())
    return true;
  work.spend(left.getSteps() / 4);
  llvm::SmallVector<unsigned> columns;
  Simplex simplex(getPolyhedron(left.getRows().vec(), columns));
  if (nodes == 0 || !work.spend(4 * left.getRows().size() * columns.size()))
    return std::nullopt;
  --nodes;
  if (simplex.isEmpty())
    return false;
  auto sample = simplex.getRationalSample();
  if (!sample)
    return std::nullopt;
  for (auto [column, value] : llvm::zip(columns, *sample)) {
    if (value.num % value.den == 0)
      continue;
    llvm::DynamicAPInt low = floor(value);
    if (abs(low) > llvm::DynamicAPInt(int64_t(1) << 60))
      return std::nullopt;
    for (int64_t number : {int64_t(low), int64_t(low) + 1}) {
      Rows one = left.getRows().vec();
      one.push_back({{{{column, 1}}, -number}, /*isEquality=*/true});
      if (dive(std::move(one), nodes) == true)
        return true;
    }
    return std::nullopt;
  }
  return true;
}

/// Asks MLIR's Presburger library, whose numbers do not overflow. Returns
/// nullopt for all but small systems, because the library cannot be stopped.
std::optional<bool> PointSearch::askPresburger(llvm::ArrayRef<SparseRow> rows) {
  llvm::SmallVector<unsigned> columns;
  IntegerPolyhedron set = getPolyhedron(rows.vec(), columns);
  if (set.getNumVars() > 2 || rows.size() > 8 || !work.spend(100))
    return std::nullopt;
  return !set.isIntegerEmpty();
}

std::optional<bool> PointSearch::search(Rows rows, unsigned depth) {
  for (unsigned round = 0; round < 64; ++round) {
    if (rows.size() > kMaxRows || !work.spend(2 * rows.size() + 1))
      return std::nullopt;
    Elimination left(rows);
    work.spend(left.getSteps() / 4);
    if (left.isEmpty() || left.getRows().empty())
      return !left.isEmpty();
    rows = left.getRows();
    auto equality = llvm::find_if(
        rows, [](const SparseRow &row) { return row.isEquality; });
    if (equality == rows.end())
      return split(rows, depth);
    // Elimination leaves an equality of one column only if a number overflows.
    if (equality->terms.size() < 2 ||
        !reduceEquality(rows, SparseRow(*equality)))
      return askPresburger(left.getRows());
  }
  return std::nullopt;
}

/// Eliminates `column` by combining each lower bound with each upper bound.
/// With `isDark` (the dark shadow of the Omega test), keeps only points for
/// which an integer surely lies between the bounds.
static std::optional<Rows> project(const Rows &rows, unsigned column,
                                   const Bounds &bounds, bool isDark) {
  Rows result;
  for (const SparseRow &row : rows)
    if (!row.getCoefficient(column))
      result.push_back(row);
  for (const SparseRow *low : bounds.lower)
    for (const SparseRow *high : bounds.upper) {
      int64_t a = low->getCoefficient(column),
              b = -high->getCoefficient(column), room;
      if (llvm::MulOverflow(a - 1, b - 1, room))
        return std::nullopt;
      std::optional<SparseRow> sum = combineRows(*low, b, *high, a);
      if (!sum ||
          (isDark && llvm::SubOverflow(sum->constant, room, sum->constant)))
        return std::nullopt;
      result.push_back(std::move(*sum));
    }
  return result;
}

/// Searches the points outside of the dark shadow. There, `column` is close to
/// one of its lower bounds.
std::optional<bool> PointSearch::searchNearBounds(const Rows &rows,
                                                  unsigned column,
                                                  const Bounds &bounds,
                                                  unsigned depth) {
  bool isUnknown = false;
  for (const SparseRow *low : bounds.lower) {
    int64_t a = low->getCoefficient(column), b = bounds.mostUpper, product;
    if (llvm::MulOverflow(a, b, product))
      return std::nullopt;
    int64_t most = llvm::divideFloorSigned(product - a - b, b);
    SparseRow near = *low;
    near.isEquality = true;
    for (int64_t distance = 0; distance <= most; ++distance) {
      Rows one = rows;
      one.push_back(near);
      std::optional<bool> found = search(std::move(one), depth + 1);
      if (found == true)
        return true;
      isUnknown |= !found;
      if (work.getLeft() == 0)
        return std::nullopt;
      if (llvm::SubOverflow(near.constant, int64_t(1), near.constant))
        return std::nullopt;
    }
  }
  return isUnknown ? std::nullopt : std::optional(false);
}

std::optional<bool> PointSearch::split(const Rows &rows, unsigned depth) {
  if (depth > kMaxDepth)
    return std::nullopt;
  std::map<unsigned, Bounds> columns;
  for (const SparseRow &row : rows)
    for (auto [column, coefficient] : row.terms) {
      Bounds &bounds = columns[column];
      int64_t &most = coefficient > 0 ? bounds.mostLower : bounds.mostUpper;
      most = std::max(most, std::abs(coefficient));
      (coefficient > 0 ? bounds.lower : bounds.upper).push_back(&row);
    }
  // Prefer columns that are eliminated exactly, then columns with small
  // coefficients.
  auto cost = [](const Bounds &bounds) {
    int64_t factor =
        bounds.isExact() ? 0 : std::min(bounds.mostLower, bounds.mostUpper);
    return std::pair(factor,
                     bounds.countPairs() -
                         int64_t(bounds.lower.size() + bounds.upper.size()));
  };
  auto best = llvm::min_element(columns, [&](const auto &x, const auto &y) {
    return cost(x.second) < cost(y.second);
  });
  auto &[column, bounds] = *best;
  if (!bounds.isExact()) {
    unsigned nodes = depth ? 1 : kDives;
    if (std::optional<bool> near = dive(rows, nodes))
      return near;
  }
  std::optional<Rows> real = project(rows, column, bounds, /*isDark=*/false);
  std::optional<bool> found =
      real ? search(std::move(*real), depth + 1) : std::nullopt;
  if (found == false || bounds.isExact())
    return found;
  std::optional<Rows> dark = project(rows, column, bounds, /*isDark=*/true);
  if (dark && search(std::move(*dark), depth + 1) == true)
    return true;
  return searchNearBounds(rows, column, bounds, depth);
}

std::optional<bool> mlafix::hasPoint(llvm::ArrayRef<SparseRow> rows,
                                     Work &work) {
  return PointSearch(work).search(rows.vec());
}

/// Returns the least possible value >= 0 of `column`. If there is none, returns
/// the greatest negative one. Returns nullopt if the budget runs out.
static std::optional<int64_t> findValue(Rows &rows, unsigned column,
                                        Work &work) {
  for (int64_t sign : {1, -1}) {
    // True if a solution is known for which sign * column is in [least, most].
    auto isWithin = [&](int64_t least, int64_t most) {
      Rows one = rows;
      one.push_back({{{{column, sign}}, -least}});
      one.push_back({{{{column, -sign}}, most}});
      return hasPoint(one, work) == true;
    };
    constexpr int64_t kMost = int64_t(1) << 62;
    int64_t most = 1;
    while (most < kMost && !isWithin(0, most) && work.getLeft() > 0)
      most *= 8;
    if (work.getLeft() == 0)
      return std::nullopt;
    if (most >= kMost)
      continue;
    int64_t least = 0;
    while (least < most) {
      int64_t middle = least + (most - least) / 2;
      if (isWithin(least, middle))
        most = middle;
      else
        least = middle + 1;
    }
    return sign * least;
  }
  return std::nullopt;
}

std::optional<llvm::SmallVector<int64_t>>
mlafix::findSmallPoint(Rows rows, unsigned count, Work &work) {
  llvm::SmallVector<int64_t> point;
  for (unsigned column = 0; column < count; ++column) {
    std::optional<int64_t> value = findValue(rows, column, work);
    if (!value)
      return std::nullopt;
    point.push_back(*value);
    rows.push_back({{{{column, 1}}, -*value}, /*isEquality=*/true});
  }
  return point;
}
