// Branches and loops become blocks in the order of the text, inner ones within outer ones.
// RUN: %mlafix-opt %s --mlafix-regions-to-branches | FileCheck %s

// CHECK-LABEL: llvm.func @branches(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr, %[[A:.*]]: i1, %[[B:.*]]: i1)
// CHECK: cf.cond_br %[[A]], ^[[FIRST:.*]], ^[[REST:[a-z0-9]*]]
// CHECK-NEXT: ^[[FIRST]]:
// CHECK-NEXT: cf.cond_br %[[B]], ^[[INNER:.*]], ^[[JOIN:[a-z0-9]*]]
// CHECK-NEXT: ^[[INNER]]:
// CHECK-NEXT: llvm.store
// CHECK-NEXT: cf.br ^[[JOIN]]
// CHECK-NEXT: ^[[JOIN]]:
// CHECK-NEXT: cf.br ^[[REST]]
// CHECK-NEXT: ^[[REST]]:
// CHECK-NEXT: cf.cond_br %[[B]], ^[[SECOND:.*]], ^[[LAST:[a-z0-9]*]]
// CHECK-NEXT: ^[[SECOND]]:
// CHECK-NEXT: llvm.store
// CHECK-NEXT: cf.br ^[[LAST]]
// CHECK-NEXT: ^[[LAST]]:
// CHECK-NEXT: llvm.return
llvm.func @branches(%p: !llvm.ptr, %a: i1, %b: i1) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.if %a {
    scf.if %b {
      llvm.store %zero, %p : i32, !llvm.ptr
    }
  }
  scf.if %b {
    llvm.store %one, %p : i32, !llvm.ptr
  }
  llvm.return
}

// The condition of the outer loop uses the result of an inner loop. Both loops carry a value.
// CHECK-LABEL: llvm.func @loops(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr, %[[MORE:.*]]: i1)
// CHECK: cf.br ^[[OUTER:[a-z0-9]*]](
// CHECK: ^[[OUTER]](%[[X:.*]]: i32):
// CHECK: cf.br ^[[INNER:[a-z0-9]*]](%[[X]] : i32)
// CHECK: ^[[INNER]](%[[Y:.*]]: i32):
// CHECK: %[[SUM:.*]] = arith.addi %[[Y]],
// CHECK: cf.cond_br %[[MORE]], ^[[BODY:[a-z0-9]*]](%[[SUM]] : i32), ^[[BEHIND:[a-z0-9]*]]
// CHECK: ^[[BODY]](%[[Z:.*]]: i32):
// CHECK-NEXT: %[[TWICE:.*]] = arith.addi %[[Z]], %[[Z]]
// CHECK-NEXT: cf.br ^[[INNER]](%[[TWICE]] : i32)
// CHECK: ^[[BEHIND]]:
// CHECK: %[[LESS:.*]] = arith.cmpi slt, %[[SUM]],
// CHECK: cf.cond_br %[[LESS]], ^[[OUTER]](%[[SUM]] : i32), ^[[END:[a-z0-9]*]]
// CHECK: ^[[END]]:
// CHECK-NEXT: llvm.store %[[SUM]], %[[P]]
llvm.func @loops(%p: !llvm.ptr, %more: i1) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %outer = scf.while (%x = %zero) : (i32) -> i32 {
    %inner = scf.while (%y = %x) : (i32) -> i32 {
      %sum = arith.addi %y, %one : i32
      scf.condition(%more) %sum : i32
    } do {
    ^bb0(%z: i32):
      %twice = arith.addi %z, %z : i32
      scf.yield %twice : i32
    }
    %less = arith.cmpi slt, %inner, %one : i32
    scf.condition(%less) %inner : i32
  } do {
  ^bb0(%w: i32):
    scf.yield %w : i32
  }
  llvm.store %outer, %p : i32, !llvm.ptr
  llvm.return
}
