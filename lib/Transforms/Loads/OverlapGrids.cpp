//===- OverlapGrids.cpp - overlap a grid with the next one ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/MlafixThread.h"
#include "dialect/Plan.h"
#include "lib/Transforms/Loads/PrefetchCandidates.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Remarks.h"
#include "lib/Transforms/Speculation.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"
#include "mlafix/runtime.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-overlap-grids"

namespace mlafix {
#define GEN_PASS_DEF_OVERLAPGRIDSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Returns the value of `field` in the plan of `function`. A function without a
/// plan, as in tests, has the initial value.
static int64_t getPlanned(LLVM::LLVMFuncOp function, PlanField field) {
  auto plan = function->getAttrOfType<PlanAttr>(kPlanAttr);
  return plan ? plan.getNumber(field)
              : getPlanFields()[static_cast<unsigned>(field)].initial;
}

/// Returns the number of threads that may prefetch rows of `bytes` bytes each:
/// together EarlyBytes bytes. Memory cannot deliver more before the preceding
/// grid ends, so further rows would be loaded twice.
static int64_t countPrefetchingThreads(LLVM::LLVMFuncOp function,
                                       int64_t bytes) {
  return getPlanned(function, PlanField::EarlyBytes) / bytes;
}

//===----------------------------------------------------------------------===//
// The wait for the preceding grid
//===----------------------------------------------------------------------===//

/// Returns the pointers of loads after `wait`, except those in loops.
static SmallVector<Value> collectPointers(Operation *wait) {
  SmallVector<Value> pointers;
  for (Operation *op = wait->getNextNode(); op; op = op->getNextNode())
    op->walk<WalkOrder::PreOrder>([&](Operation *nested) {
      if (auto load = dyn_cast<LLVM::LoadOp>(nested))
        pointers.push_back(load.getAddr());
      else if (auto load = dyn_cast<LLVM::MaskedLoadOp>(nested))
        pointers.push_back(load.getData());
      else if (auto load = dyn_cast<PredicatedLoadOp>(nested))
        pointers.push_back(load.getPointer());
      return nested->getNumRegions() && !isa<scf::IfOp>(nested)
                 ? WalkResult::skip()
                 : WalkResult::advance();
    });
  llvm::erase_if(pointers, [](Value pointer) { return !isGlobal(pointer); });
  return pointers;
}

/// Returns true if an LLVM op loads more than one element through `pointer`.
static bool isOfPack(Value pointer) {
  return llvm::any_of(pointer.getUsers(), [](Operation *user) {
    if (!isa<LLVM::LoadOp, LLVM::MaskedLoadOp>(user))
      return false;
    auto vector = dyn_cast<VectorType>(user->getResult(0).getType());
    return vector && vector.getNumElements() > 1;
  });
}

/// Returns the other summand if `value` is a sum with a constant, else null.
static Value getAugend(Value value) {
  auto sum = value.getDefiningOp<arith::AddIOp>();
  return sum && matchPattern(sum.getRhs(), m_Constant()) ? sum.getLhs()
                                                         : Value();
}

/// Returns true if two values are equal apart from constant summands. The
/// values may be results of equal conversions, or of additions and address
/// computations with one equal operand. Then the other operands are compared.
static bool differByConstant(Value x, Value y) {
  if (isAlike(x, y))
    return true;
  if (Value augend = getAugend(x))
    return differByConstant(augend, y);
  if (Value augend = getAugend(y))
    return differByConstant(x, augend);
  Operation *a = x.getDefiningOp(), *b = y.getDefiningOp();
  if (!a || !b || a->getName() != b->getName())
    return false;
  if (isa<CastOpInterface>(a))
    return differByConstant(a->getOperand(0), b->getOperand(0));
  if (!isa<arith::AddIOp, LLVM::GEPOp>(a) || a->getNumOperands() != 2 ||
      b->getNumOperands() != 2 || a->getAttrs() != b->getAttrs())
    return false;
  for (unsigned i : {0, 1})
    if (isAlike(a->getOperand(i), b->getOperand(i)) &&
        differByConstant(a->getOperand(1 - i), b->getOperand(1 - i)))
      return true;
  return false;
}

/// Moves ops of one block, and the ops that they depend on, to the beginning of
/// the block. Skips ops that depend on memory.
static void moveToFront(ArrayRef<Operation *> ops) {
  llvm::SmallPtrSet<Operation *, 32> needed;
  for (Operation *op : ops) {
    llvm::SetVector<Operation *> slice;
    BackwardSliceOptions options;
    options.omitBlockArguments = true;
    options.inclusive = true;
    options.omitUsesFromAbove = false;
    options.filter = [&](Operation *def) {
      return def->getBlock() == op->getBlock() || op->isAncestor(def);
    };
    (void)getBackwardSlice(op, &slice, options);
    if (llvm::all_of(slice, [&](Operation *def) {
          return op->isAncestor(def) || isMemoryEffectFree(def);
        }))
      needed.insert_range(slice);
  }
  if (needed.empty())
    return;
  Operation *front = nullptr;
  for (Operation &op : llvm::make_early_inc_range(*ops.front()->getBlock())) {
    if (!needed.contains(&op))
      front = front ? front : &op;
    else if (front)
      op.moveBefore(front);
  }
}

/// PTX that prefetches a line to L2. LLVM's intrinsic for this instruction
/// would require a newer PTX ISA than the instruction does.
static constexpr StringLiteral kPrefetch = "prefetch.global.L2 [$0];";

namespace {
/// Moves the wait of one function down, and builds prefetches before the wait.
class GridWait {
public:
  explicit GridWait(LLVM::LLVMFuncOp function) : function(function) {}

