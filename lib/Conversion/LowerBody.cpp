//===- LowerBody.cpp - lowers a kernel's body to LLVM ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LowerBody.h"

#include "dialect/Guards.h"
#include "lib/Conversion/Params.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/LoweredAccess.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
using namespace mlafix;

//===----------------------------------------------------------------------===//
// Offsets
//===----------------------------------------------------------------------===//

/// Returns x if the indices are x / size and x % size, else null.
static Value joinIndices(Value quotient, Value remainder, int64_t size) {
  auto strip = [](Value index) {
    auto cast = index.getDefiningOp<arith::IndexCastUIOp>();
    return cast ? cast.getIn() : index;
  };
  auto isSize = [&](Value value) {
    APInt constant;
    return matchPattern(value, m_ConstantInt(&constant)) &&
           constant.getSExtValue() == size;
  };
  auto div = strip(quotient).getDefiningOp<arith::DivUIOp>();
  auto rem = strip(remainder).getDefiningOp<arith::RemUIOp>();
  return div && rem && div.getLhs() == rem.getLhs() && isSize(div.getRhs()) &&
                 isSize(rem.getRhs())
             ? div.getLhs()
             : Value();
}

/// Extends an index to i64. `index` may also be the integer that an index was
/// made from.
static Value toI64(OpBuilder &b, Location loc, Value index) {
  Type i64 = b.getI64Type();
  if (index.getType().isIndex())
    return arith::IndexCastOp::create(b, loc, i64, index);
  return index.getType() == i64
             ? index
             : Value(arith::ExtUIOp::create(b, loc, i64, index));
}

/// Returns the sum of index * stride, in elements (i64). Returns null if there
/// are no indices. `dynamicStride` returns the strides that are known only at
/// launch.
///
/// Constant strides are factored: i * 8192 + j * 64 becomes (i * 128 + j) * 64.
/// If i is x / 128 and j is x % 128, the sum in parentheses is replaced by x.
static Value
buildOffset(OpBuilder &b, Location loc, ValueRange indices,
            ArrayRef<int64_t> strides,
            llvm::function_ref<Value(unsigned dim)> dynamicStride) {
  auto add = [&](Value x, Value y) -> Value {
    return x ? Value(arith::AddIOp::create(b, loc, x, y)) : y;
  };
  auto scale = [&](Value x, int64_t factor) -> Value {
    return factor == 1 ? x
                       : Value(arith::MulIOp::create(
                             b, loc, x,
                             arith::ConstantIntOp::create(b, loc, factor, 64)));
  };
  Value offset, factored; // `factored` is in units of `unit` elements
  Value joined;           // null unless `factored` is a single index
  int64_t unit = 1;
  for (auto [dim, index, stride] : llvm::enumerate(indices, strides)) {
    if (ShapedType::isDynamic(stride)) {
      offset = add(offset, arith::MulIOp::create(b, loc, toI64(b, loc, index),
                                                 dynamicStride(unsigned(dim))));
      continue;
    }
    if (stride <= 0 || (factored && unit % stride != 0)) {
      offset = add(offset, scale(toI64(b, loc, index), stride));
      continue;
    }
    if (!factored)
      joined = index;
    else if (joined)
      joined = joinIndices(joined, index, unit / stride);
    factored = joined
                   ? toI64(b, loc, joined)
                   : add(scale(factored, unit / stride), toI64(b, loc, index));
    unit = stride;
  }
  return factored ? add(offset, scale(factored, unit)) : offset;
}

