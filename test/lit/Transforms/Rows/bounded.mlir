// The packs of a row along a dim with a bound are single elements. Only elements below the dim's size are loaded,
// stored and reduced. If a guard says that the size is a multiple of four, packs have four elements, and loops over
// packs end at the size.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,mlafix-rows-to-packs))" | FileCheck %s

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!ints = memref<?xi32, strided<[1], offset: ?>>
!col = memref<?xf32, strided<[?], offset: ?>>
!tile = tensor<40xf32, #mlafix.dim<"b" most 40>>
!fours = tensor<40xf32, #mlafix.dim<"b" most 40 by 4>>
module attributes {mlafix.target = "sm_80"} {
  // CHECK-LABEL: mlafix.kernel @sum
  mlafix.kernel @sum(%x: !rows {mlafix.dims = ["n", "b"], mlafix.access = "update"}, %y: !col {mlafix.dims = ["n"], mlafix.access = "write"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 2, pack = 4, rows = 8>>, most = {b = 40}} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      // CHECK: %[[B:.*]] = memref.dim %x, %{{c1.*}}
      // CHECK: %[[IS:.*]] = arith.cmpi ult, %{{.*}}, %[[B]] : index
      // CHECK: %[[MASK:.*]] = vector.broadcast %[[IS]] : i1 to vector<1xi1>
      // CHECK: vector.maskedload %x[%{{.*}}], %[[MASK]]
      // CHECK: vector.maskedload %x
      %v = mlafix.load %x[%t] : !rows -> !tile
      // CHECK-COUNT-2: arith.select %{{.*}} : f32
      // CHECK: nvvm.shfl.sync
      %s = mlafix.reduce add %v : !tile
      // CHECK: %[[B:.*]] = memref.dim %x, %{{c1.*}}
      // CHECK: %[[IS:.*]] = arith.cmpi ult, %{{.*}}, %[[B]] : index
      // CHECK: scf.if %[[IS]] {
      // CHECK-NEXT: vector.store %{{.*}}, %x{{.*}} vector<1xf32>
      mlafix.store %v, %x[%t] : !tile, !rows
      mlafix.store %s, %y[%t] : f32, !col
    }
  }

  // A row of `lens` is shorter than the row that it is read into. Elements beyond the size of its dim `b` are not
  // loaded, and its elements are not repeated.
  // CHECK-LABEL: mlafix.kernel @cumulate
  mlafix.kernel @cumulate(%c: !ints {mlafix.dims = ["c"], mlafix.access = "write"}, %lens: !ints {mlafix.dims = ["b"], mlafix.access = "read"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 2, pack = 4, rows = 1>>, most = {b = 40, c = 41}} {
    %c1 = arith.constant 1 : index
    mlafix.forall (%t) in (%c1) {
      // CHECK: %[[E:.*]] = arith.subi
      // CHECK-NOT: arith.rem
      // CHECK: %[[B:.*]] = memref.dim %lens
      // CHECK: arith.cmpi ult, %[[E]], %[[B]] : index
      // CHECK: vector.maskedload %lens
      %v = mlafix.load_into %lens[] from 1 : !ints -> tensor<41xi32, #mlafix.dim<"c" most 41>>
      %s = mlafix.scan add %v : tensor<41xi32, #mlafix.dim<"c" most 41>>
      mlafix.store %s, %c[] : tensor<41xi32, #mlafix.dim<"c" most 41>>, !ints
    }
  }

  // CHECK-LABEL: mlafix.kernel @whole
  mlafix.kernel @whole(%x: !rows {mlafix.dims = ["n", "b"], mlafix.access = "update"}, %y: !col {mlafix.dims = ["n"], mlafix.access = "write"})
      attributes {guards = [#mlafix.guard<align, args = [0], bytes = 16>, #mlafix.guard<multiple, arg = 0, dim = 1, value = 4>],
                  plan = #mlafix.plan<layout = <lanes = 32, packs = 1, pack = 4, rows = 8>>, most = {b = 40}} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      // CHECK: %[[B:.*]] = memref.dim %x, %{{c1.*}}
      // CHECK: %[[IS:.*]] = arith.cmpi ult, %{{.*}}, %[[B]] : index
      // CHECK: %[[MASK:.*]] = vector.broadcast %[[IS]] : i1 to vector<4xi1>
      // CHECK: vector.maskedload %x[%{{.*}}], %[[MASK]], {{.*}} {alignment = 16 : i64} : {{.*}} into vector<4xf32>
      // CHECK-NOT: vector.maskedload
      %v = mlafix.load %x[%t] : !rows -> !fours
      // CHECK-COUNT-3: arith.addf %{{.*}} : f32
      // CHECK: arith.select %{{.*}} : f32
      // CHECK: nvvm.shfl.sync
      %s = mlafix.reduce add %v : !fours
      // CHECK: vector.store %{{.*}}, %x{{.*}} vector<4xf32>
      mlafix.store %v, %x[%t] : !fours, !rows
      mlafix.store %s, %y[%t] : f32, !col
    }
  }
}
