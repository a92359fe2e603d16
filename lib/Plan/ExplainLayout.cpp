//===- ExplainLayout.cpp - remarks on a code version's layout -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Plan/ExplainLayout.h"
#include "lib/Transforms/Remarks.h"
#include "lib/Transforms/Target.h"
#include "mlafix/UnitLimits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace mlir;
using namespace mlafix;

namespace {
constexpr StringLiteral kPass = "mlafix-plan-kernel";

class Explanation {
public:
  Explanation(KernelOp version, const MachineModel &machine,
              const RowShape &shape)
      : version(version), machine(machine), shape(shape),
        layout(version.getLayoutAttr()),
        rule(static_cast<BlockRule>(getPlanned(version, PlanField::Block))) {}

  void run();

private:
  std::string describe(GuardAttr guard);
  void remarkGuards();
  void remarkLanes();
  void remarkBlock();
  void remarkNarrowRegisters();
  void remarkNarrowAccesses();
  void remarkOneBlock();
  void remarkRowsReadAgain();
  void remarkScalarLoops();
  void remarkArithmetic();
  StringRef explainOneBlock();
  bool isForAnyAddress() const;
  /// Returns the names of arguments, separated by ", ".
  std::string namesOf(ArrayRef<int64_t> arguments) {
    auto nameOf = [&](int64_t arg) { return version.getArgName(arg); };
    return llvm::join(llvm::map_range(arguments, nameOf), ", ");
  }
  /// Returns the bytes of one row of each argument, added up.
  int64_t bytesOf(ArrayRef<int64_t> arguments) const {
    int64_t bytes = 0;
    for (int64_t argument : arguments)
      bytes += shape.argDims.at(argument).getSize() *
               shape.elementBits.at(argument) / 8;
    return bytes;
  }
  /// Returns the number of times that a row executes `op`, or the body of `op`
  /// if that is a loop.
  int64_t countRepeats(Operation *op) {
    return mlafix::countRepeats(op, version.getGrid(),
                                machine.assumedIterations);
  }
  std::string explainPack(DimAttr dim, int64_t wanted);
  std::string explainNarrow(DimAttr dim, int64_t bits);

  remark::detail::InFlightRemark analysis(StringRef name) {
    return remark::analysis(version.getLoc(), nameRemark(name, kPass, version));
  }
  remark::detail::InFlightRemark missed(StringRef name) {
    return remark::missed(version.getLoc(), nameRemark(name, kPass, version));
  }

  KernelOp version;
  const MachineModel &machine;
  const RowShape &shape;
  LayoutAttr layout;
  BlockRule rule;
};
} // namespace

/// Records in `depends` that the rounding correction of an integer division
/// does not depend on an index. The correction rounds the quotient down if the
/// remainder `rem` is negative. Indices are not negative, so the correction
/// never applies to them.
static void ignoreRounding(Operation *rem, DenseMap<Value, bool> &depends) {
  for (Operation *sign : rem->getUsers())
    for (Operation *isBelow : sign->getUsers())
      for (Operation *both : isBelow->getUsers())
        if (isa<arith::XOrIOp>(sign) && isa<arith::CmpIOp>(isBelow) &&
            isa<arith::AndIOp>(both))
          depends[both->getResult(0)] = false;
}

/// Returns the number of consecutive grid rows along `index` for which `load`
/// reads the same row. Returns 0 if all rows along `index` read the same one,
/// and 1 if each reads its own.
static int64_t countSameReads(LoadOp load, BlockArgument index) {
  DenseMap<Value, bool> depends;
  auto isOfIndex = [&] {
    return llvm::any_of(load->getOperands(), [&](Value operand) {
      return dependsOn(operand, index, depends);
    });
  };
  if (!isOfIndex())
    return 0;
  depends.clear();
  int64_t least = 0;
  for (Operation *user : index.getUsers()) {
    APInt divisor;
    if (isa<arith::RemSIOp>(user))
      ignoreRounding(user, depends);
    if (!isa<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp>(user) ||
        user->getOperand(0) != index ||
        !matchPattern(user->getOperand(1), m_ConstantInt(&divisor)))
      continue;
    depends[user->getResult(0)] = false;
    int64_t same = divisor.getSExtValue();
    least = least ? std::min(least, same) : same;
  }
  return least > 1 && !isOfIndex() ? least : 1;
}

/// Returns the length of the run of elements that packs must not straddle.
static int64_t getPieceSize(DimAttr dim) {
  return dim.isProduct() ? dim.getGroup().getSize() : dim.getSize();
}

static StringRef ofGroup(DimAttr dim) {
  return dim.isProduct() ? " of a group" : "";
}

