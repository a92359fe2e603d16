// Every op, type and attribute is printed and parsed without a change, in the custom and the generic form.
// RUN: %mlafix-opt %s | %mlafix-opt | FileCheck %s
// RUN: %mlafix-opt %s --mlir-print-op-generic | %mlafix-opt | FileCheck %s
// The proofs accept all ops, including accesses to the buffer of a lane.
// RUN: %mlafix-opt %s --mlafix-prove -o /dev/null

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>
!state = !mlafix.state<"D", e>
!tile = tensor<?xf32, #mlafix.dim<"D">>

// CHECK-LABEL: mlafix.kernel @dense(
// CHECK-SAME: %out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.access = "write", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T"}
// CHECK-SAME: %out_lse: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.access = "write", mlafix.dims = ["H", "n"], mlafix.optional}
// CHECK-SAME: %limit: index {mlafix.at_most = "n"}
mlafix.kernel @dense(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %out_lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "write", mlafix.optional},
    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "read"},
    %lens: !ints {mlafix.dims = ["n"], mlafix.access = "read"},
    %limit: index {mlafix.at_most = "n"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: %[[N:.*]] = memref.dim %out
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  // CHECK: mlafix.forall (%[[T:.*]], %[[Hi:.*]]) in (%[[N]], %{{.*}}) {
  mlafix.forall (%t, %h) in (%n, %H) {
    %p = arith.cmpi ult, %t, %limit : index
    // CHECK: %[[A:.*]] = mlafix.load_state %x[%[[T]], %[[Hi]]] lse %lse[%[[Hi]], %[[T]]] if %[[P:.*]] : memref<{{.*}}>, memref<{{.*}}> -> <"D", e>
    %a = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] if %p : !rows, !lses -> !state
    // CHECK: %[[B:.*]] = mlafix.load_state %x[%[[T]], %[[Hi]]] lse %lse[%[[Hi]], %[[T]]] : memref
    %b = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] : !rows, !lses -> !state
    // CHECK: %[[C:.*]] = mlafix.identity : <"D", e>
    %c = mlafix.identity : !state
    // CHECK: %[[D:.*]] = mlafix.mask %[[B]], %[[P]] : <"D", e>
    %d = mlafix.mask %b, %p : !state
    // CHECK: %[[M:.*]] = mlafix.merge %[[A]], %[[C]], %[[D]] : <"D", e>
    %m = mlafix.merge %a, %c, %d : !state
    // CHECK: %[[S:.*]] = mlafix.make_state %{{.*}} lse %{{.*}} : tensor<?xf32, #mlafix.dim<"D">> -> <"D", e, sink>
    %logit = arith.constant 1.0 : f32
    %zeros = mlafix.splat %logit : f32 -> !tile
    %sink = mlafix.make_state %zeros lse %logit : !tile -> !mlafix.state<"D", e, sink>
    // CHECK: %[[SM:.*]] = mlafix.merge %[[M]], %[[S]] : (!mlafix.state<"D", e>, !mlafix.state<"D", e, sink>) -> !mlafix.state<"D", e, sink>
    %sm = mlafix.merge %m, %sink : (!state, !mlafix.state<"D", e, sink>) -> !mlafix.state<"D", e, sink>
    // CHECK: mlafix.rebase %[[SM]] : <"D", e, sink> -> <"D", 2, sink>
    %sr = mlafix.rebase %sm : !mlafix.state<"D", e, sink> -> !mlafix.state<"D", 2, sink>
    // CHECK: mlafix.merge %[[M]] : (!mlafix.state<"D", e>) -> !mlafix.state<"D", e, sink>
    %wide = mlafix.merge %m : (!state) -> !mlafix.state<"D", e, sink>
    // CHECK: %[[R:.*]] = mlafix.rebase %[[M]] : <"D", e> -> <"D", 2>
    %r = mlafix.rebase %m : !state -> !mlafix.state<"D", 2>
    // CHECK: %[[HAS:.*]] = mlafix.present %out_lse : memref
    %has = mlafix.present %out_lse : !lses
    // CHECK: mlafix.store_state %[[R]] to %out[%[[T]], %[[Hi]]] lse %out_lse[%[[Hi]], %[[T]]] if %[[HAS]] : <"D", 2>, memref<{{.*}}>, memref
    mlafix.store_state %r to %out[%t, %h] lse %out_lse[%h, %t] if %has : !mlafix.state<"D", 2>, !rows, !lses
    // CHECK: mlafix.store_state %[[M]] to %out[%[[T]], %[[Hi]]] : <"D", e>, memref
    mlafix.store_state %m to %out[%t, %h] : !state, !rows
    // CHECK: mlafix.store_state %[[M]] lse %out_lse[%[[Hi]], %[[T]]] : <"D", e>, memref
    mlafix.store_state %m lse %out_lse[%h, %t] : !state, !lses

    // CHECK: %[[V:.*]] = mlafix.load %x[%[[T]], %[[Hi]]] : memref<{{.*}}> -> tensor<?xf32, #mlafix.dim<"D">>
    %v = mlafix.load %x[%t, %h] : !rows -> !tile
    %zero = arith.constant 0 : i32
    // CHECK: mlafix.load %lens[%[[T]]] if %[[P]] else %{{.*}} : memref<{{.*}}> -> i32
    %len = mlafix.load %lens[%t] if %p else %zero : !ints -> i32
    // CHECK: %[[SUM:.*]] = mlafix.reduce add %[[V]] : tensor
    %sum = mlafix.reduce add %v : !tile
    // CHECK: mlafix.iota : tensor<?xi32, #mlafix.dim<"D">>
    %ids = mlafix.iota : tensor<?xi32, #mlafix.dim<"D">>
    // CHECK: mlafix.arg_reduce max %[[V]] : tensor
    %best = mlafix.arg_reduce max %v : !tile
    // CHECK: mlafix.arg_reduce min %{{.*}} : tensor<?xi32, #mlafix.dim<"D">>
    %least = mlafix.arg_reduce min %ids : tensor<?xi32, #mlafix.dim<"D">>
    // CHECK: mlafix.scan add %[[V]] : tensor<?xf32, #mlafix.dim<"D">>
    %sums = mlafix.scan add %v : !tile
    // CHECK: mlafix.swap %[[V]] by 4 : tensor<?xf32, #mlafix.dim<"D">>
    %swapped = mlafix.swap %v by 4 : !tile
    // CHECK: mlafix.scan min %{{.*}} : tensor<?xi32, #mlafix.dim<"D">>
    %lowest = mlafix.scan min %ids : tensor<?xi32, #mlafix.dim<"D">>
    // CHECK: mlafix.reduce max
    %max = mlafix.reduce max %v : !tile
    // CHECK: mlafix.reduce min
    %min = mlafix.reduce min %v : !tile
    // CHECK: %[[S:.*]] = mlafix.splat %[[SUM]] : f32 -> tensor<?xf32, #mlafix.dim<"D">>
    %s = mlafix.splat %sum : f32 -> !tile
    // CHECK: mlafix.store %[[S]], %out[%[[T]], %[[Hi]]] if %[[P]] : tensor<{{.*}}>, memref
    mlafix.store %s, %out[%t, %h] if %p : !tile, !rows
    // CHECK: mlafix.store %[[SUM]], %out_lse[%[[Hi]], %[[T]]] : f32, memref
    mlafix.store %sum, %out_lse[%h, %t] : f32, !lses
  }
}

