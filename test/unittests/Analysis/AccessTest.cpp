//===- AccessTest.cpp - Memory accesses and their order -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include "lib/Analysis/Aliasing.h"
#include "lib/Transforms/Layout/LaneConflicts.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlafix;

namespace {

const char *const states =
    R"(, %o: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"})";

TEST(Access, a_state_in_memory_is_a_row_and_an_element) {
  Kernel kernel(states, R"(
      %p = arith.constant true
      %s = mlafix.load_state %o[%t] lse %x[%t] if %p : !rows, !vec -> !state
      mlafix.store_state %s to %o[%t] : !state, !rows
  )");
  SmallVector<MemoryAccess> accesses = collectAccesses(*kernel);
  ASSERT_EQ(accesses.size(), 3u);
  EXPECT_TRUE(accesses[0].isRow && accesses[0].isState);
  EXPECT_EQ(accesses[0].getArgNumber(), 1u);
  EXPECT_TRUE(accesses[0].predicate);
  EXPECT_FALSE(accesses[1].isRow || accesses[1].isWrite);
  EXPECT_EQ(accesses[1].getArgNumber(), 0u);
  EXPECT_TRUE(accesses[2].isRow && accesses[2].isWrite);
  EXPECT_FALSE(accesses[2].predicate);
  EXPECT_FALSE(getSingleAccess(accesses[0].op));
}

TEST(Access, branches_that_only_read_write_nothing) {
  Kernel kernel("", R"(
      %p = arith.constant true
      %v = scf.if %p -> f32 {
        %a = mlafix.load %x[%t] : !vec -> f32
        scf.yield %a : f32
      } else {
        %b = arith.constant 0.0 : f32
        scf.yield %b : f32
      }
      scf.if %p {
        mlafix.store %v, %x[%t] : f32, !vec
      }
      mlafix.store %v, %x[%t] : f32, !vec
  )");
  SmallVector<Operation *> branches, stores;
  (*kernel).walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op->getName().getStringRef() == "scf.if")
      branches.push_back(op);
    if (isa<StoreOp>(op))
      stores.push_back(op);
  });
  ASSERT_EQ(branches.size(), 2u);
  EXPECT_FALSE(mayWrite(branches[0]));
  EXPECT_TRUE(mayWrite(branches[1]));
  EXPECT_FALSE(mayWriteBetween(branches[0], branches[1]));
  EXPECT_TRUE(mayWriteBetween(branches[0], stores.back()));
}

TEST(Access, one_tensor_may_be_read_and_written_row_by_row_only) {
  const char *read =
      R"(, %y: !vec {mlafix.dims = ["n"], mlafix.access = "read"})";
  Kernel same(read, R"(
      %v = mlafix.load %y[%t] : !vec -> f32
      mlafix.store %v, %x[%t] : f32, !vec
  )");
  Kernel shifted(read, R"(
      %next = arith.addi %t, %c1 : index
      %p = arith.cmpi slt, %next, %n : index
      %v = mlafix.load %y[%next] if %p : !vec -> f32
      mlafix.store %v, %x[%t] : f32, !vec
  )");
  EXPECT_TRUE(mayBeOneTensor(*same, 0, 1));
  EXPECT_FALSE(mayBeOneTensor(*same, 1, 0));
  EXPECT_FALSE(mayBeOneTensor(*shifted, 0, 1));
}

/// A kernel's body with accesses of every kind (rows, elements, slices) to
/// three tensors, any two of which may share memory.
const char *const everyKind = R"(
      %row = mlafix.load %o[%t] : !rows -> tensor<?xf32, #mlafix.dim<"D">>
      %other = mlafix.load %q[%t] : !rows -> tensor<?xf32, #mlafix.dim<"D">>
      %v = mlafix.load %o[%t, %c0] : !rows -> f32
      %w = mlafix.load %x[%t] : !vec -> f32
      mlafix.store %row, %q[%t] : tensor<?xf32, #mlafix.dim<"D">>, !rows
      mlafix.store %v, %x[%t] : f32, !vec
      mlafix.store %w, %o[%t, %c1] : f32, !rows
      mlafix.store %other, %o[%t] : tensor<?xf32, #mlafix.dim<"D">>, !rows
      %a = mlafix.load %o[%t] slice 0 to 4 : !rows -> tensor<4xf32, #mlafix.dim<4>>
      %b = mlafix.load %o[%t] slice 2 to 6 : !rows -> tensor<4xf32, #mlafix.dim<4>>
      mlafix.store %a, %o[%t] slice 0 to 4 : tensor<4xf32, #mlafix.dim<4>>, !rows
)";

TEST(Access, kinds_conflict_as_their_accesses_do) {
  Kernel kernel(std::string(states) +
                    R"(, %q: !rows {mlafix.dims = ["n", "D"],
                                    mlafix.access = "update"})",
                std::string(everyKind));
  SmallVector<MemoryAccess> accesses = collectAccesses(*kernel);
  ASSERT_EQ(accesses.size(), 11u);
  AccessKinds kinds([&](const MemoryAccess &a, const MemoryAccess &b) {
    return mayConflict(*kernel, a, b);
  });
  // getKind() adds kinds during these loops. The conflicts of a kind must also
  // include kinds that are added after it.
  for (const MemoryAccess &a : accesses)
    for (const MemoryAccess &b : accesses) {
      unsigned kind = kinds.getKind(a), other = kinds.getKind(b);
      EXPECT_EQ(kinds.getConflicts(kind).test(other),
                mayConflict(*kernel, a, b));
    }
  EXPECT_EQ(kinds.size(), accesses.size());
}

TEST(Access, accesses_that_conflict_alike_are_of_one_kind) {
  Kernel kernel(states, R"(
      %v = mlafix.load %o[%t, %c0] : !rows -> f32
      %w = mlafix.load %o[%t, %c1] : !rows -> f32
      mlafix.store %w, %o[%t, %c0] : f32, !rows
      mlafix.store %v, %o[%t, %c1] : f32, !rows
  )");
  AccessKinds kinds(
      [](const MemoryAccess &, const MemoryAccess &) { return true; });
  SmallVector<unsigned> found;
  for (const MemoryAccess &access : collectAccesses(*kernel))
    found.push_back(kinds.getKind(access));
  EXPECT_EQ(found, SmallVector<unsigned>({0, 0, 1, 1}));
}

} // namespace
