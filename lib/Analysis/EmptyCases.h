//===- EmptyCases.h - a row's program when rows are empty -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Finds NaNs that arise from empty rows, whose lse is infinite. Runs the row
// program on classes of floats, once for each case. A case fixes the class of
// each lse, and the outcome of each comparison that the classes leave open. A
// dataflow analysis with one class per value is too weak: `lse - max` is NaN
// only for certain pairs of classes, and a later select may discard it. Values
// that no store depends on are not computed.
//
// A loop runs until its carried values repeat those of an earlier iteration:
// each value has the class that it had then, and the values that were equal
// then are equal again.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_EMPTYCASES_H
#define MLAFIX_ANALYSIS_EMPTYCASES_H

#include "lib/Analysis/FloatClass.h"
#include "lib/Analysis/LseValues.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <set>
#include <string>
#include <vector>

namespace mlafix {

/// An op that yields NaN although no operand is NaN.
struct MadeNaN {
  mlir::Operation *op;
  /// The expression that is NaN: "-inf - -inf".
  std::string operation;
  /// The lses of the empty rows: "prefix_lse = -inf, suffix_lse = -inf".
  std::string where;

  /// Returns the message for the author of the kernel.
  std::string message() const;
};

/// Returns the ops that make a NaN because a row is empty, if a store may write
/// this NaN. The list is incomplete if there are too many cases.
std::vector<MadeNaN> findMadeNaNs(KernelOp kernel);

class EmptyCases {
public:
  EmptyCases(const LseValues &values, KernelOp kernel);

  std::vector<MadeNaN> run();

private:
  /// The value of a float, state or boolean in the current case. The class of a
  /// state is the class of its lse, or NaN if its row is NaN.
  struct Number {
    unsigned symbol = 0; ///< equal symbols mean equal values
    LseSet lses = 0;     ///< the lses that the value depends on
  };
  struct Symbol {
    FloatClass cls;
    /// The ops that made the value, if it is NaN, as a set of positions in
    /// `found`.
    std::uint64_t origins = 0;
    /// If the value is a loaded payload, or a product or a function of one, the
    /// load of this payload. Otherwise null.
    LoadOp payload = nullptr;
  };
  struct Decision {
    bool holds = false;
    LseSet lses = 0;
  };
  /// Cached results of one value. They are valid while the epochs match the
  /// current case and iteration.
  struct Memo {
    unsigned numberEpoch = 0, decisionEpoch = 0;
    Number number;
    Decision decision;
  };

  // Cases
  unsigned choose(unsigned count);
  bool advance();
  bool enter();
  void runCase();
  void runBlock(mlir::Block &block);
  void runFor(mlir::scf::ForOp loop);
  bool isKnown(mlir::scf::ForOp loop, llvm::ArrayRef<unsigned> start,
               llvm::MutableArrayRef<Number> carried);
  void observe(mlir::Value stored);

  // Values
  unsigned epochOf(mlir::Value value) const;
  void bind(mlir::Value value, Number number);
  Number eval(mlir::Value value);
  Number compute(mlir::Value value);
  Number computeOp(mlir::Operation *op);
  Number computeLoad(LoadOp load);
  Number computeLse(LoadOp load, unsigned lse);
  Number computeSelect(mlir::arith::SelectOp op);
  Number computeExtreme(mlir::Operation *op);
  Number computeState(mlir::Operation *op);
  Number computeReduce(ReduceOp op);
  Number computePart(mlir::Value of);
  Number computeArithmetic(mlir::Operation *op);
  bool isZeroTimesPayload(mlir::Operation *op, llvm::ArrayRef<Number> operands,
                          LoadOp &payload);
  Number makeNaN(mlir::Operation *op, LseSet lses, const llvm::Twine &text);
  Number make(FloatClass cls, LseSet lses);
  Number join(Number a, Number b);
  Symbol &symbol(Number number) { return symbols[number.symbol]; }

  // Conditions
  Decision decide(mlir::Value condition);
  Decision computeDecision(mlir::Value condition);
  Decision compare(mlir::arith::CmpFOp op);
  Decision decideClass(mlir::Value operand, unsigned classes);
  unsigned &factOf(Number a, Number b);
  /// Returns the relations that are still possible between `a` and `b` under
  /// the decisions made so far in this case.
  unsigned relationOf(Number a, Number b);
  /// True if one of the relations in `wanted` holds between `a` and `b`. If
  /// their classes and earlier decisions leave this open, chooses one answer in
  /// this case and the other one in a later case.
  bool holds(Number a, Number b, unsigned wanted);

  std::string describeEmptyRows(LseSet lses);

  const LseValues &values;
  KernelOp kernel;

  struct Choice {
    unsigned chosen, count;
  };
  std::vector<Choice> choices;
  unsigned position = 0;
  bool isOver = false; ///< true if the rest of this case is skipped
  unsigned budget, depth = 0;
  /// An entry for each loop iteration begun so far: the choices made before the
  /// loop, and the values carried into the iteration.
  std::set<std::vector<unsigned>> heads;

  std::vector<Memo> memos;
  /// The current epoch of each loop: a number that is new in each iteration.
  /// Entry 0 belongs to no loop and is new in each case.
  std::vector<unsigned> epochs;
  unsigned lastEpoch = 0;
  std::vector<Symbol> symbols;
  struct Fact {
    unsigned a, b, relation;
  };
  std::vector<Fact> facts;
  std::vector<FloatClass> lseClasses;
  LseSet empty = 0, control = 0;

  struct Found {
    MadeNaN made;
    bool isObserved = false;
  };
  std::vector<Found> found;
};

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_EMPTYCASES_H