// CHECK-LABEL: mlafix.kernel @ragged
mlafix.kernel @ragged(
    %lse: !lses {mlafix.dims = ["n", "H"], mlafix.access = "update"},
    %cu: !ints {mlafix.dims = ["b1"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %lse, %c0 : !lses
  %H = memref.dim %lse, %c1 : !lses
  // CHECK: mlafix.ragged_forall (%[[SEG:.*]], %[[ROW:.*]], %[[H:.*]]) in (%cu, %{{.*}}, %{{.*}}) : memref<{{.*}}> where {
  // CHECK: arith.cmpi ne, %[[SEG]]
  // CHECK: mlafix.yield %{{.*}} : i1
  // CHECK: } do {
  // CHECK: mlafix.store %{{.*}}, %lse[%[[ROW]], %[[H]]]
  mlafix.ragged_forall (%seg, %row, %h) in (%cu, %n, %H) : !ints where {
    %p = arith.cmpi ne, %seg, %c0 : index
    mlafix.yield %p : i1
  } do {
    %zero = arith.constant 0.0 : f32
    mlafix.store %zero, %lse[%row, %h] : f32, !lses
  }
}

// CHECK-LABEL: mlafix.kernel @planned
// CHECK-SAME: attributes {plan = #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 8, rows = 8>>}
mlafix.kernel @planned(%x: memref<?x128xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "update"})
    attributes {plan = #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 8, rows = 8>>} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x128xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // CHECK: mlafix.load %x{{.*}} -> tensor<128xf32, #mlafix.dim<128>>
    %v = mlafix.load %x[%t] : memref<?x128xf32, strided<[?, 1], offset: ?>> -> tensor<128xf32, #mlafix.dim<128>>
    // CHECK: mlafix.identity : <128, 2>
    %e = mlafix.identity : !mlafix.state<128, 2>
    mlafix.store %v, %x[%t] : tensor<128xf32, #mlafix.dim<128>>, memref<?x128xf32, strided<[?, 1], offset: ?>>
  }
}

