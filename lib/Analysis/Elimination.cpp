//===- Elimination.cpp - eliminates columns of a constraint set -----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/IntegerPoints.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <limits>
#include <map>
#include <numeric>

using namespace mlafix;

Form &Form::add(const Form &other, int64_t factor) {
  constant += factor * other.constant;
  for (auto [column, coefficient] : other.terms) {
    auto *it = llvm::find_if(
        terms, [c = column](const auto &term) { return term.first == c; });
    if (it == terms.end())
      terms.push_back({column, factor * coefficient});
    else
      it->second += factor * coefficient;
  }
  return *this;
}

int64_t Form::getCoefficient(unsigned column) const {
  for (auto [other, coefficient] : terms)
    if (other == column)
      return coefficient;
  return 0;
}

/// Returns the greatest common divisor of the coefficients; 0 if there are
/// none.
static int64_t getDivisor(const SparseRow &row) {
  int64_t divisor = 0;
  for (auto [column, coefficient] : row.terms)
    divisor = std::gcd(divisor, coefficient);
  return divisor;
}

/// Sorts the terms, adds up those of the same column, and divides the row by
/// the common divisor of its coefficients. The constant is rounded down:
/// 2 x >= 1 becomes x >= 1, which is the same over the integers. Returns false
/// if a number overflows.
static bool normalize(SparseRow &row) {
  llvm::sort(row.terms);
  llvm::SmallVector<std::pair<unsigned, int64_t>, 6> terms;
  for (auto [column, coefficient] : row.terms) {
    if (terms.empty() || terms.back().first != column)
      terms.push_back({column, coefficient});
    else if (llvm::AddOverflow(terms.back().second, coefficient,
                               terms.back().second))
      return false;
  }
  llvm::erase_if(terms, [](const auto &term) { return term.second == 0; });
  row.terms = std::move(terms);
  if (llvm::any_of(row.terms, [](const auto &term) {
        return term.second == std::numeric_limits<int64_t>::min();
      }))
    return false;
  int64_t divisor = getDivisor(row);
  if (divisor < 2 || (row.isEquality && row.constant % divisor != 0))
    return true;
  for (auto &[column, coefficient] : row.terms)
    coefficient /= divisor;
  row.constant = llvm::divideFloorSigned(row.constant, divisor);
  return true;
}

/// True if the normalized row alone has no solution.
static bool isImpossible(const SparseRow &row) {
  if (row.terms.empty())
    return row.isEquality ? row.constant != 0 : row.constant < 0;
  return row.isEquality && row.constant % getDivisor(row) != 0;
}

std::optional<SparseRow> mlafix::combineRows(const SparseRow &x, int64_t a,
                                             const SparseRow &y, int64_t b) {
  SparseRow sum;
  sum.isEquality = x.isEquality && y.isEquality;
  int64_t constant;
  if (llvm::MulOverflow(x.constant, a, sum.constant) ||
      llvm::MulOverflow(y.constant, b, constant) ||
      llvm::AddOverflow(sum.constant, constant, sum.constant))
    return std::nullopt;
  for (auto [row, factor] : {std::pair(&x, a), std::pair(&y, b)})
    for (auto [column, coefficient] : row->terms) {
      int64_t product;
      if (llvm::MulOverflow(coefficient, factor, product))
        return std::nullopt;
      sum.terms.push_back({column, product});
    }
  return sum;
}

Elimination::Elimination(llvm::ArrayRef<SparseRow> given) {
  for (const SparseRow &row : given) {
    SparseRow normal = row;
    if (!normalize(normal)) {
      rows.assign(given.begin(), given.end());
      return;
    }
    add(std::move(normal));
    if (isContradiction)
      return;
  }
  while (!isContradiction && (solveEquality() || dropColumn())) {
  }
}

