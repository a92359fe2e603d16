//===- RowModel.h - a row's integers as linear forms ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The model of a kernel for the proofs: its launch (sizes, scalars, presence of
// optional arguments), its rows (grid indices), their iterations (loop
// indices), and linear arithmetic on these. A value that is loaded, or not
// linear, is an unknown of its row, within the range of its type. A result that
// may overflow is an unknown too.
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

/// A closed interval of integers, wide enough for sums of 64-bit numbers.
struct Interval {
  __int128 low, high;
  bool contains(Interval other) const {
    return low <= other.low && other.high <= high;
  }
};

/// The range of an integer type; signless types count as signed.
Interval getIntegerRange(mlir::Type type);

/// The value of an integer constant of at most 64 bits; a boolean is 0 or 1.
std::optional<int64_t> getInteger(mlir::Value value);

/// The range of 64-bit integers.
inline constexpr int64_t kMinI64 = std::numeric_limits<int64_t>::min(),
                         kMaxI64 = std::numeric_limits<int64_t>::max();

/// The largest dim of a tensor; launches refuse larger ones
/// (lib/Runtime/Check.cpp).
inline constexpr int64_t kMaxSize = int64_t(1) << 48;

struct Variable {
  enum Kind {
    Size,    ///< a dim of an argument
    Scalar,  ///< an integer or boolean argument
    Present, ///< 1 if an optional argument is passed, else 0
    Grid,    ///< a grid index
    Loop,    ///< a loop index
    Derived, ///< has a definition: a quotient, a minimum, …
    Unknown, ///< any value of its range
  };
  Kind kind;
  std::string name;
  /// The value that it stands for; null for a size.
  mlir::Value value;
  Interval range;
  /// Constraints that define it.
  Condition definition = Condition::always();
  /// True if it is the same in all rows.
  bool isLaunch = false;
  /// True if it is an unknown or depends on one.
  bool isUncertain = false;
  /// For loops: true if the loop runs over the elements of a slice, or over
  /// groups, within one access. All these iterations have the same condition.
  bool isOfAccess = false;
};

/// A comparison of two floats. `relation` is a variable shared by all
/// comparisons of the same two: 0 less, 1 equal, 2 greater, 3 unordered.
struct FloatComparison {
  Var relation;
  unsigned outcomes; ///< a set: bit r is set if the comparison holds for
                     ///< relation r
};

/// One access in the program of a row.
struct RowAccess {
  MemoryAccess access;
  /// The indices of `access`, then the indices that a part adds to them (see
  /// RowModel::getRank).
  llvm::SmallVector<Linear, 4> indices;
  /// The condition under which the op executes in an iteration of `loops`: its
  /// predicate, the enclosing branches, and the presence of an optional
  /// argument.
  Condition executes;
  /// The condition under which it touches memory: it executes, and the row
  /// contains the whole slice. Bounds are proved from `executes` alone.
  Condition condition;
  llvm::SmallVector<Var, 2> loops; // outermost first
  /// The assumptions that precede it in the row's program, and their source
  /// text.
  Condition assumed = Condition::always();
  llvm::SmallVector<llvm::StringRef, 1> promises;
};

class RowModel {
public:
  /// With `followsWraps`, integer overflow is modelled exactly, by cases, which
  /// takes time. Without it, a result that may overflow is an unknown that
  /// equals the sum wherever it does not overflow.
  explicit RowModel(KernelOp kernel, bool followsWraps = false);

  KernelOp getKernel() const { return kernel; }
  bool isCareful() const { return followsWraps; }
  /// True if a model with `followsWraps` would be more precise.
  bool omitsWraps() const { return hasWraps && !followsWraps; }
  const Variable &operator[](Var var) const { return variables[var]; }
  size_t size() const { return variables.size(); }
  /// The grid indices that identify a row. Excludes indices of extent 1, and
  /// the segment of a ragged grid.
  llvm::ArrayRef<Var> getRowIndices() const { return rowIndices; }
  /// All grid indices.
  llvm::ArrayRef<Var> getGridIndices() const { return gridIndices; }
  llvm::ArrayRef<RowAccess> getAccesses() const { return accesses; }
  /// The variables of a ragged grid's segment start and end.
  std::optional<std::pair<Var, Var>> getSegmentEnds() const {
    return segmentEnds;
  }
  /// The conditions that a launch checks.
  const Condition &getLaunchCheck() const { return launchCheck; }
  /// The name of the argument that holds the segments.
  llvm::StringRef getSegmentsName();

