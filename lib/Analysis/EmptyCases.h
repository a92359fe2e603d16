//===- EmptyCases.h - a row's program where rows are empty ------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Runs a row's program on classes of floats, once for each case: what class
// each lse is of, and which way each comparison goes that the classes leave
// open. A dataflow analysis with one class per value would not do: whether
// `lse - max` is NaN depends on two values at once, and whether that matters on
// the select that follows. A value that no store depends on is not computed.
//
// A loop is run until it comes to values that it carried before: their classes,
// and which of them are the same.
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
  /// The expression it computes: "-inf - -inf".
  std::string operation;
  /// The lses of empty rows: "prefix_lse = -inf, suffix_lse = -inf".
  std::string where;

  /// The message to the kernel's author.
  std::string message() const;
};

/// The ops of a kernel that make a NaN which is stored. Incomplete if there are
/// too many cases.
std::vector<MadeNaN> findMadeNaNs(KernelOp kernel);

class EmptyCases {
public:
  EmptyCases(const LseValues &values, KernelOp kernel);

  std::vector<MadeNaN> run();

private:
  /// The value of a float, state or boolean in the current case. The class of a
  /// state is that of its lse, or NaN if its row is NaN.
  struct Number {
    unsigned symbol = 0; ///< equal symbols mean equal values
    LseSet lses = 0;     ///< lses that it depends on
  };
  struct Symbol {
    FloatClass cls;
    std::uint64_t origins = 0; ///< origins of a NaN, as positions in `found`
    LoadOp payload = nullptr;  ///< the load of this row, if the row was loaded
  };
  struct Decision {
    bool holds = false;
    LseSet lses = 0;
  };
  /// Cached results, valid for the case and iteration that the epochs identify.
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
  Number computeExtreme(mlir::Operation *op, bool isMaximum, bool keepsNaN);
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
  /// The relations that may hold between two numbers, given the decisions about
  /// them.
  unsigned relationOf(Number a, Number b);
  /// True if one of the relations in `wanted` holds between two numbers. If
  /// neither their classes nor earlier decisions settle it, the case is split.
  bool holds(Number a, Number b, unsigned wanted);

  std::string describeEmptyRows(LseSet lses);

  const LseValues &values;
  KernelOp kernel;

  struct Choice {
    unsigned chosen, count;
  };
  std::vector<Choice> choices;
  unsigned position = 0;
  bool isOver = false; ///< the rest of this case is already known
  unsigned budget, depth = 0;
  std::set<std::vector<unsigned>> heads; ///< loop entries already seen: choices
                                         ///< and carried values

  std::vector<Memo> memos;
  std::vector<unsigned> epochs; ///< one per loop; 0 belongs to the case
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
