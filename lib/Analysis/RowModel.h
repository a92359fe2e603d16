//===- RowModel.h - a row's integers as linear forms ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The model of a kernel for the proofs: its launch (sizes, scalars, which
// optional arguments are there), its rows (grid indices), their iterations
// (loop indices), and what a row computes of these by linear arithmetic. What
// comes from memory, or is not linear, is an unknown of its row, within the
// range of its type. Arithmetic that may wrap around makes an unknown too.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_ROWMODEL_H
#define MLAFIX_ANALYSIS_ROWMODEL_H

#include "dialect/Mlafix.h"
#include "lib/Analysis/Linear.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"
#include <limits>

#include <string>

namespace mlafix {

/// The ends of an interval of integers; wide enough for a sum of 64-bit ones.
struct Interval {
  __int128 low, high;
  bool contains(Interval other) const {
    return low <= other.low && other.high <= high;
  }
};

/// The values that an integer type has; signless ones count as signed.
Interval getIntegerRange(mlir::Type type);

/// The value of an integer constant of at most 64 bits; a boolean is 0 or 1.
std::optional<int64_t> getInteger(mlir::Value value);

/// The ends of what 64 bits hold.
inline constexpr int64_t kMinI64 = std::numeric_limits<int64_t>::min(),
                         kMaxI64 = std::numeric_limits<int64_t>::max();

/// No dim of a tensor is larger: a launch refuses it (lib/Runtime/Check.cpp).
inline constexpr int64_t kMaxSize = int64_t(1) << 48;

struct Variable {
  enum Kind {
    Size,    ///< of a dim of an argument
    Scalar,  ///< an integer or boolean argument
    Present, ///< 1 where an optional argument is given, else 0
    Grid,    ///< a grid index
    Loop,    ///< a loop index
    Derived, ///< its definition says what it is: a quotient, a minimum, …
    Unknown, ///< whatever the range allows
  };
  Kind kind;
  std::string name;
  /// The value that it is; null for a size.
  mlir::Value value;
  Interval range;
  /// The constraints that hold wherever it has a value.
  Condition definition = Condition::always();
  /// True if it is the same in all rows.
  bool isLaunch = false;
  /// True if it is an unknown or depends on one.
  bool isUncertain = false;
  /// Of a loop: true if it runs over the elements of a slice, or over groups,
  /// within one access: all of them have one condition.
  bool isOfAccess = false;
};

/// A comparison of floats by what it says of their relation, a variable that
/// comparisons of the same two share: 0 where the first is less, 1 where they
/// are equal, 2 where it is greater, 3 where they are unordered.
struct FloatComparison {
  Var relation;
  unsigned outcomes; ///< a Relation: bit r where it holds if the variable is r
};

/// One access of a row's program.
struct RowAccess {
  MemoryAccess access;
  /// As many as `access` has, and those of a part (RowModel::getRank).
  llvm::SmallVector<Linear, 4> indices;
  /// The condition under which the op executes in an iteration of `loops`: its
  /// predicate, the enclosing branches, and the presence of an optional
  /// argument.
  Condition executes;
  /// The condition under which it accesses memory: it executes, and the row has
  /// all elements of its slice. Bounds are proved from `executes` alone.
  Condition condition;
  llvm::SmallVector<Var, 2> loops; // from the outermost
  /// The assumptions that precede it in the row's program, and their text in
  /// the source.
  Condition assumed = Condition::always();
  llvm::SmallVector<llvm::StringRef, 1> promises;
};

class RowModel {
public:
  /// With `followsWraps`, arithmetic that may wrap around makes an unknown that
  /// is the sum where it does not: with cases, which take time.
  explicit RowModel(KernelOp kernel, bool followsWraps = false);

  KernelOp getKernel() const { return kernel; }
  bool isCareful() const { return followsWraps; }
  /// True if there is more to follow.
  bool omitsWraps() const { return hasWraps && !followsWraps; }
  const Variable &operator[](Var var) const { return variables[var]; }
  size_t size() const { return variables.size(); }
  /// The grid's indices that name a row; those of extent 1 and the segment of a
  /// ragged grid do not.
  llvm::ArrayRef<Var> getRowIndices() const { return rowIndices; }
  /// All of the grid's indices.
  llvm::ArrayRef<Var> getGridIndices() const { return gridIndices; }
  llvm::ArrayRef<RowAccess> getAccesses() const { return accesses; }
  /// Where a ragged grid's segment begins and ends.
  std::optional<std::pair<Var, Var>> getSegmentEnds() const {
    return segmentEnds;
  }
  /// The conditions that a launch checks.
  const Condition &getLaunchCheck() const { return launchCheck; }
  /// The argument that holds these.
  llvm::StringRef getSegmentsName();

  /// How many indices name an element: one for each dim, but two, the group and
  /// the member, for a last dim of whose rows the kernel accesses parts.
  unsigned getRank(unsigned argument);
  /// The size of a dim of a tensor that is there; a dim may be one more than
  /// the tensor has, as in `getRank`.
  Linear getSize(unsigned argument, unsigned dim);
  /// 1 where the optional argument is there.
  Var getPresent(unsigned argument);
  Linear getValue(mlir::Value value);
  Condition getCondition(mlir::Value value, bool holds = true);
  /// The condition that a launch gives the argument.
  Condition isGiven(unsigned argument);
  /// The condition that a row has all elements of the slice, if the access is
  /// of one and a launch decides how long rows are.
  Condition hasSlice(const MemoryAccess &access);
  /// Of two floats that are not the same value; none for other booleans.
  std::optional<FloatComparison> getFloatComparison(mlir::Value value);

