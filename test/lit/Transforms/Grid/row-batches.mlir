// The scalars of sixteen tokens are computed at once, for one strip of heads after the other. Then the rows are moved
// in the order of memory. Rows that do not fill a batch are processed one by one.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s
// The target limits the number of heads in a strip, the rows of one call, and the size of the buffers of a strip.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3 variant=apart machine=stripRows=8,rangeRows=64},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s --check-prefix=EIGHT
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3 variant=apart machine=batchBytes=640},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s --check-prefix=BYTES
// EIGHT: rows_per_block = 1>
// EIGHT: memref.alloca() : memref<128xf32>
// EIGHT: scf.for %{{.*}} = %c0 to %c48 step %c8
// BYTES: rows_per_block = 768
// BYTES: memref.alloca() : memref<96xf32>
// BYTES: scf.for %{{.*}} = %c0 to %c48 step %c6

!rows = memref<?x48x32xbf16, strided<[?, ?, 1], offset: ?>>
!scalars = memref<48x?xf32, strided<[?, ?], offset: ?>>

// CHECK-LABEL: mlafix.kernel @scale_apart
// The number of rows that one call of the kernel processes should be a multiple of 16 tokens of 48 heads.
// CHECK-SAME: rows_per_block = 768
// A strip has at most 128 heads, so all 48 heads are one strip.
// CHECK-DAG: %[[WEIGHTS:.*]] = memref.alloca() : memref<768xf32>
// CHECK-DAG: %[[EMPTY:.*]] = memref.alloca() : memref<768xi1>
// CHECK: %[[LAST:.*]] = arith.addi %begin
// CHECK: scf.for %[[BASE:.*]] = %begin to %[[LAST]] step %c768
// CHECK-NEXT: scf.for %[[H:.*]] = %c0 to %c48 step %c1
// CHECK-COUNT-16: memref.load %s
// CHECK: vector.from_elements
// CHECK: arith.cmpf {{.*}} : vector<16xf32>
// CHECK: math.exp2 {{.*}} : vector<16xf32>
// CHECK-COUNT-16: memref.store {{.*}}, %sum
// Scalars are stored in the order of the rows: a token's heads are adjacent.
// CHECK: memref.store %{{.*}}, %[[EMPTY]][%[[H]]]
// CHECK: %[[SECOND:.*]] = arith.addi %[[H]], %c48
// CHECK: memref.store %{{.*}}, %[[EMPTY]][%[[SECOND]]]
// CHECK: memref.store %{{.*}}, %[[WEIGHTS]][%[[H]]]
// CHECK: memref.store %{{.*}}, %[[WEIGHTS]][%[[SECOND]]]
// CHECK: scf.for %[[LANE:.*]] = %c0 to %c16
// CHECK: scf.for %[[I:.*]] = %c0 to %c48
// CHECK: %[[FIRST:.*]] = arith.muli %[[LANE]], %c48
// CHECK: %[[POSITION:.*]] = arith.addi %[[FIRST]], %[[I]]
// CHECK-DAG: memref.load %[[WEIGHTS]][%[[POSITION]]]
// CHECK-DAG: memref.load %[[EMPTY]][%[[POSITION]]]
// CHECK-NOT: math.exp2
// CHECK-NOT: memref.store
// Cheap values are not stored but computed again: the predicate, and a comparison of stored values.
// CHECK: arith.cmpi slt
// CHECK: arith.cmpf oeq
// Most rows exist, so their packs are moved without a condition.
// CHECK: scf.if
// CHECK-NEXT: scf.for
// CHECK-NEXT: vector.load %x
// CHECK-NOT: arith.select
// CHECK-NOT: scf.if
// CHECK: vector.store {{.*}}, %out{{\[}}
// CHECK: } else {
// CHECK-NEXT: scf.for
// CHECK-NEXT: scf.if
// CHECK-NEXT: vector.load %x
// CHECK-COUNT-2: arith.select
// CHECK: vector.store {{.*}}, %out{{\[}}
// CHECK: scf.for %{{.*}} = %[[LAST]] to %end
// CHECK: math.exp2 {{.*}} : f32

// CHECK-LABEL: mlafix.kernel @scale_any
// CHECK-SAME: rows_per_block = 1
// CHECK-NOT: vector<16xi1>
// CHECK: scf.for %{{.*}} = %begin to %end
mlafix.kernel @scale(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %sum: !scalars {mlafix.dims = ["H", "n"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"},
    %s: !scalars {mlafix.dims = ["H", "n"], mlafix.access = "read"},
    %limit: index) {
  %c0 = arith.constant 0 : index
  %c48 = arith.constant 48 : index
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0x7F800000 : f32
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t, %h) in (%n, %c48) {
    %in = arith.cmpi slt, %t, %limit : index
    %v = mlafix.load %x[%t, %h] if %in : !rows -> tensor<32xf32, #mlafix.dim<32>>
    %f = mlafix.load %s[%h, %t] : !scalars -> f32
    %empty = arith.cmpf oeq, %f, %inf : f32
    %e = math.exp2 %f : f32
    %dead = arith.cmpf oeq, %e, %zero : f32
    %w = mlafix.splat %e : f32 -> tensor<32xf32, #mlafix.dim<32>>
    %none = mlafix.splat %zero : f32 -> tensor<32xf32, #mlafix.dim<32>>
    %m = arith.mulf %v, %w : tensor<32xf32, #mlafix.dim<32>>
    %l = arith.select %dead, %none, %m : tensor<32xf32, #mlafix.dim<32>>
    %r = arith.select %empty, %none, %l : tensor<32xf32, #mlafix.dim<32>>
    mlafix.store %r, %out[%t, %h] : tensor<32xf32, #mlafix.dim<32>>, !rows
    mlafix.store %e, %sum[%h, %t] : f32, !scalars
  }
}