  void delay(Operation *wait);
  void prefetchTables();

private:
  int64_t choosePrefetches(Operation *wait, SmallVector<CandidateLoads> &loads);
  Value getLocal();
  void prefetch(Operation *wait);

  LLVM::LLVMFuncOp function;
  Value local; ///< cached result of getLocal()
};
} // namespace

/// Removes candidates from `loads` that are not worth a prefetch. Returns the
/// bytes of the remaining rows per thread.
int64_t GridWait::choosePrefetches(Operation *wait,
                                   SmallVector<CandidateLoads> &loads) {
  // Each condition is a branch that every thread executes. If there are too
  // many, rows with masks are not prefetched.
  int64_t most = getPlanned(function, PlanField::EarlyConditions);
  bool isTooMany = int64_t(loads.size()) > most;
  int64_t bytes = 0;
  size_t packs = 0, values = 0, dropped = 0;
  for (CandidateLoads &group : loads) {
    if (isTooMany && group.mask) {
      dropped += group.rows.size();
      group.rows.clear();
    } else {
      bytes += group.rowBytes;
    }
    packs += group.rows.size();
    values += group.shared.size();
  }
  LDBG() << "prefetches " << packs << " packs of rows and " << values
         << " shared values, leaves " << dropped << " packs";
  auto opts = nameRemark("prefetch", DEBUG_TYPE, function);
  if (dropped)
    remark::missed(wait->getLoc(), opts) << remark::add(
        "rows that have predicates are not prefetched while the preceding grid "
        "ends: each of {0} conditions would be a branch, and {1} are the limit",
        loads.size(), most);
  if (packs) {
    int64_t count = countPrefetchingThreads(function, bytes);
    int64_t all = getPlanned(function, PlanField::EarlyThreads);
    std::string others;
    if (count < all)
      others =
          llvm::formatv(", as do all threads of a grid of at most {0}", all);
    remark::passed(wait->getLoc(), opts) << remark::add(
        "while the preceding grid ends, the first {0} threads prefetch {1} "
        "bytes of rows each{2}",
        count, bytes, others);
  }
  if (values)
    remark::passed(wait->getLoc(), opts) << remark::add(
        "while the preceding grid ends, the first block prefetches {0} of the "
        "values that all blocks load",
        values);
  return bytes;
}

/// Returns an i1 that is true if the launch reads only memory of its own
/// device. The first call adds the parameter from which the i1 is computed to
/// the kernel. Returns null if the kernel has too many parameters already.
Value GridWait::getLocal() {
  if (local)
    return local;
  MLIRContext *context = function.getContext();
  unsigned count = function.getNumArguments();
  // In tests, the function may lack the description of a code version.
  if (auto version = function->getAttrOfType<VariantAttr>(kCodeVersionAttr)) {
    SmallVector<ParamAttr> params(version.getParams());
    if (params.size() == MLAFIX_MAX_PARAMS)
      return {};
    params.push_back(ParamAttr::get(context, ParamKind::Local));
    function->setAttr(
        kCodeVersionAttr,
        VariantAttr::get(context, version.getEntry(), version.getGuards(),
                         params, version.getGeometry(), version.getLayout(),
                         version.getDependentLaunch()));
  }
  Type i32 = IntegerType::get(context, 32);
  SmallVector<Type> types(function.getArgumentTypes());
  types.push_back(i32);
  // insertArgument() does not support functions without results.
  function_interface_impl::insertFunctionArguments(
      function, count, i32, {}, function.getLoc(), count,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types));
  OpBuilder b = OpBuilder::atBlockBegin(&function.getBody().front());
  local = LLVM::ICmpOp::create(
      b, function.getLoc(), LLVM::ICmpPredicate::ne,
      function.getArgument(count),
      LLVM::ConstantOp::create(b, function.getLoc(), i32, 0));
  return local;
}

