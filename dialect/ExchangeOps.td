//===- ExchangeOps.td - rows that ranks send to each other -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_EXCHANGE_OPS
#define MLAFIX_EXCHANGE_OPS

include "dialect/MlafixOpBase.td"

def Mlafix_TurnOp : Mlafix_Op<"turn", [Pure]> {
  let summary = "0 or 1, in turn from one launch of the group to the next";
  let description = [{
    All ranks get the same value. It says which half of a peers' tensor this launch stores to, since a rank that has
    not completed the preceding launch may still read the other half (`mlafix.exchange`).

    ```mlir
    mlafix.kernel @send(%staged: memref<2x2x?xf32, strided<[?, ?, ?], offset: ?>> {mlafix.dims = ["ranks", "turns", "n"], mlafix.access = "update", mlafix.peers}) {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %zero = arith.constant 0.0 : f32
      %n = memref.dim %staged, %c2 : memref<2x2x?xf32, strided<[?, ?, ?], offset: ?>>
      mlafix.forall (%t) in (%n) {
        %turn = mlafix.turn : index
        mlafix.store %zero, %staged[%c0, %turn, %t] : f32, memref<2x2x?xf32, strided<[?, ?, ?], offset: ?>>
        mlafix.exchange
      }
    }
    ```
  }];
  let results = (outs Index:$turn);
  let assemblyFormat = "attr-dict `:` type($turn)";
}

def Mlafix_ExchangeOp : Mlafix_Op<"exchange", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "what this row stored to the peers becomes visible to the same row of each rank, and theirs to this one";
  let description = [{
    A kernel has at most one exchange, directly in the grid's body. Peers' tensors have the access "update": they are
    stored to before the exchange, and read after it. After the exchange, a row may read only what the same row of each
    rank stored before it. All ranks launch grids of the same extents.

    A launch must not store where a rank may still read what an earlier launch stored. So it stores to the half that
    `mlafix.turn` gives: a rank that is past the exchange of one launch knows that all ranks have completed the launch
    before.

    The op is for GPUs only, where `mlafix-place-collectives` replaces it. If a rank does not arrive before the
    time-out, elements read from peers are NaN (integers: all bits set).

    ```mlir
    mlafix.kernel @swap(%out: memref<?xf32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"},
                        %x: memref<?xf32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"},
                        %staged: memref<2x2x?xf32, strided<[?, ?, ?], offset: ?>> {mlafix.dims = ["ranks", "turns", "n"], mlafix.access = "update", mlafix.peers},
                        %rank: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = memref.dim %out, %c0 : memref<?xf32, strided<[?], offset: ?>>
      mlafix.forall (%t) in (%n) {
        %turn = mlafix.turn : index
        %other = arith.subi %c1, %rank : index
        %v = mlafix.load %x[%t] : memref<?xf32, strided<[?], offset: ?>> -> f32
        mlafix.store %v, %staged[%other, %turn, %t] : f32, memref<2x2x?xf32, strided<[?, ?, ?], offset: ?>>
        mlafix.exchange
        %w = mlafix.load %staged[%rank, %turn, %t] : memref<2x2x?xf32, strided<[?, ?, ?], offset: ?>> -> f32
        mlafix.store %w, %out[%t] : f32, memref<?xf32, strided<[?], offset: ?>>
      }
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
}

#endif // MLAFIX_EXCHANGE_OPS
