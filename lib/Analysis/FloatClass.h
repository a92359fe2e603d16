//===- FloatClass.h - classes of floats -------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_FLOATCLASS_H
#define MLAFIX_ANALYSIS_FLOATCLASS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/APFloat.h"

#include <cstdint>

namespace mlafix {

/// A set of classes that a float may be in. Operations on it ignore overflow
/// and underflow: sums, products and quotients of finite numbers are finite,
/// and products and quotients of nonzero numbers are nonzero. Only an
/// exponential may underflow to zero.
struct FloatClass {
  enum Bits : std::uint8_t {
    NaN = 1,
    NegInf = 2,
    Neg = 4,
    NegZero = 8,
    Zero = 16,
    Pos = 32,
    Inf = 64,
    Zeros = NegZero | Zero,
    Finite = Neg | Zeros | Pos,
    Infinite = NegInf | Inf,
  };

  std::uint8_t bits = 0;

  FloatClass() = default;
  FloatClass(unsigned bits) : bits(static_cast<std::uint8_t>(bits)) {}
  static FloatClass of(const llvm::APFloat &value);

  /// True if the set is not empty and is a subset of `classes`.
  bool isWithin(unsigned classes) const { return bits && !(bits & ~classes); }
  bool isNaN() const { return bits == NaN; }
  bool operator==(FloatClass other) const { return bits == other.bits; }
};

/// A set of possible relations: a < b, a == b, a > b, or unordered (one is
/// NaN).
struct Relation {
  enum Bits : std::uint8_t {
    Less = 1,
    Equal = 2,
    Greater = 4,
    Unordered = 8,
    Ordered = Less | Equal | Greater,
    All = Ordered | Unordered,
  };
};
unsigned relate(FloatClass a, FloatClass b);
/// Returns the relations of (y, x), given the relations of (x, y).
unsigned swapRelation(unsigned relation);
/// Returns the relations for which `predicate` is true.
unsigned relationsOf(mlir::arith::CmpFPredicate predicate);

/// Returns the possible classes of the result of `op`. NaN is left out unless
/// it is the only class. An unknown operation may yield any finite number.
FloatClass apply(mlir::Operation *op, llvm::ArrayRef<FloatClass> operands);

/// Returns the possible classes of a - b, as apply() does, if only the
/// relations in `relation` are possible between a and b.
FloatClass subtract(FloatClass a, FloatClass b, unsigned relation);

/// Returns "-inf", "0" or "inf" if the set is that one class; "x" otherwise.
llvm::StringRef spelling(FloatClass value);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_FLOATCLASS_H
