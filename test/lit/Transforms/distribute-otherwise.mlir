// A load gives the `else` value if its own predicate is false. If the predicate is true, an omitted tensor gives zeros,
// whether its presence is bound or not.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 variant=any},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3 variant=any},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s --check-prefix=CPU
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=o=absent,w=absent},canonicalize)" | FileCheck %s --check-prefix=ABSENT

!col = memref<?xf32, strided<[?], offset: ?>>
!rows = memref<?x64xf32, strided<[?, 1], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>

// CHECK-LABEL: @k
// CPU-LABEL: @k
// ABSENT-LABEL: @k
mlafix.kernel @k(%y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %z: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                 %o: !col {mlafix.dims = ["n"], mlafix.access = "read", mlafix.optional},
                 %w: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read", mlafix.optional}, %p: i1) {
  // ABSENT-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
  // ABSENT-DAG: %[[FIVE:.*]] = arith.constant 5.000000e+00 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %five = arith.constant 5.0 : f32
    // CHECK: griddepcontrol launch_dependents
    // CHECK: %[[HAS:.*]] = mlafix.present %o
    // CHECK: %[[READ:.*]] = arith.andi %[[HAS]], %p
    // CHECK: %[[MASK:.*]] = vector.broadcast %[[READ]]
    // CHECK: vector.maskedload %o{{.*}}, %[[MASK]], %{{.*}}
    // CHECK: %[[V:.*]] = vector.extract
    // CHECK: arith.select %p, %[[V]], %{{.*}} : f32
    // CPU: %[[HAS:.*]] = mlafix.present %o
    // CPU: %[[READ:.*]] = arith.andi %[[HAS]], %p
    // CPU: %[[V:.*]] = scf.if %[[READ]]
    // CPU: arith.select %p, %[[V]], %{{.*}} : f32
    // ABSENT: %[[V:.*]] = arith.select %p, %[[ZERO]], %[[FIVE]] : f32
    %v = mlafix.load %o[%t] if %p else %five : !col -> f32
    // ABSENT-NEXT: mlafix.store %[[V]], %y
    mlafix.store %v, %y[%t] : f32, !col
    // CHECK: vector.maskedload %w
    // CHECK: arith.select %p, %{{.*}}, %{{.*}} : vector
    // On a CPU, both the loaded row and the row of `else` values are processed in a loop over packs.
    // CPU: scf.if %p
    // CPU: %[[HAS:.*]] = mlafix.present %w
    // CPU: scf.if %[[HAS]]
    // CPU: vector.load %w
    // CPU: } else {
    // CPU: vector.store %[[FIVES:.*]], %z
    // ABSENT-NEXT: %[[W:.*]] = arith.select %p, %[[ZERO]], %[[FIVE]] : f32
    // ABSENT-NEXT: %[[ROW:.*]] = mlafix.splat %[[W]]
    // ABSENT-NEXT: mlafix.store %[[ROW]], %z
    %row = mlafix.load %w[%t] if %p else %five : !rows -> !tile
    mlafix.store %row, %z[%t] : !tile, !rows
  }
}