/// Describes a guard in the words of Guards.def.
std::string Explanation::describe(GuardAttr guard) {
  std::string text = guard.getSpec().holds;
  auto replace = [&](StringRef what, const std::string &by) {
    if (size_t at = text.find(what.str()); at != std::string::npos)
      text.replace(at, what.size(), by);
  };
  replace("{args}", namesOf(guard.getArgs()));
  replace("{dim}", std::to_string(guard.getDim()));
  replace("{number}", std::to_string(guard.getNumber()));
  return text;
}

void Explanation::remarkGuards() {
  SmallVector<std::string> texts;
  for (auto guard : version.getGuardsAttr().getAsRange<GuardAttr>())
    texts.push_back(describe(guard));
  analysis("code-version") << remark::add(
      "a code version for {0}",
      texts.empty() ? "all calls" : "calls with " + llvm::join(texts, "; "));
}

void Explanation::remarkLanes() {
  DimAttr dim = shape.dims[0];
  for (DimAttr other : shape.dims)
    if (other.getPacks(layout.getPack()) > dim.getPacks(layout.getPack()))
      dim = other;
  int64_t pack = layout.packFor(dim), needed = dim.getSize() / pack,
          lanes = layout.getLanes(), packs = layout.packsFor(dim);
  bool isHalfByte = rule == BlockRule::HalfBytes;
  SharedWork shared = getSharedWork(machine, shape, layout.getPack());
  if (layout.isInParts()) {
    analysis("layout") << remark::add(
        "a row of {0} is {1} of {2}; each of {3} has {4}, which hold up to {5} "
        "each: nothing joins the packs of a row",
        count(dim.getSize(), "element"), count(needed, "pack"),
        count(pack, "element"), count(layout.getParts(), "part"),
        count(lanes, "lane"), count(packs, "pack"));
    return;
  }
  StringRef why = "a row stays within one warp";
  if (layout.isGrouped())
    why = "the launch chooses how many groups of lanes share the merge loops";
  else if (lanes > limits::warpThreads)
    why = "a lane would hold too many packs within one warp";
  else if (packs == 1 && lanes == needed)
    why = "a lane holds one pack, and none is idle";
  else if (shape.exchanges && packs == machine.exchangePacks)
    why = "more of a row is on the way while the ranks wait for each other";
  else if (shared == SharedWork::Reductions &&
           (packs == machine.sharedPacks || packs == machine.busyPacks ||
            isHalfByte))
    why = "what each lane computes for its row costs less with fewer lanes";
  else if (shared == SharedWork::Divisions && packs == machine.sharedPacks)
    why = "one check covers the divisions of all packs of a lane";
  else if (shared == SharedWork::Conversions && packs == machine.sharedPacks)
    why = "with one pack of rows of two widths, a lane moves few bytes";
  else if (shape.accumulates && packs == machine.mergedPacks)
    why = "what each lane does for a state costs less with fewer lanes";
  analysis("layout") << remark::add(
      "a row of {0} is {1} of {2}; {3} {4} {5}: {6}",
      count(dim.getSize(), "element"), count(needed, "pack"),
      count(pack, "element"), count(lanes, "lane"),
      lanes == 1 ? "holds" : "hold up to", count(packs, "pack") + " each", why);
}

void Explanation::remarkBlock() {
  int64_t rows = layout.getRows(), threads = layout.getThreads();
  if (layout.isGrouped()) {
    analysis("block") << remark::add(
        "a block has up to {0} threads, {1} of each of {2} groups at least",
        threads, LayoutAttr::kLeastGrouped, layout.getGroups());
    return;
  }
  if (layout.isClustered()) {
    analysis("block") << remark::add(
        "a cluster of {0} blocks of {1} threads has 1 row: the registers of "
        "one block do not hold it",
        layout.getBlocks(), threads);
    return;
  }
  std::string why;
  switch (rule) {
  case BlockRule::Ragged:
    why = llvm::formatv("the block scans the predicate of all segments with {0}"
                        " threads",
                        threads);
    break;
  case BlockRule::NoRows:
    why = "there are no rows to move, only scalars";
    break;
  case BlockRule::Exchange:
    why = "the ranks tell each other of a block's rows at once";
    break;
  case BlockRule::HalfBytes:
    why = "lanes hold so much of a row that small blocks end sooner";
    break;
  case BlockRule::InPlace:
    why = llvm::formatv("in place, lanes hold {0} packs and blocks are small, "
                        "so that fewer threads wait for an lse",
                        layout.getPacks());
    break;
  case BlockRule::Bytes:
    why = llvm::formatv("so that it moves about {0} bytes at once, with {1} to "
                        "{2} threads",
                        machine.blockBytes, machine.minBlockThreads,
                        machine.maxBlockThreads);
    break;
  }
  analysis("block") << remark::add(
      "a block of {0} threads has {1}: {2}", threads,
      layout.isInParts() ? "a part of a row" : count(rows, "row"), why);
}