  Interval getRange(const Linear &linear) const;
  bool isLaunch(const Linear &linear) const;
  bool isUncertain(const Linear &linear) const;
  bool isUncertain(const Condition &condition) const;
  /// The variables that an access depends on, each once: those of its indices,
  /// `also`, its loops, those of its condition, and then those that define
  /// others of these.
  llvm::SmallSetVector<Var, 16>
  getVariables(const RowAccess &access, llvm::ArrayRef<Var> also = {}) const;

private:
  friend class ValueBuilder;

  Var addVariable(Variable variable);
  Var addSize(const llvm::Twine &name, int64_t least, int64_t most);
  /// Of a name, or of a product as arguments have it, "(G K)", of whose factors
  /// nothing is known.
  Var getNamedSize(llvm::StringRef name);
  Var addUnknown(mlir::Value value, Interval range);
  /// An unknown of which `define` says something.
  Var addUnknown(mlir::Value value, Interval range,
                 llvm::function_ref<std::optional<Condition>(Var)> define);
  Linear addOpaque(mlir::Value value);
  Var addDerived(mlir::Value value, Interval range,
                 llvm::function_ref<std::optional<Condition>(Var)> define);
  Condition addOpaqueCondition(mlir::Value value, bool holds);
  /// Of an op's result; none where it is not linear.
  std::optional<Linear> buildResult(mlir::Value value);
  Linear buildArgument(mlir::BlockArgument argument);
  Linear buildLoopIndex(mlir::scf::ForOp loop);
  Linear buildDim(mlir::Value value, unsigned argument, unsigned dim);
  Linear buildLoad(LoadOp load);
  Linear buildElementIndex(mlir::Value index, mlir::Value row);
  Linear buildChoice(mlir::Value value, mlir::Value condition, mlir::Value x,
                     mlir::Value y);
  /// `a` where the condition holds, else `b`.
  Linear chooseLinear(mlir::Value value, mlir::Value condition, const Linear &a,
                      const Linear &b);
  Condition buildCondition(mlir::Value value, bool holds);
  std::optional<Condition> buildComparison(mlir::arith::CmpIOp op, bool holds);
  std::optional<Condition> buildSignTest(mlir::arith::XOrIOp op, bool differ);
  std::optional<Condition> buildComparison(mlir::arith::CmpFOp op, bool holds);
  void addValues();
  void addGrid();
  void addSegments(RaggedForallOp grid);
  void addAccess(const MemoryAccess &access);
  /// Adds the indices of a part of a row, or of a slice of it. A member is a
  /// loop over the groups: one variable for all of a dim, since no condition
  /// depends on it.
  Var getGroupIndex(DimAttr product, unsigned argument);
  /// Likewise for the elements of a slice.
  Var getSliceIndex(RowSlice slice);
  void addPart(RowAccess &row);
  /// Adds what is assumed before the access; sets the launch's check.
  void addAssumptions(RowAccess &access);
  void addLaunchCheck();
  /// Narrows the ranges of scalars to what a condition that the launch checks
  /// leaves of them, so that sums of them are known not to wrap around.
  void narrowScalars(const Condition &check);
  /// The range of a form from those of its terms, each for itself.
  Interval getTermRange(const Linear &linear) const;

  KernelOp kernel;
  bool followsWraps, hasWraps = false;
  std::vector<Variable> variables;
  llvm::SmallVector<Var, 4> gridIndices, rowIndices;
  std::vector<RowAccess> accesses;
  std::optional<std::pair<Var, Var>> segmentEnds;
  Condition launchCheck = Condition::always();
  llvm::SmallVector<AssumeOp> assumptions; // of rows
  llvm::StringMap<Var> namedSizes;
  llvm::DenseMap<std::pair<unsigned, unsigned>, Var> otherSizes;
  llvm::SmallPtrSet<mlir::Attribute, 2> parted; // dims whose rows have parts
  llvm::DenseMap<mlir::Attribute, Var> groupIndices;
  llvm::DenseMap<std::pair<int64_t, int64_t>, Var> sliceIndices;
  llvm::DenseMap<unsigned, Var> presences;
  llvm::DenseMap<mlir::Value, Linear> values;
  /// floor(dividend / divisor): one variable for equal ones.
  struct Quotient {
    Linear dividend;
    int64_t divisor;
    Var var;
  };
  std::vector<Quotient> quotients;
  llvm::DenseMap<mlir::Value, Var> opaqueConditions;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Value>, Var> floatRelations;
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, Condition> conditions;
  llvm::DenseMap<mlir::Value, Var> gridVars;
};

/// True if a location is in a file of MLIR's syntax: messages are in its words,
/// and else in those of kernels in Python.
bool isInMlir(mlir::Location loc);

/// The name of an unknown in messages: "what is read from flags", "a comparison
/// of floats".
std::string describe(const Variable &variable);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_ROWMODEL_H