/// Returns PTX that prefetches a pack of at most `bytes` bytes at an address.
/// If the plan says so, only the first lane of each cache line prefetches,
/// unless a line is shared by lanes of two rows. The PTX uses a predicate,
/// because a divergent branch costs more than it saves.
static std::string writePrefetch(LLVM::LLVMFuncOp function, int64_t bytes) {
  int64_t lanes = getPlanned(function, PlanField::EarlyLineBytes) /
                  std::max<int64_t>(1, bytes);
  if (lanes < 2 ||
      function->getAttrOfType<PlanAttr>(kPlanAttr).getLayout().getLanes() %
              lanes !=
          0)
    return kPrefetch.str();
  return llvm::formatv(
      "{{\n\t.reg .pred first;\n\t.reg .b32 lane;\n\tmov.u32 lane, "
      "%tid.x;\n\tand.b32 lane, lane, {0};\n\tsetp.eq.u32 first, lane, "
      "0;\n\t@first {1}\n\t}",
      lanes - 1, kPrefetch);
}

/// Builds prefetches of data that is loaded after the wait. The prefetches
/// precede the wait. The first threads of a grid, or all threads of a small
/// grid, prefetch their rows. The first block prefetches the values that all
/// blocks load.
void GridWait::prefetch(Operation *wait) {
  if (getPlanned(function, PlanField::EarlyBytes) == 0)
    return;
  SmallVector<CandidateLoads> loads =
      PrefetchCandidates(wait, getPlanned(function, PlanField::EarlyPackBytes))
          .build();
  int64_t bytes = choosePrefetches(wait, loads);
  llvm::erase_if(loads, [](const CandidateLoads &group) {
    return group.rows.empty() && group.shared.empty();
  });
  if (loads.empty() || !getLocal())
    return;
  OpBuilder b(wait);
  Location loc = wait->getLoc();
  Type i32 = b.getI32Type();
  auto isBelow = [&](Value number, int64_t bound) {
    return LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ult, number,
                                LLVM::ConstantOp::create(b, loc, i32, bound));
  };
  auto isEarlyThread = [&]() -> Value {
    Value size = buildBlockSize(b, loc);
    int64_t count = countPrefetchingThreads(function, bytes);
    int64_t all = getPlanned(function, PlanField::EarlyThreads);
    Value isFirst =
        isBelow(LLVM::MulOp::create(b, loc, buildBlockId(b, loc), size), count);
    if (count >= all)
      return isFirst;
    Value isSmall = isBelow(
        LLVM::MulOp::create(b, loc, buildGridSize(b, loc), size), all + 1);
    return LLVM::OrOp::create(b, loc, isFirst, isSmall);
  };
  SmallVector<Operation *> rows;
  int64_t packs = 0;
  auto build = [&](ArrayRef<Value> pointers, Value isEarly,
                   const CandidateLoads &group) {
    std::string text = writePrefetch(function, group.packBytes);
    for (Value condition : {local, group.condition, group.mask})
      if (condition)
        isEarly = bothHold(b, isEarly, condition);
    auto branch = scf::IfOp::create(b, loc, isEarly, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    for (Value pointer : pointers)
      buildAssembly(b, loc, {}, pointer, text, "l,~{memory}");
    return branch;
  };
  for (const CandidateLoads &group : loads) {
    packs += group.rows.size();
    if (!group.rows.empty())
      rows.push_back(build(group.rows, isEarlyThread(), group));
    if (!group.shared.empty())
      build(group.shared, isBelow(buildBlockId(b, loc), 1), group);
  }
  int64_t first = getPlanned(function, PlanField::EarlyFirstPacks);
  if (first > 0 && packs >= first)
    moveToFront(rows);
}