// CHECK-LABEL: mlafix.kernel @lanes
mlafix.kernel @lanes(%x: memref<?x128xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %m: i32, %p: i1) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x128xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // CHECK: mlafix_thread.row lane %{{.*}} mask %m {
    // CHECK-NEXT: %[[BUFFER:.*]] = memref.alloca()
    // CHECK-NEXT: %[[V:.*]] = mlafix.load %x
    // The buffer contains the eight elements of the row that one lane holds.
    // CHECK-NEXT: mlafix.store %[[V]], %[[BUFFER]][] : tensor<128xf32, #mlafix.dim<128>>, memref<8xf32>
    // CHECK-NEXT: mlafix.load %[[BUFFER]][] : memref<8xf32> -> tensor<128xf32, #mlafix.dim<128>>
    // CHECK-NEXT: }
    mlafix_thread.row lane %t mask %m {
      %buffer = memref.alloca() : memref<8xf32>
      %v = mlafix.load %x[%t] : memref<?x128xf32, strided<[?, 1], offset: ?>> -> tensor<128xf32, #mlafix.dim<128>>
      mlafix.store %v, %buffer[] : tensor<128xf32, #mlafix.dim<128>>, memref<8xf32>
      %w = mlafix.load %buffer[] : memref<8xf32> -> tensor<128xf32, #mlafix.dim<128>>
    }
    // CHECK: mlafix_thread.row groups(%m, %m, %m, %m) {
    // CHECK-NEXT: }
    mlafix_thread.row groups(%m, %m, %m, %m) {}
    %a = llvm.mlir.zero : !llvm.ptr<1>
    // CHECK: mlafix_thread.predicated_load %{{.*}} if %p : !llvm.ptr<1> -> vector<8xbf16>
    %pack = mlafix_thread.predicated_load %a if %p : !llvm.ptr<1> -> vector<8xbf16>
    // CHECK: mlafix_thread.predicated_load %{{.*}} if %p : !llvm.ptr<1> -> f32
    %word = mlafix_thread.predicated_load %a if %p : !llvm.ptr<1> -> f32
  }
}