/// Returns the offset (in elements, i64) of `row` and `column` in tiled storage
/// (mlafix.swizzle) with rows `pitch` apart. In a tile of 128 rows, rows that
/// are 32 apart are adjacent. In a tile of 8 rows, rows are in order. `columns`
/// is the number of columns, or kDynamic. If the number is small, offsets
/// within a row of tiles are computed in 32 bits.
static Value buildSwizzledOffset(OpBuilder &b, Location loc, int64_t tileRows,
                                 Value row, Value column, int64_t columns,
                                 Value pitch) {
  constexpr int64_t kMostColumns = int64_t(1) << 23;
  Type i64 = b.getI64Type();
  bool isShort = !ShapedType::isDynamic(columns) && columns <= kMostColumns;
  Type type = isShort ? b.getI32Type() : i64;
  auto shorten = [&](Value x) -> Value {
    return isShort ? arith::TruncIOp::create(b, loc, type, x) : x;
  };
  auto number = [&](Value like, int64_t value) {
    return arith::ConstantIntOp::create(b, loc, like.getType(), value);
  };
  auto above = [&](Value x, int64_t bits) -> Value {
    return arith::ShRUIOp::create(b, loc, x, number(x, bits));
  };
  auto bits = [&](Value x, int64_t mask) -> Value {
    return arith::AndIOp::create(b, loc, x, number(x, mask));
  };
  auto times = [&](Value x, int64_t factor) -> Value {
    return arith::MulIOp::create(b, loc, x, number(x, factor));
  };
  auto join = [&](Value x, Value y) -> Value {
    return arith::OrIOp::create(b, loc, x, y);
  };
  row = toI64(b, loc, row);
  Value tiles =
      arith::MulIOp::create(b, loc, above(row, llvm::Log2_64(tileRows)), pitch);
  Value inRow = shorten(column); // offset within a row
  Value inColumn = shorten(row);
  // Combine the parts of the offset by `or`, since they share no bits.
  Value inTile;
  if (tileRows == 8) {
    inTile = bits(times(inColumn, 4), 7 * 4);
  } else {
    Value of32 = bits(times(inColumn, 16), 31 * 16);
    Value of128 = bits(above(inColumn, 3), 3 * 4);
    inTile = join(of32, of128);
  }
  Value of4 = bits(inRow, 3);
  Value others = bits(times(inRow, tileRows), -4 * tileRows);
  Value offset = join(others, join(inTile, of4));
  if (isShort)
    offset = arith::ExtUIOp::create(b, loc, i64, offset);
  return arith::AddIOp::create(b, loc, times(tiles, tileRows), offset);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

namespace {
class BodyLowering {
public:
  BodyLowering(KernelOp kernel, LLVM::LLVMFuncOp function,
               ArrayRef<ParamAttr> params, ValueRange values,
               unsigned addressSpace, const llvm::DenseSet<Value> &streamed)
      : kernel(kernel), function(function), params(params), values(values),
        addressSpace(addressSpace), streamed(streamed), b(kernel.getContext()) {
  }

  LogicalResult run();

private:
  LogicalResult lower(Operation *op);
  void lowerAccess(Operation *op, const LoweredAccess &access);
  Value buildAddress(Location loc, const LoweredAccess &access);
  Value buildElementOffset(Location loc, const LoweredAccess &access,
                           unsigned first);
  Value joinPacked(Location loc, unsigned arg, unsigned dim, Value index,
                   Value next);
  Value buildTableBase(Location loc, BlockArgument argument, Value which);
  Value buildLoad(Operation *op, const LoweredAccess &access, Value pointer);
  Value castBits(Location loc, Value value, Type type);
  void buildStore(Location loc, const LoweredAccess &access, Value pointer);
  Value buildAtomic(memref::AtomicRMWOp op, Value pointer);
  LogicalResult planSharedMemory();
  LLVM::GlobalOp buildShared(Location loc, Type type, const Twine &name);
  void lowerAlloca(memref::AllocaOp op);
  void lowerPush(PushOp op);
  void buildPushBarriers();
  void lowerAwaitPushes(AwaitPushesOp op);
  LogicalResult lowerDim(memref::DimOp op);
  void lowerComparison(Operation *op, ArrayRef<BlockArgument> addressed);

  Value find(ParamKind kind, unsigned arg, unsigned dim = 0) {
    const auto *found = llvm::find_if(params, [&](ParamAttr param) {
      return param.getKind() == kind && param.getArg() == arg &&
             param.getDim() == dim;
    });
    return found == params.end() ? Value() : values[found - params.begin()];
  }
  Value toIndex(Location loc, Value i64) {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), i64);
  }
  Value i64Constant(Location loc, int64_t value) {
    return arith::ConstantIntOp::create(b, loc, value, 64);
  }

  KernelOp kernel;
  LLVM::LLVMFuncOp function;
  ArrayRef<ParamAttr> params;
  ValueRange values;
  unsigned addressSpace;
  const llvm::DenseSet<Value> &streamed;
  OpBuilder b;
  llvm::DenseMap<Value, Value> localPointers;
  // The mbarriers of the memory for which ops wait.
  llvm::DenseMap<Value, Value> pushBarriers;
  // The size in bytes of the shared memory that all exchanges between lanes use
  // in turn; 0 if each exchange has its own memory.
  int64_t commonBytes = 0;
  LLVM::GlobalOp commonScratch; // null until used
};
} // namespace

