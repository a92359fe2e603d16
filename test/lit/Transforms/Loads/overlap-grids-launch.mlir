// The instruction that lets the next grid start (griddepcontrol.launch_dependents) moves behind the load of an index
// and the loads of rows that do not need the index. ptxas moves no load across this instruction, so these loads stay
// together. Otherwise, the code would wait for the index between the loads of two packs of a row. If all rows of the
// grid are prefetched (2.75 MB, 32 bytes per thread), the next grid may start at once.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(llvm.func(mlafix-overlap-grids))" | FileCheck %s

#plan = #mlafix.plan<layout = <lanes = 16, packs = 2, pack = 8, rows = 16>, early_bytes = 2883584>

// CHECK-LABEL: llvm.func @indexed
// CHECK-DAG: %[[GRID:.*]] = nvvm.read.ptx.sreg.nctaid.x
// CHECK-DAG: %[[BLOCK:.*]] = nvvm.read.ptx.sreg.ntid.x
// CHECK: %[[THREADS:.*]] = llvm.mul %[[GRID]], %[[BLOCK]] : i32
// CHECK: %[[MOST:.*]] = llvm.mlir.constant(90112 : i32)
// CHECK: %[[SMALL:.*]] = llvm.icmp "ule" %[[THREADS]], %[[MOST]]
// CHECK: scf.if %[[SMALL]] {
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: }
// CHECK: scf.if
// CHECK-NEXT: llvm.load %{{.*}} : !llvm.ptr<1> -> i64
// CHECK-NEXT: llvm.load %{{.*}} : !llvm.ptr<1> -> vector<8xbf16>
// CHECK-NEXT: llvm.load %{{.*}} : !llvm.ptr<1> -> vector<8xbf16>
// CHECK-NEXT: llvm.inline_asm has_side_effects "griddepcontrol.launch_dependents;", "~{memory}"
// CHECK: llvm.load %{{.*}} : !llvm.ptr<1> -> vector<8xbf16>
llvm.func @indexed(%x: !llvm.ptr<1>, %places: !llvm.ptr<1>, %table: !llvm.ptr<1>, %isRow: i1) attributes {mlafix.plan = #plan} {
  %second = llvm.getelementptr %x[8] : (!llvm.ptr<1>) -> !llvm.ptr<1>, bf16
  nvvm.griddepcontrol launch_dependents
  scf.if %isRow {
    %a = llvm.load %x : !llvm.ptr<1> -> vector<8xbf16>
    %i = llvm.load %places : !llvm.ptr<1> -> i64
    %q = llvm.getelementptr %table[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %c = llvm.load %q : !llvm.ptr<1> -> vector<8xbf16>
    %b = llvm.load %second : !llvm.ptr<1> -> vector<8xbf16>
    %s = arith.addf %a, %c : vector<8xbf16>
    llvm.store %s, %x : vector<8xbf16>, !llvm.ptr<1>
    llvm.store %b, %second : vector<8xbf16>, !llvm.ptr<1>
  }
  llvm.return
}

// If no load depends on another load, nothing changes.
// CHECK-LABEL: llvm.func @plain
// CHECK: nvvm.griddepcontrol launch_dependents
// CHECK-NOT: inline_asm
llvm.func @plain(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %isRow: i1) {
  nvvm.griddepcontrol launch_dependents
  scf.if %isRow {
    %a = llvm.load %x : !llvm.ptr<1> -> vector<8xbf16>
    llvm.store %a, %y : vector<8xbf16>, !llvm.ptr<1>
  }
  llvm.return
}

// A row is loaded after a store. The load cannot move before the store, so the instruction does not move behind the
// load.
// CHECK-LABEL: llvm.func @stored
// CHECK: nvvm.griddepcontrol launch_dependents
// CHECK-NOT: inline_asm
// CHECK: llvm.store
// CHECK: llvm.load %{{.*}} -> vector<8xbf16>
llvm.func @stored(%x: !llvm.ptr<1>, %places: !llvm.ptr<1>, %table: !llvm.ptr<1>, %isRow: i1) {
  nvvm.griddepcontrol launch_dependents
  scf.if %isRow {
    %i = llvm.load %places : !llvm.ptr<1> -> i64
    %q = llvm.getelementptr %table[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %c = llvm.load %q : !llvm.ptr<1> -> bf16
    llvm.store %c, %x : bf16, !llvm.ptr<1>
    %a = llvm.load %x : !llvm.ptr<1> -> vector<8xbf16>
    llvm.store %a, %table : vector<8xbf16>, !llvm.ptr<1>
  }
  llvm.return
}

// Lane groups load their first chunk before the merge loop. The next grid may start after these loads, or at once if
// all first chunks are prefetched. A branch that stores is not treated as a chunk.
// RUN: sed 's/scf.yield %%a :/llvm.store %%a, %%y : vector<4xf32>, !llvm.ptr<1> &/' %s | %mlafix-opt --pass-pipeline="builtin.module(llvm.func(mlafix-overlap-grids))" | FileCheck %s --check-prefix=STORES
// STORES-LABEL: llvm.func @chunks
// STORES: nvvm.griddepcontrol launch_dependents
// STORES-NOT: inline_asm
// CHECK-LABEL: llvm.func @chunks
// CHECK: %[[SMALL:.*]] = llvm.icmp "ule"
// CHECK: scf.if %[[SMALL]] {
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NOT: launch_dependents
// CHECK: %[[FIRST:.*]] = scf.if
// CHECK: llvm.inline_asm has_side_effects "griddepcontrol.launch_dependents;", "~{memory}"
// CHECK-NEXT: scf.for {{.*}} iter_args(%{{.*}} = %[[FIRST]])
// CHECK-NOT: launch_dependents
llvm.func @chunks(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %exists: i1, %n: i32) attributes {mlafix.plan = #plan} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %none = llvm.mlir.constant(dense<0.0> : vector<4xf32>) : vector<4xf32>
  nvvm.griddepcontrol launch_dependents
  %first = scf.if %exists -> (vector<4xf32>) {
    %a = llvm.load %x : !llvm.ptr<1> -> vector<4xf32>
    scf.yield %a : vector<4xf32>
  } else {
    scf.yield %none : vector<4xf32>
  }
  %all = scf.for %i = %zero to %n step %one iter_args(%v = %first) -> (vector<4xf32>) : i32 {
    %next = llvm.load %x : !llvm.ptr<1> -> vector<4xf32>
    %w = arith.addf %v, %next : vector<4xf32>
    scf.yield %w : vector<4xf32>
  }
  llvm.store %all, %y : vector<4xf32>, !llvm.ptr<1>
  llvm.return
}