/// Replaces the kernel's own prefetches (Grid/RowOrder.cpp) by PTX that
/// executes only if the launch reads only memory of its own device. Removes the
/// prefetches if the kernel has too many parameters for getLocal().
void GridWait::prefetchTables() {
  SmallVector<LLVM::Prefetch> prefetches;
  function.walk([&](LLVM::Prefetch op) { prefetches.push_back(op); });
  for (LLVM::Prefetch op : prefetches) {
    if (Value isLocal = getLocal()) {
      OpBuilder b(op);
      auto branch = scf::IfOp::create(b, op.getLoc(), isLocal,
                                      /*withElseRegion=*/false);
      b.setInsertionPoint(branch.thenBlock()->getTerminator());
      buildAssembly(b, op.getLoc(), {}, op.getAddr(), kPrefetch, "l,~{memory}");
    }
    op.erase();
  }
}

/// Moves the wait behind the address computations of the loads that follow, and
/// builds prefetches before the wait.
void GridWait::delay(Operation *wait) {
  OpBuilder b(wait);
  Location loc = wait->getLoc();
  Value addresses;
  SmallVector<Value> needed;
  size_t moved = 0;
  for (Value pointer : collectPointers(wait)) {
    if (!moveBeforeWait(pointer, wait))
      continue;
    ++moved;
    // The addresses of one row's packs differ by constants, which the loads add
    // by themselves. So one address per row is enough.
    if (isOfPack(pointer) && llvm::any_of(needed, [&](Value other) {
          return differByConstant(other, pointer);
        }))
      continue;
    needed.push_back(pointer);
    Value address = LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), pointer);
    addresses =
        addresses ? LLVM::OrOp::create(b, loc, addresses, address) : address;
  }
  prefetch(wait);
  auto opts = nameRemark("schedule-grid-wait", DEBUG_TYPE, function);
  if (!addresses) {
    remark::missed(loc, opts) << remark::add(
        "the wait for the preceding grid comes first: no address of a load can "
        "be computed before it");
    return;
  }
  LDBG() << moved << " addresses before the wait";
  remark::passed(loc, opts) << remark::add(
      "the wait for the preceding grid comes after the addresses of {0}",
      count(moved, "load"));
  // The exit is never taken (ntid is not zero), but ptxas cannot know that. The
  // exit ends the basic block, so ptxas schedules all address arithmetic before
  // the wait.
  buildAssembly(b, loc, {}, addresses,
                "{\n\t.reg .pred none;\n\t.reg .b32 threads;\n\t.reg .b64 "
                "some;\n\tmov.u32 threads, %ntid.x;\n\tcvt.u64.u32 some, "
                "threads;\n\tor.b64 some, some, $0;\n\tsetp.eq.u64 none, some, "
                "0;\n\t@none exit;\n\tgriddepcontrol.wait;\n\t}",
                "l,~{memory}");
  wait->erase();
}

//===----------------------------------------------------------------------===//
// The launch of the next grid
//
// A load may need an index that another load yields. ptxas 13.0 then issues one
// of the loads that need no index, waits for the index, and only then issues
// the remaining loads. But it moves no load across
// `griddepcontrol.launch_dependents`. Therefore this instruction is placed
// after the load of the index and the loads of rows that need no index.
//
// ptxas waits for the index before `griddepcontrol.launch_dependents`, so the
// next grid begins once the index has been loaded. If all rows of this grid
// have been prefetched, the next grid may begin at once, since its prefetches
// cannot delay this grid's loads.
//
// Lane groups load their first chunk before the merge loop. The next grid
// begins after these loads, because its prefetches would compete with them.
//
//===----------------------------------------------------------------------===//

/// Returns the next op with memory effects, or null if there is none.
static Operation *getNextEffect(Operation *op) {
  do
    op = op->getNextNode();
  while (op && isMemoryEffectFree(op));
  return op;
}

/// Returns the branch after `launch` if it is the next op with memory effects
/// and has no results, else null.
static scf::IfOp getGuard(Operation *launch) {
  auto guard = dyn_cast_or_null<scf::IfOp>(getNextEffect(launch));
  return guard && guard.getNumResults() == 0 ? guard : scf::IfOp();
}

static bool loadsOnly(scf::IfOp branch) {
  return !anyOp(branch, [](Operation *op) {
    return !isa<LLVM::LoadOp, LLVM::MaskedLoadOp>(op) && !op->getNumRegions() &&
           !isMemoryEffectFree(op);
  });
}