/// Returns the type of a value in memory. LLVM addresses bytes, so a boolean
/// becomes i8, and so do two elements that share a byte. fp8 and u8 become i8,
/// too: LLVM has no fp8, and its integer types are signless.
static Type getMemoryType(Type type) {
  Type element = getElementTypeOrSelf(type);
  bool isShared = sharesByte(element);
  if (element.isInteger(1) || element.isUnsignedInteger(8) || isFp8(element) ||
      isShared)
    element = IntegerType::get(type.getContext(), 8);
  if (auto vector = dyn_cast<VectorType>(type))
    return VectorType::get(vector.getNumElements() / (isShared ? 2 : 1),
                           element);
  return element;
}

/// Returns the base address of tensor `which` of an argument with several
/// tensors (peers or a list). The table of these addresses does not change
/// during a launch, so the load from it is invariant.
Value BodyLowering::buildTableBase(Location loc, BlockArgument argument,
                                   Value which) {
  Value table = find(ParamKind::Peers, argument.getArgNumber());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext(), addressSpace);
  Value index = arith::IndexCastOp::create(b, loc, b.getI64Type(), which);
  Value entry =
      LLVM::GEPOp::create(b, loc, table.getType(), pointer, table, index);
  return LLVM::LoadOp::create(b, loc, pointer, entry, /*alignment=*/8,
                              /*isVolatile=*/false, /*isNonTemporal=*/false,
                              /*isInvariant=*/true);
}

/// Joins the indices of dim `dim` and the next dim to one index (i64). Dim
/// `dim` is packed (isGuardedPacked). If a guard limits the number of rows to
/// less than 2^31, the size of the next dim fits in 32 bits, so one widening
/// multiplication suffices.
Value BodyLowering::joinPacked(Location loc, unsigned arg, unsigned dim,
                               Value index, Value next) {
  auto [of, position] = getSizeOwner(kernel, arg, dim + 1);
  Value size = find(ParamKind::Size, of, position);
  if (getRowBound(kernel.getGuardsAttr()))
    size = arith::ExtUIOp::create(
        b, loc, b.getI64Type(),
        arith::TruncIOp::create(b, loc, b.getI32Type(), size));
  Value before = arith::MulIOp::create(b, loc, toI64(b, loc, index), size);
  return arith::AddIOp::create(b, loc, before, toI64(b, loc, next));
}

/// Returns the offset of an access in elements, or in bytes if two elements
/// share a byte. Returns null if there are no indices. `first` is the first dim
/// with a stride: 1 if dim 0 selects one of several tensors, else 0.
Value BodyLowering::buildElementOffset(Location loc,
                                       const LoweredAccess &access,
                                       unsigned first) {
  BlockArgument argument = getKernelArgument(access.memref);
  SmallVector<int64_t> strides = getStrides(access.memref);
  auto strideOf = [&](unsigned dim) {
    int64_t owner =
        getStrideOwner(kernel.getGuardsAttr(), argument.getArgNumber());
    return find(ParamKind::Stride, owner, dim);
  };
  auto build = [&](ValueRange indices, unsigned from) {
    return buildOffset(b, loc, indices, ArrayRef(strides).drop_front(from),
                       [&](unsigned dim) { return strideOf(from + dim); });
  };
  if (isSwizzled(access.memref)) {
    Value pitch = ShapedType::isDynamic(strides[0])
                      ? strideOf(0)
                      : i64Constant(loc, strides[0]);
    return buildSwizzledOffset(b, loc, getTileRows(access.memref),
                               access.indices[0],
                               build(access.indices.drop_front(), 1),
                               countColumns(access.memref, 1), pitch);
  }
  SmallVector<Value> indices(access.indices.drop_front(first));
  if (sharesByte(access.type) && !indices.empty()) {
    IndexBuilder x(b, loc);
    indices.back() = x.div(indices.back(), x.constant(2));
  }
  if (argument)
    for (unsigned dim = first; dim + 1 < strides.size(); ++dim)
      if (isGuardedPacked(kernel.getGuardsAttr(), argument.getArgNumber(),
                          dim)) {
        // Replace the indices of both dims by one index.
        indices[dim - first] =
            joinPacked(loc, argument.getArgNumber(), dim, indices[dim - first],
                       indices[dim + 1 - first]);
        indices.erase(indices.begin() + (dim + 1 - first));
        strides.erase(strides.begin() + dim);
        return buildOffset(b, loc, indices, ArrayRef(strides).drop_front(first),
                           [&](unsigned at) {
                             unsigned of = first + at;
                             return strideOf(of < dim ? of : of + 1);
                           });
      }
  return build(indices, first);
}

