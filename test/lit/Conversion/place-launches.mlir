// The next grid is let begin behind the loads of rows that need no memory to be found, where others have an index from memory: ptxas moves nothing
// across that, and would otherwise wait for the index between two packs of a row.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(llvm.func(mlafix-place-launches))" | FileCheck %s

// CHECK-LABEL: llvm.func @indexed
// CHECK-NOT: griddepcontrol launch_dependents
// CHECK: scf.if
// CHECK-NEXT: llvm.load %{{.*}} : !llvm.ptr<1> -> vector<8xbf16>
// CHECK-NEXT: llvm.load %{{.*}} : !llvm.ptr<1> -> vector<8xbf16>
// CHECK-NEXT: llvm.inline_asm has_side_effects "griddepcontrol.launch_dependents;", "~{memory}"
// CHECK-NEXT: llvm.load %{{.*}} : !llvm.ptr<1> -> i64
llvm.func @indexed(%x: !llvm.ptr<1>, %places: !llvm.ptr<1>, %table: !llvm.ptr<1>, %isRow: i1) {
  %second = llvm.getelementptr %x[8] : (!llvm.ptr<1>) -> !llvm.ptr<1>, bf16
  nvvm.griddepcontrol wait
  nvvm.griddepcontrol launch_dependents
  scf.if %isRow {
    %i = llvm.load %places : !llvm.ptr<1> -> i64
    %a = llvm.load %x : !llvm.ptr<1> -> vector<8xbf16>
    %q = llvm.getelementptr %table[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %c = llvm.load %q : !llvm.ptr<1> -> vector<8xbf16>
    %b = llvm.load %second : !llvm.ptr<1> -> vector<8xbf16>
    %s = arith.addf %a, %c : vector<8xbf16>
    llvm.store %s, %x : vector<8xbf16>, !llvm.ptr<1>
    llvm.store %b, %second : vector<8xbf16>, !llvm.ptr<1>
  }
  llvm.return
}

// Where no load needs another, everything stays as it is.
// CHECK-LABEL: llvm.func @plain
// CHECK: nvvm.griddepcontrol launch_dependents
// CHECK-NOT: inline_asm
llvm.func @plain(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %isRow: i1) {
  nvvm.griddepcontrol wait
  nvvm.griddepcontrol launch_dependents
  scf.if %isRow {
    %a = llvm.load %x : !llvm.ptr<1> -> vector<8xbf16>
    llvm.store %a, %y : vector<8xbf16>, !llvm.ptr<1>
  }
  llvm.return
}

// A row is not loaded ahead of a store.
// CHECK-LABEL: llvm.func @stored
// CHECK: nvvm.griddepcontrol launch_dependents
// CHECK-NOT: inline_asm
// CHECK: llvm.store
// CHECK: llvm.load %{{.*}} -> vector<8xbf16>
llvm.func @stored(%x: !llvm.ptr<1>, %places: !llvm.ptr<1>, %table: !llvm.ptr<1>, %isRow: i1) {
  nvvm.griddepcontrol wait
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
