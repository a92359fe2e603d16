//===- RowModel.h - a row's integers as linear forms ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Models a kernel for the proofs. Variables stand for the launch (sizes,
// scalars, presence of optional arguments), its rows (grid indices) and their
// iterations (loop indices). Linear forms over these variables describe indices
// and conditions. A loaded or nonlinear value is an unknown of its row, within
// the range of its type. So is a result that may overflow.
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

/// A closed interval of integers. Its ends have 128 bits, so that sums of
/// 64-bit numbers fit.
struct Interval {
  __int128 low, high;
  bool contains(Interval other) const {
    return low <= other.low && other.high <= high;
  }
};

/// Returns the range of an integer type. Signless types count as signed.
Interval getIntegerRange(mlir::Type type);

/// Returns the value of an integer constant of at most 64 bits; a boolean is 0
/// or 1. Returns nullopt for other values.
std::optional<int64_t> getInteger(mlir::Value value);

/// The least and the greatest 64-bit integer.
inline constexpr int64_t kMinI64 = std::numeric_limits<int64_t>::min(),
                         kMaxI64 = std::numeric_limits<int64_t>::max();

/// The largest size of a tensor's dim. A launch with a larger one is refused
/// (lib/Runtime/Check.cpp).
inline constexpr int64_t kMaxSize = int64_t(1) << 48;

struct Variable {
  enum Kind {
    Size,    ///< a dim's size in an argument
    Scalar,  ///< an integer or boolean argument
    Present, ///< 1 if an optional argument is passed, otherwise 0
    Grid,    ///< a grid index
    Loop,    ///< a loop index
    Derived, ///< defined by constraints: a quotient, a minimum, …
    Unknown, ///< may have any value in its range
  };
  Kind kind;
  std::string name;
  /// The MLIR value that the variable stands for. Null for a size.
  mlir::Value value;
  Interval range;
  /// The constraints that define the variable.
  Condition definition = Condition::always();
  /// True if the variable is the same in all rows of a launch.
  bool isLaunch = false;
  /// True if the variable is an unknown or depends on one.
  bool isUncertain = false;
  /// True for the index of a loop over the elements of a slice, or over groups,
  /// within one access. The access has the same condition in all iterations.
  bool isOfAccess = false;
};

/// A comparison of two floats. Its outcome depends on the variable `relation`:
/// 0 less, 1 equal, 2 greater, 3 unordered. All comparisons of the same two
/// floats share this variable.
struct FloatComparison {
  Var relation;
  unsigned outcomes; ///< bit r is set if the comparison holds for relation r
};

/// One access in the program of a row, with its indices and conditions.
struct RowAccess {
  MemoryAccess access;
  /// The indices of `access`. If it accesses a part of a row, the indices
  /// within that part follow (see RowModel::getRank).
  llvm::SmallVector<Linear, 4> indices;
  /// The condition under which the op executes in an iteration of `loops`: its
  /// predicate, the enclosing branches, and the presence of an optional
  /// argument.
  Condition executes;
  /// The condition under which the access touches memory: it executes, and the
  /// row contains the whole slice. Bounds are proved from `executes` alone.
  Condition condition;
  llvm::SmallVector<Var, 2> loops; // outermost first
  /// The assumptions that precede the access in the row's program, and their
  /// source texts in `promises`.
  Condition assumed = Condition::always();
  llvm::SmallVector<llvm::StringRef, 1> promises;
};

class RowModel {
public:
  /// With `followsWraps`, models integer overflow exactly, by cases, which
  /// takes longer. Without it, a result that may overflow is an unknown that
  /// may have any value of its type.
  explicit RowModel(KernelOp kernel, bool followsWraps = false);

  KernelOp getKernel() const { return kernel; }
  bool isCareful() const { return followsWraps; }
  /// True if a model with `followsWraps` would be more precise than this one.
  bool omitsWraps() const { return hasWraps && !followsWraps; }
  const Variable &operator[](Var var) const { return variables[var]; }
  size_t size() const { return variables.size(); }
  /// Returns the grid indices that identify a row. Leaves out indices of extent
  /// 1, and the segment of a ragged grid.
  llvm::ArrayRef<Var> getRowIndices() const { return rowIndices; }
  /// Returns all grid indices.
  llvm::ArrayRef<Var> getGridIndices() const { return gridIndices; }
  llvm::ArrayRef<RowAccess> getAccesses() const { return accesses; }
  /// Returns the variables for a segment's start and end; nullopt if the grid
  /// is not ragged.
  std::optional<std::pair<Var, Var>> getSegmentEnds() const {
    return segmentEnds;
  }
  /// Returns the conjunction of the assumptions that a launch checks.
  const Condition &getLaunchCheck() const { return launchCheck; }
  /// Returns the name of the argument that holds the segments of a ragged grid.
  llvm::StringRef getSegmentsName();

  /// Returns the number of indices of an element: one per dim. If rows are
  /// accessed in parts, the last dim has two indices, group and member.
  unsigned getRank(unsigned argument);
  /// Returns the size of a dim, assuming that the argument is passed. `dim`
  /// counts as in getRank().
  Linear getSize(unsigned argument, unsigned dim);
  /// Returns the variable that is 1 if the optional argument is passed,
  /// otherwise 0.
  Var getPresent(unsigned argument);
  Linear getValue(mlir::Value value);
  Condition getCondition(mlir::Value value, bool holds = true);
  /// Returns the condition that the launch passes the argument.
  Condition isGiven(unsigned argument);
  /// Returns the condition that the row contains the whole slice of `access`.
  /// It is trivial unless the row's length is known only at launch.
  Condition hasSlice(const MemoryAccess &access);
  /// Returns the float comparison that `value` is the result of. Returns
  /// nullopt unless it compares two distinct float values.
  std::optional<FloatComparison> getFloatComparison(mlir::Value value);