/// Returns the address of the access.
Value BodyLowering::buildAddress(Location loc, const LoweredAccess &access) {
  BlockArgument argument = getKernelArgument(access.memref);
  unsigned first = 0; // first dim with a stride
  Value base;
  if (argument && kernel.isArgMany(argument.getArgNumber()))
    base = buildTableBase(loc, argument, access.indices[first++]);
  else
    base = argument ? find(ParamKind::Pointer, argument.getArgNumber())
                    : localPointers.lookup(access.memref);
  Value offset = buildElementOffset(loc, access, first);
  if (!offset)
    return base;
  Type element = getElementTypeOrSelf(getMemoryType(access.type));
  return LLVM::GEPOp::create(b, loc, base.getType(), element, base, offset);
}

/// Bitcasts `value` to a type of equal size. The elements of either type may be
/// integers of any signedness, floats, or two elements in a byte.
Value BodyLowering::castBits(Location loc, Value value, Type type) {
  auto cast = [&](Value from, Type to) {
    return UnrealizedConversionCastOp::create(b, loc, to, from).getResult(0);
  };
  if (value.getType() == type)
    return value;
  bool isFrom = sharesByte(value.getType());
  if (!isFrom && !sharesByte(type))
    return cast(value, type);
  auto shape = dyn_cast<ShapedType>(isFrom ? value.getType() : type);
  Type halves = shape.clone(b.getIntegerType(4));
  if (isFrom)
    return vector::BitCastOp::create(b, loc, mlir::cast<VectorType>(type),
                                     cast(value, halves));
  return cast(
      vector::BitCastOp::create(b, loc, mlir::cast<VectorType>(halves), value),
      type);
}

/// Returns the value that `op` loads from `pointer`.
Value BodyLowering::buildLoad(Operation *op, const LoweredAccess &access,
                              Value pointer) {
  Location loc = op->getLoc();
  Type memory = getMemoryType(access.type);
  bool isBoolean = getElementTypeOrSelf(access.type).isInteger(1);
  bool isStreamed = access.isStreamed || (streamed.contains(access.memref) &&
                                          isPackOfF32(access.type));
  Value value;
  if (access.mask) {
    // A boolean is a byte in memory.
    Value none = access.passThru;
    if (isBoolean)
      none = arith::ExtUIOp::create(b, loc, memory, none);
    else if (memory != access.type)
      none = castBits(loc, none, memory);
    Value mask = access.mask;
    if (sharesByte(access.type)) // mask bits are the same for all elements
      mask = vector::ExtractStridedSliceOp::create(
          b, loc, mask, /*offsets=*/{0}, cast<VectorType>(memory).getShape(),
          /*strides=*/{1});
    auto load = LLVM::MaskedLoadOp::create(b, loc, memory, pointer, mask, none,
                                           access.alignment);
    load.setNontemporal(isStreamed);
    value = load;
  } else {
    value = LLVM::LoadOp::create(b, loc, memory, pointer, access.alignment,
                                 /*isVolatile=*/false, isStreamed);
  }
  if (isBoolean) {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(memory));
    value =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zero);
  }
  // Except for booleans, `value` has the type in memory, for example i8 instead
  // of u8 or fp8.
  Type type = op->getResult(0).getType();
  return castBits(loc, value, type);
}

void BodyLowering::buildStore(Location loc, const LoweredAccess &access,
                              Value pointer) {
  Type memory = getMemoryType(access.type);
  Value value = access.stored;
  if (getElementTypeOrSelf(access.type).isInteger(1))
    value = arith::ExtUIOp::create(b, loc, memory, value);
  else
    value = castBits(loc, value, memory);
  LLVM::StoreOp::create(b, loc, value, pointer, access.alignment,
                        /*isVolatile=*/false, access.isStreamed);
}

