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

/// The classes that a float may be of. Finite numbers stay finite in sums,
/// products and quotients, and nonzero in the latter two: overflow and
/// underflow are not what this is about. An exponential may underflow.
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

  /// True if there is a class, and all of them are among `classes`.
  bool isWithin(unsigned classes) const { return bits && !(bits & ~classes); }
  bool isNaN() const { return bits == NaN; }
  bool operator==(FloatClass other) const { return bits == other.bits; }
};

/// Which of a < b, a == b, a > b and "one is NaN" may hold.
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
/// Those of y and x, where `relation` has those of x and y.
unsigned swapRelation(unsigned relation);
/// The relations of which one must hold.
unsigned relationsOf(mlir::arith::CmpFPredicate predicate);

/// The classes of the result of an operation on floats of these classes: those
/// besides NaN if there are any, NaN where nothing else is possible. All finite
/// numbers for an operation that is not known.
FloatClass apply(mlir::Operation *op, llvm::ArrayRef<FloatClass> operands);

/// Of a - b: the above, if no more than `relation` may hold.
FloatClass subtract(FloatClass a, FloatClass b, unsigned relation);

/// "-inf", "0", "inf"; "x" for other classes or several.
llvm::StringRef spelling(FloatClass value);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_FLOATCLASS_H