  Interval getRange(const Linear &linear) const;
  bool isLaunch(const Linear &linear) const;
  bool isUncertain(const Linear &linear) const;
  bool isUncertain(llvm::ArrayRef<Linear> indices) const {
    return llvm::any_of(
        indices, [&](const Linear &index) { return isUncertain(index); });
  }
  bool isUncertain(const Condition &condition) const;
  /// Returns the variables that an access depends on, without duplicates. First
  /// come the variables of its indices, `also`, its loops and its condition.
  /// The variables in the definitions of these follow.
  llvm::SmallSetVector<Var, 16>
  getVariables(const RowAccess &access, llvm::ArrayRef<Var> also = {}) const;

private:
  friend class ValueBuilder;

  Var addVariable(Variable variable) {
    variables.push_back(std::move(variable));
    return variables.size() - 1;
  }
  Var addSize(const llvm::Twine &name, int64_t least, int64_t most);
  /// Returns the size that a name stands for. For a product such as "(G K)"
  /// with unknown factors, returns the size of the whole product.
  Var getNamedSize(llvm::StringRef name);
  Var addUnknown(mlir::Value value, Interval range, llvm::StringRef name = "");
  Linear addOpaque(mlir::Value value);
  /// Adds a variable with the definition that `define` returns. If `define`
  /// returns nullopt (too many cases), the variable has no definition, and a
  /// derived one becomes an unknown.
  Var addDerived(mlir::Value value, Interval range,
                 llvm::function_ref<std::optional<Condition>(Var)> define,
                 Variable::Kind kind = Variable::Derived,
                 llvm::StringRef name = "");
  Condition addOpaqueCondition(mlir::Value value, bool holds);
  /// Returns the result of an op as a linear form; nullopt if it is not linear.
  std::optional<Linear> buildResult(mlir::Value value);
  Linear buildArgument(mlir::BlockArgument argument);
  Linear buildLoopIndex(mlir::scf::ForOp loop);
  Linear buildDim(mlir::Value value, unsigned argument, unsigned dim);
  Linear buildLoad(LoadOp load);
  Linear buildElementIndex(mlir::Value index, mlir::Value row);
  Linear buildChoice(mlir::Value value, mlir::Value condition, mlir::Value x,
                     mlir::Value y);
  /// Returns a form that equals `a` where `condition` holds, and `b` elsewhere.
  Linear chooseLinear(mlir::Value value, mlir::Value condition, const Linear &a,
                      const Linear &b);
  Condition buildCondition(mlir::Value value, bool holds);
  std::optional<Condition> buildComparison(mlir::arith::CmpIOp op, bool holds);
  std::optional<Condition> buildSignTest(mlir::arith::XOrIOp op, bool differ);
  std::optional<Condition> buildComparison(mlir::arith::CmpFOp op, bool holds);
  void addValues();
  /// Adds an index that `value` stands for: 0 <= index < extent.
  Var addIndex(mlir::Value value, const Linear &extent, Variable::Kind kind,
               llvm::StringRef name);
  void addGrid();
  void addSegments(RaggedForallOp grid);
  void addAccess(const MemoryAccess &access);
  /// Returns the loop variable that counts the groups of a row. All accesses of
  /// a dim share it, since no condition depends on it.
  Var getGroupIndex(DimAttr product, unsigned argument);
  /// Returns the loop variable that counts the elements of a slice. All
  /// accesses of that slice share it.
  Var getSliceIndex(RowSlice slice);
  void addPart(RowAccess &row);
  /// Adds the assumptions that precede the access in the row's program.
  void addAssumptions(RowAccess &access);
  void addLaunchCheck();
  /// Narrows the ranges of scalars by a condition that every launch checks.
  /// More sums then provably do not overflow.
  void narrowScalars(const Condition &check);
  /// Returns the range of a form if each term varies independently.
  Interval getTermRange(const Linear &linear) const;

  KernelOp kernel;
  bool followsWraps, hasWraps = false;
  std::vector<Variable> variables;
  llvm::SmallVector<Var, 4> gridIndices, rowIndices;
  std::vector<RowAccess> accesses;
  std::optional<std::pair<Var, Var>> segmentEnds;
  Condition launchCheck = Condition::always();
  // The assumptions inside the grid, which a launch does not check.
  llvm::SmallVector<AssumeOp> assumptions;
  llvm::StringMap<Var> namedSizes;
  llvm::DenseMap<std::pair<unsigned, unsigned>, Var> otherSizes;
  // Dims whose rows are accessed in parts.
  llvm::SmallPtrSet<mlir::Attribute, 2> parted;
  llvm::DenseMap<mlir::Attribute, Var> groupIndices;
  llvm::DenseMap<std::pair<int64_t, int64_t>, Var> sliceIndices;
  llvm::DenseMap<unsigned, Var> presences;
  llvm::DenseMap<mlir::Value, Linear> values;
  /// A quotient floor(dividend / divisor). Equal quotients share a variable.
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

/// True if the location is in an MLIR file. Messages then use the words of
/// MLIR, otherwise those of Python kernels.
bool isInMlir(mlir::Location loc);

/// Returns the name of an unknown for messages: "what is read from flags", "a
/// comparison of floats".
std::string describe(const Variable &variable);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_ROWMODEL_H