/// Builds an atomic maximum of integers within the block. Barriers order it
/// with other accesses, so its own ordering is monotonic.
Value BodyLowering::buildAtomic(memref::AtomicRMWOp op, Value pointer) {
  assert(op.getKind() == arith::AtomicRMWKind::maxs &&
         "expected the larger integer");
  return LLVM::AtomicRMWOp::create(
      b, op.getLoc(), LLVM::AtomicBinOp::max, pointer, op.getValue(),
      LLVM::AtomicOrdering::monotonic, /*syncscope=*/"block");
}

void BodyLowering::lowerAccess(Operation *op, const LoweredAccess &access) {
  Location loc = op->getLoc();
  b.setInsertionPoint(op);
  Value pointer = buildAddress(loc, access);
  if (auto prefetch = dyn_cast<memref::PrefetchOp>(op))
    LLVM::Prefetch::create(b, loc, pointer, prefetch.getIsWrite(),
                           prefetch.getLocalityHint(),
                           prefetch.getIsDataCache());
  else if (auto atomic = dyn_cast<memref::AtomicRMWOp>(op))
    op->getResult(0).replaceAllUsesWith(buildAtomic(atomic, pointer));
  else if (access.stored)
    buildStore(loc, access, pointer);
  else
    op->getResult(0).replaceAllUsesWith(buildLoad(op, access, pointer));
  op->erase();
}

/// True if `type` is memory through which lanes exchange values.
static bool isScratch(MemRefType type) {
  return isa_and_present<ScratchAttr>(type.getMemorySpace());
}

/// The alignment in bytes of everything in shared memory.
static constexpr int64_t kSharedAlignment = 16;

