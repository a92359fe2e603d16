//===- PromiseOps.td - what an author promises -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PROMISE_OPS
#define MLAFIX_PROMISE_OPS

include "dialect/MlafixOpBase.td"

def Mlafix_AssumeOp : Mlafix_Op<"assume", [MemoryEffects<[MemWrite]>]> {
  let summary = "a promise that a condition holds";
  let description = [{
    Before the grid, the condition is about integer arguments and sizes of tensors that are always given. Each launch
    checks the condition. If it does not hold, the launch is refused with a message that contains the text, such as
    "expected n % 16 == 0, got n = 20".

    In the grid, the condition is about values that rows read or compute, so no launch can check it. The proofs rely on
    the condition for all ops after the `mlafix.assume` in its block, and say so (`mlafix-prove`: promised). A row for
    which the condition does not hold may do anything. `mlafix-guard-bounds` removes the op.

    Folds: an op whose condition is always true is erased.

    ```mlir
    mlafix.kernel @gather(%out: memref<?xf32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"},
                          %x: memref<?xf32, strided<[?], offset: ?>> {mlafix.dims = ["m"], mlafix.access = "read"},
                          %idx: memref<?xi32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}) {
      %c0 = arith.constant 0 : index
      %n = memref.dim %out, %c0 : memref<?xf32, strided<[?], offset: ?>>
      %m = memref.dim %x, %c0 : memref<?xf32, strided<[?], offset: ?>>
      %fits = arith.cmpi sle, %n, %m : index
      mlafix.assume %fits, "n <= m"
      mlafix.forall (%t) in (%n) {
        %v = mlafix.load %idx[%t] : memref<?xi32, strided<[?], offset: ?>> -> i32
        %i = arith.index_cast %v : i32 to index
        %inside = arith.cmpi ult, %i, %m : index
        mlafix.assume %inside, "0 <= idx[t] < m"
        %y = mlafix.load %x[%i] : memref<?xf32, strided<[?], offset: ?>> -> f32
        mlafix.store %y, %out[%t] : f32, memref<?xf32, strided<[?], offset: ?>>
      }
    }
    ```
  }];
  let arguments = (ins I1:$condition, StrAttr:$text);
  let assemblyFormat = "$condition `,` $text attr-dict";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Mlafix_DistinctOp : Mlafix_Op<"distinct", [HasParent<"KernelOp">, MemoryEffects<[MemWrite]>]> {
  let summary = "a promise that the entries of a table are distinct";
  let description = [{
    No two entries of the table that are at least 0 are equal. So two rows that use different entries as indices store
    to different elements. Negative entries, as in padding, may repeat. The proofs rely on the promise, and say so
    (`mlafix-prove`: promised). The op stands before the grid; `mlafix-guard-bounds` removes it.

    ```mlir
    mlafix.kernel @scatter(%out: memref<?xf32, strided<[?], offset: ?>> {mlafix.dims = ["m"], mlafix.access = "update"},
                           %slots: memref<?xi32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}) {
      %c0 = arith.constant 0 : index
      %n = memref.dim %slots, %c0 : memref<?xi32, strided<[?], offset: ?>>
      mlafix.distinct %slots : memref<?xi32, strided<[?], offset: ?>>
      mlafix.forall (%t) in (%n) {
        %v = mlafix.load %slots[%t] : memref<?xi32, strided<[?], offset: ?>> -> i32
        %i = arith.index_cast %v : i32 to index
        %y = arith.sitofp %v : i32 to f32
        mlafix.store %y, %out[%i] : f32, memref<?xf32, strided<[?], offset: ?>>
      }
    }
    ```
  }];
  let arguments = (ins AnyMemRef:$table);
  let assemblyFormat = "$table attr-dict `:` type($table)";
  let hasVerifier = 1;
}

#endif // MLAFIX_PROMISE_OPS