/// Adds a row with sorted terms. If another row bounds the same form from the
/// same side, keeps only the tighter one.
void Elimination::add(SparseRow row) {
  steps += 4 + rows.size();
  isContradiction |= isImpossible(row);
  if (isContradiction || row.terms.empty())
    return;
  auto isOpposite = [&](const SparseRow &old) {
    return llvm::equal(old.terms, row.terms, [](const auto &x, const auto &y) {
      return x.first == y.first && x.second == -y.second;
    });
  };
  for (SparseRow &old : rows) {
    bool isSame = old.terms == row.terms;
    if (!isSame && !isOpposite(old))
      continue;
    // If both rows bound the form from the same side, `room` says by how much
    // the new bound is looser than the old one. Otherwise, `room` is the
    // distance between the lower and the upper bound.
    __int128 room = isSame ? __int128(row.constant) - old.constant
                           : __int128(row.constant) + old.constant;
    if (old.isEquality || row.isEquality) {
      if (old.isEquality && row.isEquality)
        isContradiction = room != 0;
      else
        isContradiction = (isSame && row.isEquality ? -room : room) < 0;
      if (!old.isEquality)
        old = std::move(row);
      return;
    }
    if (isSame) {
      old.constant = std::min(old.constant, row.constant);
      return;
    }
    if (room <= 0) {
      isContradiction = room < 0;
      old.isEquality = true;
      return;
    }
  }
  rows.push_back(std::move(row));
}

/// Solves an equality for a column with coefficient 1 or -1, and substitutes
/// the solution into all other rows. Returns false if there is no such
/// equality.
bool Elimination::solveEquality() {
  for (const SparseRow &equality : rows) {
    if (!equality.isEquality)
      continue;
    for (const auto &term : equality.terms) {
      const unsigned column = term.first;
      const int64_t coefficient = term.second;
      if (std::abs(coefficient) != 1)
        continue;
      std::vector<SparseRow> solved;
      bool fits = llvm::all_of(rows, [&](const SparseRow &row) {
        int64_t factor = row.getCoefficient(column);
        if (factor == 0 || &row == &equality)
          return true;
        std::optional<SparseRow> sum =
            combineRows(row, 1, equality, -coefficient * factor);
        if (!sum || !normalize(*sum))
          return false;
        solved.push_back(std::move(*sum));
        return true;
      });
      if (!fits)
        continue;
      replace(column, std::move(solved));
      return true;
    }
  }
  return false;
}

/// Removes the rows that use `column`, and adds `others`.
void Elimination::replace(unsigned column, std::vector<SparseRow> others) {
  llvm::erase_if(rows, [&](const SparseRow &row) {
    return row.getCoefficient(column) != 0;
  });
  for (SparseRow &row : others)
    add(std::move(row));
}

/// Eliminates one column by combining its lower with its upper bounds. Takes a
/// column for which this adds no rows and is exact over the integers: all its
/// lower bounds or all its upper bounds have coefficient 1 or -1, or one side
/// has no bounds. Returns false if there is no such column.
bool Elimination::dropColumn() {
  steps += 8 * rows.size();
  struct Uses {
    unsigned lower = 0, upper = 0;
    bool isUnitLower = true, isUnitUpper = true, isSolvable = true;
  };
  std::map<unsigned, Uses> columns;
  for (const SparseRow &row : rows)
    for (auto [column, coefficient] : row.terms) {
      Uses &uses = columns[column];
      uses.isSolvable &= !row.isEquality;
      (coefficient > 0 ? uses.lower : uses.upper) += 1;
      (coefficient > 0 ? uses.isUnitLower : uses.isUnitUpper) &=
          std::abs(coefficient) == 1;
    }
  for (const auto &[column, uses] : columns)
    if (uses.isSolvable &&
        (uses.isUnitLower || uses.isUnitUpper || !uses.lower || !uses.upper) &&
        uses.lower * uses.upper <= uses.lower + uses.upper &&
        combineBounds(column))
      return true;
  return false;
}

bool Elimination::combineBounds(unsigned column) {
  std::vector<SparseRow> others;
  for (const SparseRow &low : rows) {
    int64_t a = low.getCoefficient(column);
    if (a <= 0)
      continue;
    for (const SparseRow &high : rows) {
      int64_t b = high.getCoefficient(column);
      if (b >= 0)
        continue;
      std::optional<SparseRow> sum = combineRows(low, -b, high, a);
      if (!sum || !normalize(*sum))
        return false;
      others.push_back(std::move(*sum));
    }
  }
  replace(column, std::move(others));
  return true;
}