/// Explains why packs of rows along `dim` have fewer than `wanted` elements.
std::string Explanation::explainPack(DimAttr dim, int64_t wanted) {
  if (dim.isBounded())
    return dim.getMultiple() == 1
               ? "a row along " + dim.getText() + " may end at any element"
               : "rows along " + dim.getText() + " have at most " +
                     std::to_string(dim.getSize()) + " elements";
  return llvm::formatv("{0} elements{1} are not a multiple of {2}",
                       getPieceSize(dim), ofGroup(dim), wanted);
}

/// True if rows have the smallest packs although the sizes allow larger ones.
bool Explanation::isForAnyAddress() const {
  int64_t packed = shape.packedBits(machine.narrowPercent);
  return layout.getPack() == shape.leastPack() &&
         choosePack(shape, 8 * machine.accessBytes / packed) >
             shape.leastPack();
}

/// Explains why a row along `dim`, with elements of `bits` bits, is not
/// accessed in the widest way.
std::string Explanation::explainNarrow(DimAttr dim, int64_t bits) {
  int64_t wanted = 8 * machine.accessBytes / bits;
  int64_t packed = shape.packedBits(machine.narrowPercent);
  if (isForAnyAddress())
    return "this code version is for rows at any address";
  // The multiple that a guard requires of a bounded dim was chosen to fit the
  // pack, so only the dim's bound can be what makes the pack narrow.
  bool isOfMultiple = dim.isBounded() && dim.getMultiple() > 1;
  if ((isOfMultiple ? dim.getSize() : dim.getPack(wanted)) < wanted)
    return explainPack(dim, wanted);
  if (layout.getPack() * packed >= 8 * machine.accessBytes)
    return llvm::formatv("a pack has {0} elements in all rows, since most "
                         "bytes are of elements of {1}",
                         layout.getPack(), count(packed / 8, "byte"));
  return llvm::formatv("rows of any stride are taken to be aligned to {0} "
                       "bytes only",
                       layout.getPack() * packed / 8);
}

/// Emits one remark for all arguments that share an explanation.
void Explanation::remarkNarrowAccesses() {
  std::map<std::pair<int64_t, std::string>, SmallVector<int64_t>> narrow;
  for (auto [argument, bits] : shape.elementBits) {
    DimAttr dim = shape.argDims.at(argument);
    int64_t moved = layout.packFor(dim) * bits / 8;
    if (moved < machine.accessBytes)
      narrow[{moved, explainNarrow(dim, bits)}].push_back(argument);
  }
  for (const auto &[how, arguments] : narrow)
    missed("narrow-access")
        << remark::add(
               "rows of {0} are moved {1} at a time, where the target has "
               "accesses of {2} bytes: {3}",
               namesOf(arguments), count(how.first, "byte"),
               machine.accessBytes, how.second)
        << remark::metric(kRowBytes, bytesOf(arguments));
}

/// Explains why a long row is neither in parts nor over a cluster.
StringRef Explanation::explainOneBlock() {
  if (isForAnyAddress())
    return "this code version is for rows at any address";
  if (shape.staysInBlock)
    return "its packs are joined in the memory of one block";
  if (!shape.reduces())
    return "a lane stores what others load, so that all of them wait";
  if (layout.getPack() == 1)
    return "a row of single elements goes over no cluster";
  if (machine.clusterBlocks < 2)
    return "it is reduced, and the target has no clusters";
  return getMostInBlock(version.getContext(), machine, shape,
                        countPacks(shape, layout.getPack()), layout.getPack())
             ? "its plan is given"
             : "one block holds it, or a cluster does not";
}

/// Reports rows that are in one block although each lane of even the largest
/// block would have more than two packs. A launch of few such rows leaves most
/// multiprocessors idle.
void Explanation::remarkOneBlock() {
  int64_t needed = countPacks(shape, layout.getPack());
  if (shape.isRagged || layout.isGrouped() || layout.isClustered() ||
      layout.isInParts() || needed <= 2 * machine.threadsPerBlock)
    return;
  missed("one-block")
      << remark::add("a row is in one block, {0} in each of {1}, and a launch "
                     "of few rows has as few blocks: {2}",
                     count(layout.getPacks(), "pack"),
                     count(layout.getLanes(), "lane"), explainOneBlock())
      << remark::metric(kRowBytes,
                        bytesOf(llvm::to_vector(
                            llvm::make_first_range(shape.elementBits))));
}