/// Returns the number of bytes that shared memory of type `type` takes.
static int64_t countBytes(MemRefType type) {
  return type.getNumElements() *
         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// Decides if all exchanges between lanes use the same shared memory in turn.
/// They do if a block does not have enough memory to give each exchange its
/// own, or if that would reduce the number of resident blocks. Reports an error
/// if even the common memory does not fit into a block.
LogicalResult BodyLowering::planSharedMemory() {
  int64_t own = 0, scratch = 0, most = 0;
  memref::AllocaOp largest;
  int64_t largestBytes = 0;
  kernel.walk([&](AwaitPushesOp) { own += kSharedAlignment; });
  kernel.walk([&](memref::AllocaOp op) {
    MemRefType type = op.getType();
    if (!type.getMemorySpace())
      return;
    int64_t bytes = llvm::alignTo(countBytes(type), kSharedAlignment);
    (isScratch(type) ? scratch : own) += bytes;
    if (isScratch(type))
      most = std::max(most, bytes);
    if (bytes > largestBytes) {
      largest = op;
      largestBytes = bytes;
    }
  });
  if (own + most > kSharedBytes)
    return largest->emitError()
           << "expected the reductions, swaps and merge loops of a kernel to "
              "take at most "
           << kSharedBytes << " bytes of a block's shared memory, got "
           << own + most << "; this one takes the most";
  int64_t threads = scratch ? kernel.getLayoutAttr().getThreads() : 0;
  if (scratch > kSharedBytes / getMachine(kernel).threadsPerBlock * threads ||
      own + scratch > kSharedBytes)
    commonBytes = most;
  return success();
}

/// Builds shared memory, a global of the module. `name` is added to the
/// function's name.
LLVM::GlobalOp BodyLowering::buildShared(Location loc, Type type,
                                         const Twine &name) {
  constexpr unsigned kShared = 3;
  b.setInsertionPoint(function);
  return LLVM::GlobalOp::create(
      b, loc, type, /*isConstant=*/false, LLVM::Linkage::Internal,
      (function.getSymName() + name).str(),
      /*value=*/Attribute(), kSharedAlignment, kShared);
}

/// Lowers memory that the kernel allocates. On a GPU, shared memory becomes a
/// global of the module. On a CPU, a row buffer goes on the stack.
void BodyLowering::lowerAlloca(memref::AllocaOp op) {
  Location loc = op.getLoc();
  MemRefType type = op.getType();
  if (!type.getMemorySpace()) {
    b.setInsertionPoint(op);
    Value count = i64Constant(loc, type.getNumElements());
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    // On a GPU, ptxas would add to a frame what a larger alignment may need,
    // and the sum would pass for spilled registers.
    int64_t alignment = isGPU(getTarget(kernel)) ? 16 : 64;
    localPointers[op] = LLVM::AllocaOp::create(
        b, loc, pointer, getMemoryType(type.getElementType()), count,
        alignment);
    return;
  }
  bool isCommon = commonBytes != 0 && isScratch(type);
  LLVM::GlobalOp global = isCommon ? commonScratch : LLVM::GlobalOp();
  if (!global) {
    Type array = isCommon ? LLVM::LLVMArrayType::get(b.getI8Type(), commonBytes)
                          : LLVM::LLVMArrayType::get(type.getElementType(),
                                                     type.getNumElements());
    global = buildShared(loc, array, "_shared" + Twine(localPointers.size()));
    if (isCommon)
      commonScratch = global;
  }
  b.setInsertionPoint(op);
  localPointers[op] = LLVM::AddressOfOp::create(b, loc, global);
}

/// Builds an mbarrier for each memory whose pushes an op awaits. At the start
/// of the function, one thread of each block initialises all of them.
void BodyLowering::buildPushBarriers() {
  llvm::SetVector<Value> awaited;
  kernel.walk([&](AwaitPushesOp op) { awaited.insert(op.getMemref()); });
  if (awaited.empty())
    return;
  Location loc = kernel.getLoc();
  for (Value memory : awaited) {
    LLVM::GlobalOp global = buildShared(loc, b.getI64Type(),
                                        "_pushes" + Twine(pushBarriers.size()));
    b.setInsertionPointToStart(&function.getBody().front());
    pushBarriers[memory] = LLVM::AddressOfOp::create(b, loc, global);
  }
  b.setInsertionPointToEnd(&function.getBody().front());
  IndexBuilder x(b, loc);
  Value isFirst =
      x.compare(arith::CmpIPredicate::eq, buildThreadId(b, loc), x.i32(0));
  auto expect = [&](OpBuilder &b, Location loc) {
    for (Value memory : awaited)
      buildMbarrierInit(b, loc, pushBarriers[memory],
                        countBytes(cast<MemRefType>(memory.getType())));
    buildMbarrierFence(b, loc);
    scf::YieldOp::create(b, loc);
  };
  scf::IfOp::create(b, loc, isFirst, expect);
}

/// Lowers a push to a store. If an op waits for what is pushed, the mbarrier of
/// the block that gets the value counts the store.
void BodyLowering::lowerPush(PushOp op) {
  Location loc = op.getLoc();
  Value memory = localPointers.lookup(op.getMemref());
  Value place =
      LLVM::GEPOp::create(b, loc, memory.getType(), op.getValue().getType(),
                          memory, toI64(b, loc, op.getIndex()));
  place = buildClusterPointer(b, loc, place, op.getBlock());
  if (Value barrier = pushBarriers.lookup(op.getMemref()))
    buildCountedStore(b, loc, op.getValue(), place,
                      buildClusterPointer(b, loc, barrier, op.getBlock()));
  else
    LLVM::StoreOp::create(b, loc, op.getValue(), place);
  op->erase();
}

/// Lowers a wait to a loop, because the instruction gives up after some time.
/// Where exchanges use the same memory, the wait is also a barrier of the
/// block: when one thread has waited, others may still load what lanes
/// exchanged before the pushes.
void BodyLowering::lowerAwaitPushes(AwaitPushesOp op) {
  Value barrier = pushBarriers.lookup(op.getMemref());
  auto test = [&](OpBuilder &b, Location loc, ValueRange) {
    Value isOpen = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::eq, buildTryWait(b, loc, barrier),
        arith::ConstantIntOp::create(b, loc, 0, 1));
    scf::ConditionOp::create(b, loc, isOpen, ValueRange());
  };
  auto again = [](OpBuilder &b, Location loc, ValueRange) {
    scf::YieldOp::create(b, loc);
  };
  scf::WhileOp::create(b, op.getLoc(), TypeRange(), ValueRange(), test, again);
  if (commonBytes != 0)
    buildBarrier(b, op.getLoc());
  op->erase();
}

LogicalResult BodyLowering::lowerDim(memref::DimOp op) {
  BlockArgument argument = getKernelArgument(op.getSource());
  std::optional<int64_t> index = op.getConstantIndex();
  if (!argument || !index)
    return op->emitError()
           << "expected the size of a kernel's argument in a constant dim, "
              "got "
           << (argument ? "a computed dim" : "the size of another memref");
  Value size = find(ParamKind::Size, argument.getArgNumber(), *index);
  op.getResult().replaceAllUsesWith(toIndex(op.getLoc(), size));
  op->erase();
  return success();
}