  /// The number of indices per element: one per dim, or two (group and member)
  /// for a last dim whose rows are accessed in parts.
  unsigned getRank(unsigned argument);
  /// The size of a dim of a tensor that is passed. `dim` counts as in
  /// getRank().
  Linear getSize(unsigned argument, unsigned dim);
  /// The variable that is 1 if the optional argument is passed.
  Var getPresent(unsigned argument);
  Linear getValue(mlir::Value value);
  Condition getCondition(mlir::Value value, bool holds = true);
  /// The condition that the launch passes the argument.
  Condition isGiven(unsigned argument);
  /// The condition that the row contains the whole slice, if its length is
  /// known only at launch.
  Condition hasSlice(const MemoryAccess &access);
  /// The comparison that `value` makes. Returns nullopt unless it compares two
  /// distinct float values.
  std::optional<FloatComparison> getFloatComparison(mlir::Value value);

  Interval getRange(const Linear &linear) const;
  bool isLaunch(const Linear &linear) const;
  bool isUncertain(const Linear &linear) const;
  bool isUncertain(const Condition &condition) const;
  /// The variables that an access depends on, without duplicates: those of its
  /// indices, `also`, its loops and its condition, then those in the
  /// definitions of these.
  llvm::SmallSetVector<Var, 16>
  getVariables(const RowAccess &access, llvm::ArrayRef<Var> also = {}) const;

private:
  friend class ValueBuilder;

  Var addVariable(Variable variable);
  Var addSize(const llvm::Twine &name, int64_t least, int64_t most);
  /// The size for a name, or for a product such as "(G K)" with unknown
  /// factors.
  Var getNamedSize(llvm::StringRef name);
  Var addUnknown(mlir::Value value, Interval range);
  /// An unknown with the definition that `define` returns.
  Var addUnknown(mlir::Value value, Interval range,
                 llvm::function_ref<std::optional<Condition>(Var)> define);
  Linear addOpaque(mlir::Value value);
  Var addDerived(mlir::Value value, Interval range,
                 llvm::function_ref<std::optional<Condition>(Var)> define);
  Condition addOpaqueCondition(mlir::Value value, bool holds);
  /// The result of an op as a linear form; nullopt if it is not linear.
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
  /// The index of a group in a row, a loop variable. All accesses of a dim
  /// share it, since no condition depends on it.
  Var getGroupIndex(DimAttr product, unsigned argument);
  /// The index of an element in a slice: a loop variable that all accesses of
  /// the slice share.
  Var getSliceIndex(RowSlice slice);
  void addPart(RowAccess &row);
  /// Adds the assumptions that precede the access; sets the launch's check.
  void addAssumptions(RowAccess &access);
  void addLaunchCheck();
  /// Narrows the ranges of scalars by a condition that the launch checks, so
  /// that more sums provably do not overflow.
  void narrowScalars(const Condition &check);
  /// The range of a form, from the ranges of its terms independently.
  Interval getTermRange(const Linear &linear) const;

  KernelOp kernel;
  bool followsWraps, hasWraps = false;
  std::vector<Variable> variables;
  llvm::SmallVector<Var, 4> gridIndices, rowIndices;
  std::vector<RowAccess> accesses;
  std::optional<std::pair<Var, Var>> segmentEnds;
  Condition launchCheck = Condition::always();
  llvm::SmallVector<AssumeOp> assumptions; // inside the grid
  llvm::StringMap<Var> namedSizes;
  llvm::DenseMap<std::pair<unsigned, unsigned>, Var> otherSizes;
  llvm::SmallPtrSet<mlir::Attribute, 2> parted; // dims whose rows are accessed
                                                // in parts
  llvm::DenseMap<mlir::Attribute, Var> groupIndices;
  llvm::DenseMap<std::pair<int64_t, int64_t>, Var> sliceIndices;
  llvm::DenseMap<unsigned, Var> presences;
  llvm::DenseMap<mlir::Value, Linear> values;
  /// floor(dividend / divisor). Equal quotients share a variable.
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

/// True if a location is in an MLIR file: messages then use MLIR's words,
/// otherwise those of Python kernels.
bool isInMlir(mlir::Location loc);

/// The name of an unknown in messages: "what is read from flags", "a comparison
/// of floats".
std::string describe(const Variable &variable);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_ROWMODEL_H