/// Reports rows that a loop reads again for each of several grid rows: the
/// address does not depend on one of the grid's indices, or depends only on a
/// quotient of that index.
void Explanation::remarkRowsReadAgain() {
  auto forall = dyn_cast<ForallOp>(version.getGrid());
  if (!forall)
    return;
  std::map<std::pair<unsigned, int64_t>, SmallVector<int64_t>> again;
  forall.walk([&](LoadOp load) {
    std::optional<MemoryAccess> access = getSingleAccess(load);
    if (!access || !access->isRow || access->isPerGroup() ||
        !load->getParentOfType<LoopLikeOpInterface>() ||
        !shape.argDims.count(access->getArgNumber()))
      return;
    for (BlockArgument index : forall.getBody().front().getArguments())
      if (int64_t times = countSameReads(load, index); times != 1)
        again[{index.getArgNumber(), times}].push_back(access->getArgNumber());
  });
  for (auto &[how, arguments] : again) {
    llvm::SmallSetVector<int64_t, 4> all(arguments.begin(), arguments.end());
    std::string rows =
        how.second ? count(how.second, "row")
                   : "all rows along index " + std::to_string(how.first);
    missed("read-again") << remark::add(
                                "a loop reads the same rows of {0} for {1} of "
                                "the grid: one row of the grid that computes "
                                "what several do would read them once",
                                namesOf(all.getArrayRef()), rows)
                         << remark::metric(kRowBytes,
                                           bytesOf(all.getArrayRef()));
  }
}

/// Reports loops that load scalars but no rows.
void Explanation::remarkScalarLoops() {
  version.walk([&](scf::ForOp loop) {
    int64_t bits = 0; // of all iterations, also of loops in and around it
    bool hasRows = false;
    loop.walk([&](Operation *op) {
      hasRows |= llvm::any_of(op->getResultTypes(), isRowTile) ||
                 isa<LoadStateOp, MergeLoopOp>(op);
      if (auto load = dyn_cast<LoadOp>(op); load && !isRowTile(load.getType()))
        bits += countRepeats(op) *
                getDTypeBits(getElementTypeOrSelf(load.getSource()));
    });
    std::optional<APInt> trips = loop.getStaticTripCount();
    constexpr uint64_t kFewTrips = 32; // shorter loops are unrolled
    if (hasRows || !bits || (trips && trips->ule(kFewTrips)))
      return;
    remark::missed(loop.getLoc(), nameRemark("scalar-loop", kPass, version))
        << remark::add("a loop loads scalars in turn, and every lane of the "
                       "row executes it: a row of them is loaded at once")
        << remark::metric(kRowBytes, bits / 8);
  });
}

/// Reports loops that compute longer on the rows that they load than loading
/// takes, as a decode with several queries for each key does.
void Explanation::remarkArithmetic() {
  for (const LoopWork &work : getLoopWork(version)) {
    if (!work.reduces || work.isRest ||
        8 * work.operations <= machine.hiddenOperations * work.loadedBits)
      continue;
    remark::missed(work.loop->getLoc(),
                   nameRemark("arithmetic", kPass, version))
        << remark::add(
               "a loop computes {0:f1} f32 operations for each byte of the "
               "rows that it loads, and beyond about {1} the arithmetic takes "
               "longer than memory: where rows are multiplied with rows, a "
               "kernel that uses tensor cores is faster",
               8.0 * double(work.operations) / double(work.loadedBits),
               machine.hiddenOperations)
        << remark::metric(kRowBytes,
                          countRepeats(work.loop) * work.loadedBits / 8);
  }
}

/// Explains for CPUs why fewer elements are computed at once than fit in a
/// register.
void Explanation::remarkNarrowRegisters() {
  int64_t wanted = machine.registerBytes / int64_t(sizeof(float));
  for (DimAttr dim : shape.dims)
    if (int64_t pack = layout.packFor(dim); pack < wanted)
      missed("narrow-access") << remark::add(
          "rows of {0} are computed {1} at a time, where a register holds {2} "
          "floats: {3}",
          count(dim.getSize(), "element"), count(pack, "element"), wanted,
          explainPack(dim, wanted));
}

void Explanation::run() {
  remarkGuards();
  if (!isGPU(getTarget(version)))
    return remarkNarrowRegisters();
  if (!shape.dims.empty())
    remarkLanes();
  remarkBlock();
  remarkNarrowAccesses();
  remarkOneBlock();
  remarkRowsReadAgain();
  remarkScalarLoops();
  remarkArithmetic();
}

void mlafix::explainLayout(KernelOp version, const MachineModel &machine) {
  if (!version.getContext()->getRemarkEngine())
    return;
  FailureOr<RowShape> shape = RowShape::of(version, machine);
  if (succeeded(shape))
    Explanation(version, machine, *shape).run();
}