LogicalResult BodyLowering::lower(Operation *op) {
  Location loc = op->getLoc();
  if (std::optional<LoweredAccess> access = getAccess(op)) {
    lowerAccess(op, *access);
    return success();
  }
  if (auto alloca = dyn_cast<memref::AllocaOp>(op)) {
    lowerAlloca(alloca);
    return success();
  }
  b.setInsertionPoint(op);
  if (auto dim = dyn_cast<memref::DimOp>(op))
    return lowerDim(dim);
  if (auto metadata = dyn_cast<memref::ExtractStridedMetadataOp>(op)) {
    unsigned argument = getKernelArgument(metadata.getSource()).getArgNumber();
    int64_t owner = getStrideOwner(kernel.getGuardsAttr(), argument);
    for (auto [dim, stride] : llvm::enumerate(metadata.getStrides()))
      if (!stride.use_empty())
        stride.replaceAllUsesWith(
            toIndex(loc, find(ParamKind::Stride, owner, dim)));
    op->erase();
    return success();
  }
  if (auto reciprocal = dyn_cast<SizeReciprocalOp>(op)) {
    BlockArgument argument = getKernelArgument(reciprocal.getSource());
    reciprocal.getResult().replaceAllUsesWith(
        find(ParamKind::Reciprocal, argument.getArgNumber(),
             static_cast<unsigned>(reciprocal.getDim())));
    op->erase();
    return success();
  }
  if (auto push = dyn_cast<PushOp>(op)) {
    lowerPush(push);
    return success();
  }
  if (auto await = dyn_cast<AwaitPushesOp>(op)) {
    lowerAwaitPushes(await);
    return success();
  }
  if (auto lines = dyn_cast<TableLinesOp>(op)) {
    lines.getResult().replaceAllUsesWith(
        find(ParamKind::Lines, getTableOwner(kernel, lines)));
    op->erase();
    return success();
  }
  if (SmallVector<BlockArgument> addressed = getAddressed(op);
      !addressed.empty())
    lowerComparison(op, addressed);
  return success();
}

/// Lowers a comparison of two arguments' addresses, or of one address with
/// null.
void BodyLowering::lowerComparison(Operation *op,
                                   ArrayRef<BlockArgument> addressed) {
  Location loc = op->getLoc();
  Value lhs = find(ParamKind::Pointer, addressed[0].getArgNumber());
  bool isPresent = isa<PresentOp>(op);
  Value rhs = isPresent ? LLVM::ZeroOp::create(b, loc, lhs.getType())
                        : find(ParamKind::Pointer, addressed[1].getArgNumber());
  Value result = LLVM::ICmpOp::create(
      b, loc, isPresent ? LLVM::ICmpPredicate::ne : LLVM::ICmpPredicate::eq,
      lhs, rhs);
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
}

LogicalResult BodyLowering::run() {
  if (failed(planSharedMemory()))
    return failure();
  buildPushBarriers();
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    if (op != kernel.getOperation() && failed(lower(op)))
      return failure();
  kernel.walk([](memref::AllocaOp op) { op.erase(); });

  Location loc = kernel.getLoc();
  Block &entry = function.getBody().front();
  b.setInsertionPointToEnd(&entry);
  for (auto [param, value] : llvm::zip(params, values)) {
    if (param.getKind() != ParamKind::Scalar &&
        param.getKind() != ParamKind::GroupThreads)
      continue;
    Value scalar = value;
    BlockArgument argument = getParamArgument(kernel, param);
    if (argument.getType().isIndex())
      scalar = toIndex(loc, scalar);
    else if (argument.getType().isInteger(1))
      scalar =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, scalar,
                                arith::ConstantIntOp::create(b, loc, 0, 8));
    argument.replaceAllUsesWith(scalar);
  }
  Block &body = kernel.getBody().front();
  body.getTerminator()->erase();
  entry.getOperations().splice(entry.end(), body.getOperations());
  b.setInsertionPointToEnd(&entry);
  LLVM::ReturnOp::create(b, loc, ValueRange());
  return success();
}

LogicalResult mlafix::lowerBody(KernelOp kernel, LLVM::LLVMFuncOp function,
                                ArrayRef<ParamAttr> params, ValueRange values,
                                unsigned addressSpace,
                                const llvm::DenseSet<Value> &streamed) {
  return BodyLowering(kernel, function, params, values, addressSpace, streamed)
      .run();
}
