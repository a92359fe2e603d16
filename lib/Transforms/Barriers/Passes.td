//===- Passes.td - what lanes and ranks wait for -----------*- tablegen -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_BARRIERS_PASSES
#define MLAFIX_TRANSFORMS_BARRIERS_PASSES

include "lib/Transforms/PassOptions.td"

def PlaceCollectivesPass : Pass<"mlafix-place-collectives", "::mlafix::KernelOp"> {
  let summary = "the ranks of a collective kernel wait for each other";
  let description = [{
    A kernel may read other ranks' tensors (`mlafix.peers`) once the ranks' preceding grids have completed. The kernel
    must not end before all ranks have read what it, or the next grid, may overwrite. So each block waits for the other
    ranks before it runs the row's program. The last block to end tells all ranks that it has read their memory, and
    waits until all ranks have said the same. If a rank has not arrived by the time a block has read everything, a
    copy of the program stores the results instead. The copy computes them as if all elements of the peers' tensors were
    NaN (for integers, all bits set), and reads no peer's memory. For GPUs; on a CPU all tensors belong to one process.

    A row with `mlafix.exchange` becomes two programs. The first has the ops before the exchange, which store to the
    peers. The second runs once the same block of each rank has stored. It has the ops after the exchange, and those
    before it that they need. Nothing waits at the end: the next launch stores to other memory (`mlafix.turn`), and no
    rank stores to the same memory again before this rank has completed this launch. Rows put scalars for the peers into
    shared memory, and neighbouring threads send the scalars of neighbouring rows together, because a link takes about
    as long for 4 bytes as for 128.

    ```mlir
    // Before
    mlafix_thread.row lane %lane {
      %v = mlafix.load %parts[%r, %t] : …
      mlafix.store %v, %out[%t] : …
    }
    // After
    %arrived = mlafix_thread.wait_peers : i1
    scf.if %arrived {
      mlafix_thread.row lane %lane {
        %v = mlafix.load %parts[%r, %t] : …
        mlafix.store %v, %out[%t] : …
      }
    }
    %valid = mlafix_thread.release_peers %arrived : i1
    %isMarked = arith.xori %valid, %true : i1
    scf.if %isMarked {
      mlafix_thread.row lane %lane {
        mlafix.store %nan, %out[%t] : …
      }
    }

    // Before
    mlafix_thread.row lane %lane {
      %turn = mlafix.turn : index
      mlafix.store %v, %parts[%r, %turn, %t] : …
      mlafix.exchange
      %w = mlafix.load %parts[%rank, %turn, %t] : …
      mlafix.store %w, %out[%t] : …
    }
    // After
    %turn, %sends = mlafix_thread.begin_exchange : index, i1
    mlafix_thread.row lane %lane {
      mlafix.store %v, %parts[%r, %turn, %t] if %sends : …
    }
    %arrived = mlafix_thread.end_exchange %sends : i1
    scf.if %arrived {
      mlafix_thread.row lane %lane {
        %w = mlafix.load %parts[%rank, %turn, %t] : …
        mlafix.store %w, %out[%t] : …
      }
    } else {
      mlafix_thread.row lane %lane {
        mlafix.store %nan, %out[%t] : …
      }
    }
    ```
  }];
  let dependentDialects = [
      "::mlafix::MlafixThreadDialect", "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
      "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect"];
}

def SeparateLanesPass : Pass<"mlafix-separate-lanes", "::mlafix::KernelOp"> {
  let summary = "lanes of a row wait for each other where one could overtake another";
  let description = [{
    Puts a barrier before each access of a row's program that may touch what another lane of the row has yet to read or
    write (N11). Outputs may be inputs, so a lane's store could otherwise overtake another lane's load of the same
    scalar. Accesses to rows need no barrier among themselves: a lane touches only its own elements. For
    `mlafix_thread.row`.

    ```mlir
    // Before
    mlafix_thread.row lane %lane mask %mask {
      mlafix.store %tile, %x[%t] : …
      %v = mlafix.load %x[%t, %i] : … -> f32
    }
    // After
    mlafix_thread.row lane %lane mask %mask {
      mlafix.store %tile, %x[%t] : …
      nvvm.bar.warp.sync %mask : i32
      %v = mlafix.load %x[%t, %i] : … -> f32
    }
    ```
  }];
  let dependentDialects = ["::mlir::NVVM::NVVMDialect"];
}

#endif // MLAFIX_TRANSFORMS_BARRIERS_PASSES