/// Returns the last of the branches after `launch` that load the first chunk of
/// a loop (mlafix-lower-merge-loops). Only loads, and ops without memory
/// effects, may lie between them. Returns null if there is no such branch.
static scf::IfOp getFirstChunks(Operation *launch) {
  scf::IfOp last;
  for (Operation *op = getNextEffect(launch); op; op = getNextEffect(op)) {
    if (isa<LLVM::LoadOp, LLVM::MaskedLoadOp>(op))
      continue;
    auto branch = dyn_cast<scf::IfOp>(op);
    bool isCarried = branch && llvm::any_of(branch->getUsers(), [](auto *user) {
                       return isa<scf::ForOp>(user);
                     });
    if (!isCarried || !loadsOnly(branch))
      break;
    last = branch;
  }
  return last;
}

/// Returns true if `value` depends on a load in `block`. Adds the impure ops of
/// `block` that `value` depends on to `of`.
static bool needsMemory(Value value, Block &block,
                        llvm::SmallSetVector<Operation *, 4> &of) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &block)
    return false;
  if (!isPure(op) || op->getNumRegions()) {
    of.insert(op);
    return true;
  }
  bool needs = false;
  for (Value operand : op->getOperands())
    needs |= needsMemory(operand, block, of);
  return needs;
}

/// Returns true if `op` loads a pack without a predicate.
static bool isRowLoad(Operation &op) {
  auto load = dyn_cast<LLVM::LoadOp>(op);
  auto type = load ? dyn_cast<VectorType>(load.getType()) : VectorType();
  return type && type.getNumElements() > 1 && isGlobal(load.getAddr());
}

/// Returns the loads to schedule first. Loads that other loads depend on come
/// first, then loads of rows that do not depend on memory and precede the first
/// write. Returns none unless there are loads of both kinds.
static SmallVector<LLVM::LoadOp> collectLoads(Block &block) {
  SmallVector<LLVM::LoadOp> rows, loads;
  llvm::SmallSetVector<Operation *, 4> needed;
  for (Operation &op : block) {
    if (isMemoryEffectFree(&op))
      continue;
    if (!isa<LLVM::LoadOp, LLVM::MaskedLoadOp>(op))
      break;
    bool needs = false;
    for (Value operand : op.getOperands())
      needs |= needsMemory(operand, block, needed);
    if (!needs && isRowLoad(op))
      rows.push_back(cast<LLVM::LoadOp>(op));
  }
  if (needed.empty() || rows.empty())
    return {};
  for (Operation *op : needed)
    if (auto index = dyn_cast<LLVM::LoadOp>(op); index && !isRowLoad(*op))
      loads.push_back(index);
  llvm::append_range(loads, rows);
  return loads;
}

/// Builds the launch trigger as inline PTX, which LLVM treats as a store. LLVM
/// would move loads across the intrinsic for the trigger.
static Operation *buildLaunchAssembly(OpBuilder &b, Location loc) {
  return buildAssembly(b, loc, {}, {}, "griddepcontrol.launch_dependents;",
                       "~{memory}");
}

/// Returns the bytes of rows that `op` loads per thread.
static int64_t countRowBytes(Operation &op) {
  return isRowLoad(op)
             ? DataLayout::closest(&op).getTypeSize(op.getResult(0).getType())
             : llvm::TypeSize::getFixed(0);
}

static int64_t countRowBytes(Block &block) {
  int64_t bytes = 0;
  for (Operation &op : block)
    bytes += countRowBytes(op);
  return bytes;
}

/// Makes `launch` conditional: it executes only if the grid prefetches all of
/// its rows, `bytes` per thread. Otherwise the trigger after the loads takes
/// effect.
static void keepIfPrefetched(Operation *launch, int64_t bytes) {
  OpBuilder b(launch);
  Location loc = launch->getLoc();
  Value threads = LLVM::MulOp::create(b, loc, buildGridSize(b, loc),
                                      buildBlockSize(b, loc));
  int64_t most = countPrefetchingThreads(
      launch->getParentOfType<LLVM::LLVMFuncOp>(), std::max<int64_t>(1, bytes));
  Value isPrefetched = LLVM::ICmpOp::create(
      b, loc, LLVM::ICmpPredicate::ule, threads,
      LLVM::ConstantOp::create(b, loc, b.getI32Type(), most));
  auto early =
      scf::IfOp::create(b, loc, isPrefetched, /*withElseRegion=*/false);
  launch->moveBefore(early.thenBlock()->getTerminator());
}

