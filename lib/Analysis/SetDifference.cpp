//===- SetDifference.cpp - subtracts many sets from one -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Subtracts many sets from one set. Subtracting n sets one after the other may
// leave 2^n pieces. But the sets of unrolled stores differ in the value of a
// linear form: an index, or the remainder of a sum of indices. So this file
// first cuts the set at these values. From the points with one value, it
// subtracts only the sets with that value, so each set is subtracted once.
//
// MLIR 22 can subtract sets, too, but its subtraction is not used. Its result
// contained points outside of the difference, because an elimination had
// loosened a bound.
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/LinearSystem.h"

#include "llvm/Support/MathExtras.h"

#include <map>
#include <numeric>
#include <set>
#include <tuple>

using namespace mlir;
using namespace mlir::presburger;
using namespace mlafix;

namespace {
/// The quantity at whose values sets are cut: a linear form of the dims,
/// without a constant. If `modulus` is not 0, the quantity is the remainder of
/// this form by `modulus`.
struct Key {
  /// The first coefficient is positive.
  std::vector<std::pair<unsigned, int64_t>> terms;
  int64_t modulus = 0;

  bool operator<(const Key &other) const {
    return std::tie(terms, modulus) < std::tie(other.terms, other.modulus);
  }
};

/// A set of points in the first `numDims` columns, the dims. A point belongs to
/// the set if the other columns have values with which all rows hold.
struct Piece {
  std::vector<SparseRow> rows;
  unsigned numColumns;
};

/// A set to subtract. All of its columns but the dims are quotients.
struct Subtrahend {
  Piece piece;
  std::vector<SparseRow> definitions; ///< rows that define the quotients
  /// The keys that have one value in the whole set, with that value.
  std::map<Key, int64_t> values;
};
using Subtrahends = std::vector<const Subtrahend *>;

class Difference {
public:
  Difference(unsigned numDims, Work &work) : numDims(numDims), work(work) {}

  /// Adds `piece` minus `others` to the result. Returns false if the budget
  /// runs out.
  bool add(const Piece &piece, const Subtrahends &others);
  PresburgerSet getResult() const;

private:
  bool split(Piece piece, const Key &key, const Subtrahends &others);
  bool subtract(const Piece &piece, llvm::ArrayRef<const Subtrahend *> others);
  bool hasNoPoint(const Piece &piece) {
    return hasPoint(piece.rows, work) == false;
  }

  unsigned numDims;
  Work &work;
  std::vector<Piece> left;
};
} // namespace

/// Returns the number in (-modulus / 2, modulus / 2] that is congruent to
/// `number` modulo `modulus`.
static int64_t reduce(int64_t number, int64_t modulus) {
  int64_t rest = llvm::mod(number, modulus);
  return rest > modulus / 2 ? rest - modulus : rest;
}

/// If `row` is an equality that fixes the value of a key, returns this key and
/// its value. Otherwise returns nullopt.
static std::optional<std::pair<Key, int64_t>> readKey(const SparseRow &row,
                                                      unsigned numDims) {
  constexpr int64_t kMost = int64_t(1) << 62;
  Key key;
  for (auto [column, coefficient] : row.terms) {
    if (std::abs(coefficient) > kMost)
      return std::nullopt;
    if (column >= numDims)
      key.modulus = std::gcd(key.modulus, coefficient);
  }
  if (!row.isEquality || key.modulus == 1 || std::abs(row.constant) > kMost)
    return std::nullopt;
  int64_t divisor = key.modulus, sign = 0;
  auto get = [&](int64_t number) {
    return key.modulus ? reduce(number, key.modulus) : number;
  };
  for (auto [column, coefficient] : row.terms) {
    int64_t own = column < numDims ? get(coefficient) : 0;
    if (!sign)
      sign = own < 0 ? -1 : own > 0;
    own = own ? get(own * sign) : 0;
    divisor = std::gcd(divisor, own);
    if (own)
      key.terms.push_back({column, own});
  }
  if (key.terms.empty() || row.constant % divisor)
    return std::nullopt;
  for (auto &[column, coefficient] : key.terms)
    coefficient /= divisor;
  key.modulus /= divisor;
  int64_t value = -sign * (row.constant / divisor);
  return std::pair(key, key.modulus ? llvm::mod(value, key.modulus) : value);
}

/// Adds a row. Keeps only the strictest of inequalities with the same form.
static void addRow(std::vector<SparseRow> &rows, const SparseRow &row) {
  for (SparseRow &other : rows)
    if (other.terms == row.terms && other.isEquality == row.isEquality &&
        (!row.isEquality || other.constant == row.constant)) {
      other.constant = std::min(other.constant, row.constant);
      return;
    }
  rows.push_back(row);
}

/// Adds the rows that make `column` the quotient of `dividend` by `divisor`:
/// 0 <= dividend - divisor * column < divisor.
static void addDivision(std::vector<SparseRow> &rows, const Form &dividend,
                        unsigned column, int64_t divisor) {
  Form rest = dividend - Form{{{column, divisor}}};
  rows.push_back({rest});
  rows.push_back({-rest + (divisor - 1)});
}