/// Places another launch trigger among the loads of `block`, and makes `launch`
/// conditional (keepIfPrefetched). No op with memory effects lies between
/// `launch` and `block`.
static void place(Operation *launch, Block &block) {
  SmallVector<LLVM::LoadOp> loads = collectLoads(block);
  llvm::erase_if(loads, [&](LLVM::LoadOp load) {
    return !isKnownBefore(load.getAddr(), launch);
  });
  int64_t bytes = 0;
  for (LLVM::LoadOp load : loads)
    bytes += countRowBytes(*load);
  if (!bytes)
    return;
  LDBG() << loads.size() << " loads before " << *launch;
  Location loc = launch->getLoc();
  auto b = OpBuilder::atBlockBegin(&block);
  Operation *later = buildLaunchAssembly(b, loc);
  for (LLVM::LoadOp load : loads) {
    moveBeforeWait(load.getAddr(), launch);
    load->moveBefore(later);
  }
  keepIfPrefetched(launch, bytes);
}

/// Lets the next grid begin only after those loads of this grid with which the
/// prefetches of the next grid would compete.
static void delayLaunch(Operation *launch) {
  if (scf::IfOp guard = getGuard(launch))
    place(launch, *guard.thenBlock());
  if (scf::IfOp chunks = getFirstChunks(launch)) {
    OpBuilder b(chunks->getContext());
    b.setInsertionPointAfter(chunks);
    buildLaunchAssembly(b, launch->getLoc());
    keepIfPrefetched(launch, countRowBytes(*chunks.thenBlock()));
  }
}

//===----------------------------------------------------------------------===//
// Loads that take no branch
//===----------------------------------------------------------------------===//

/// The number of 32-bit words in the widest load that all GPUs have.
static constexpr unsigned kMostWords = 4;

/// Returns PTX that loads `words` values of 32 bits into its first operands.
/// The next operand is the address. The last operand is the predicate.
static std::string writePredicatedLoad(unsigned words) {
  std::string text;
  for (unsigned first = 0; first < words; first += kMostWords) {
    unsigned count = std::min(words - first, kMostWords);
    std::string registers;
    for (unsigned i = 0; i < count; ++i)
      registers += llvm::formatv("{0}${1}", i ? ", " : "", first + i);
    text += llvm::formatv("{0}@${1} ld.global{2}.b32 {3}, [${4}{5}];",
                          first ? "\n\t" : "", words + 1,
                          count == 1 ? "" : llvm::formatv(".v{0}", count).str(),
                          count == 1 ? registers : "{" + registers + "}", words,
                          first ? llvm::formatv("+{0}", 4 * first).str() : "");
  }
  return text;
}

/// Replaces `load` by PTX. A pack that is wider than the widest load takes
/// several loads.
static void lowerPredicatedLoad(PredicatedLoadOp load) {
  OpBuilder b(load);
  Location loc = load.getLoc();
  Type type = load.getValue().getType(), i32 = b.getI32Type();
  unsigned words =
      DataLayout::closest(load).getTypeSizeInBits(type).getFixedValue() / 32;
  std::string constraints;
  for (unsigned i = 0; i < words; ++i)
    constraints += "=r,";
  Type loaded = words == 1
                    ? i32
                    : Type(LLVM::LLVMStructType::getLiteral(
                          b.getContext(), SmallVector<Type>(words, i32)));
  Value value =
      buildAssembly(b, loc, loaded, {load.getPointer(), load.getCondition()},
                    writePredicatedLoad(words), constraints + "l,b")
          ->getResult(0);
  if (words > 1) {
    Value packed =
        LLVM::PoisonOp::create(b, loc, VectorType::get({int64_t(words)}, i32));
    for (unsigned i = 0; i < words; ++i)
      packed = LLVM::InsertElementOp::create(
          b, loc, packed, LLVM::ExtractValueOp::create(b, loc, value, i),
          LLVM::ConstantOp::create(b, loc, i32, i));
    value = packed;
  }
  load.replaceAllUsesWith(
      LLVM::BitcastOp::create(b, loc, type, value).getResult());
  load.erase();
}

namespace {
class OverlapGridsPass
    : public mlafix::impl::OverlapGridsPassBase<OverlapGridsPass> {
public:
  void runOnOperation() override {
    SmallVector<Operation *> waits, launches;
    getOperation().walk([&](Operation *op) {
      if (isGridControl(op))
        (isGridWait(op) ? waits : launches).push_back(op);
    });
    GridWait wait(getOperation());
    for (Operation *op : waits)
      wait.delay(op);
    wait.prefetchTables();
    llvm::for_each(launches, delayLaunch);
    getOperation().walk(lowerPredicatedLoad);
  }
};
} // namespace