/// Converts a set to subtract. Returns nullopt if a number overflows 64 bits,
/// or if a local is not a quotient.
static std::optional<Subtrahend> readSubtrahend(const IntegerRelation &set) {
  std::optional<std::vector<SparseRow>> rows = getSparseRows(set);
  DivisionRepr quotients = set.getLocalReprs();
  if (!rows || !quotients.hasAllReprs())
    return std::nullopt;
  Subtrahend result = {{std::move(*rows), set.getNumVars()}, {}, {}};
  for (unsigned i = 0; i < quotients.getNumDivs(); ++i) {
    IntegerRelation dividend(set.getSpace());
    dividend.addInequality(quotients.getDividend(i));
    std::optional<std::vector<SparseRow>> row = getSparseRows(dividend);
    if (!row || quotients.getDenom(i) > std::numeric_limits<int>::max())
      return std::nullopt;
    addDivision(result.definitions, row->front(), set.getNumDimVars() + i,
                int64_t(quotients.getDenom(i)));
  }
  for (const SparseRow &row : result.piece.rows)
    if (auto found = readKey(row, set.getNumDimVars()))
      result.values.insert(std::move(*found));
  return result;
}

/// Among the keys with different values in at least two sets, returns the one
/// that most sets have. Returns nullopt if there is none.
static std::optional<Key> chooseKey(const Subtrahends &sets) {
  std::map<Key, std::pair<size_t, std::set<int64_t>>> uses;
  for (const Subtrahend *set : sets)
    for (const auto &[key, value] : set->values) {
      auto &[count, values] = uses[key];
      ++count;
      values.insert(value);
    }
  size_t most = 0;
  std::optional<Key> best;
  for (const auto &[key, use] : uses)
    if (use.second.size() > 1 && use.first > most) {
      most = use.first;
      best = key;
    }
  return best;
}

/// Splits a piece at the values that the key has in `others`: one part per
/// value, and one per range between two values. Adds each part to the result,
/// minus the sets that may overlap it.
bool Difference::split(Piece piece, const Key &key, const Subtrahends &others) {
  std::map<int64_t, Subtrahends> slices;
  Subtrahends anywhere;
  for (const Subtrahend *one : others) {
    auto it = one->values.find(key);
    (it == one->values.end() ? anywhere : slices[it->second]).push_back(one);
  }
  Form form;
  form.terms.assign(key.terms.begin(), key.terms.end());
  if (key.modulus) {
    addDivision(piece.rows, form, piece.numColumns, key.modulus);
    form.terms.push_back({piece.numColumns++, -key.modulus});
  }
  auto addBetween = [&](std::optional<int64_t> least,
                        std::optional<int64_t> most, const Subtrahends &sets) {
    Piece part = piece;
    if (least)
      part.rows.push_back({form - *least});
    if (most)
      part.rows.push_back({-form + *most});
    return hasNoPoint(part) || add(part, sets);
  };
  std::optional<int64_t> next;
  for (auto &[value, own] : slices) {
    if (next != value && !addBetween(next, value - 1, anywhere))
      return false;
    llvm::append_range(own, anywhere);
    if (!addBetween(value, value, own))
      return false;
    next = value + 1;
  }
  return addBetween(next, std::nullopt, anywhere);
}

bool Difference::add(const Piece &piece, const Subtrahends &others) {
  if (!work.spend(others.size() + 1))
    return false;
  std::optional<Key> key = chooseKey(others);
  return key ? split(piece, *key, others) : subtract(piece, others);
}

/// Subtracts the sets one after the other, depth first. This quickly finds a
/// point that is in none of them.
bool Difference::subtract(const Piece &piece,
                          llvm::ArrayRef<const Subtrahend *> others) {
  if (left.size() >= Budget::pieces)
    return true; // these pieces suffice for an answer
  if (others.empty()) {
    left.push_back(piece);
    return true;
  }
  if (!work.spend(piece.rows.size()))
    return false;
  const Subtrahend &other = *others.front();
  Piece inside = piece;
  inside.numColumns += other.piece.numColumns - numDims;
  auto rename = [&](SparseRow row) {
    for (auto &[column, coefficient] : row.terms)
      if (column >= numDims)
        column += piece.numColumns - numDims;
    return row;
  };
  for (const SparseRow &row : other.definitions)
    addRow(inside.rows, rename(row));
  Piece common = inside;
  for (const SparseRow &row : other.piece.rows)
    addRow(common.rows, rename(row));
  if (hasNoPoint(common))
    return subtract(piece, others.drop_front());
  // For every point outside of the set, there is a first constraint that it
  // violates. So there is one part per constraint: the points that violate this
  // constraint and satisfy those before.
  for (const SparseRow &given : other.piece.rows) {
    SparseRow row = rename(given);
    for (int64_t sign : {-1, 1}) {
      if (sign > 0 && !row.isEquality)
        continue;
      Piece outside = inside;
      addRow(outside.rows, {sign * row - 1});
      if (!hasNoPoint(outside) && !subtract(outside, others.drop_front()))
        return false;
    }
    addRow(inside.rows, row);
  }
  return true;
}

PresburgerSet Difference::getResult() const {
  PresburgerSet result =
      PresburgerSet::getEmpty(PresburgerSpace::getSetSpace(numDims));
  for (const Piece &piece : left)
    result.unionInPlace(getPolyhedron(piece.rows, numDims, piece.numColumns));
  return result;
}

std::optional<PresburgerSet> mlafix::subtract(const PresburgerSet &set,
                                              const PresburgerSet &other,
                                              Work &work) {
  std::vector<Subtrahend> read;
  for (const IntegerRelation &disjunct : other.getAllDisjuncts())
    if (std::optional<Subtrahend> one = readSubtrahend(disjunct))
      read.push_back(std::move(*one));
  Subtrahends others;
  for (const Subtrahend &one : read)
    others.push_back(&one);
  Difference difference(set.getSpace().getNumDimVars(), work);
  for (const IntegerRelation &disjunct : set.getAllDisjuncts()) {
    std::optional<std::vector<SparseRow>> rows = getSparseRows(disjunct);
    if (!rows || !difference.add({*rows, disjunct.getNumVars()}, others))
      return std::nullopt;
  }
  return difference.getResult();
}
