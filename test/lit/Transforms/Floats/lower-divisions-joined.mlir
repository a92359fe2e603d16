// All reciprocals of a basic block are first computed in a way that is right for normal numbers, even if one depends on
// another. One branch checks all of them, and computes all by exact divisions if one is not normal.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 variant=any},mlafix.kernel(mlafix-distribute,canonicalize,cse,mlafix-lower-divisions,canonicalize,cse))" | FileCheck %s
// RUN: %mlafix-opt %s --kernel=chain --target=sm_90 --variant=any --emit=ptx -o - | FileCheck %s --check-prefix=PTX

!numbers = memref<?xf32, strided<[?], offset: ?>>

// CHECK-LABEL: mlafix.kernel @chain_any
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-DAG: %[[MINUS_ONE:.*]] = arith.constant -1.000000e+00 : f32
// CHECK-DAG: %[[MOST:.*]] = arith.constant 9.53674316E-7 : f32
// CHECK: %[[NEAR:.*]] = nvvm.rcp.approx.ftz.f %[[X:.*]] : f32
// CHECK: %[[REST:.*]] = math.fma %[[X]], %[[NEAR]], %[[MINUS_ONE]]
// CHECK: %[[OFF:.*]] = math.absf %[[REST]]
// CHECK: %[[FIRST:.*]] = arith.cmpf olt, %[[OFF]], %[[MOST]]
// CHECK: %[[MINUS:.*]] = arith.negf %[[REST]]
// CHECK: %[[R:.*]] = math.fma %[[NEAR]], %[[MINUS]], %[[NEAR]]
// CHECK: %[[Y:.*]] = arith.mulf %[[R]], %[[FACTOR:.*]] : f32
// CHECK: nvvm.rcp.approx.ftz.f %[[Y]]
// CHECK: %[[SECOND:.*]] = arith.cmpf olt
// CHECK: %[[BOTH:.*]] = arith.andi %[[FIRST]], %[[SECOND]]
// CHECK: %[[NEAR2:.*]] = math.fma
// CHECK: %[[RESULTS:.*]]:3 = scf.if %[[BOTH]] -> (f32, f32, f32) {
// CHECK-NEXT: scf.yield %[[R]], %[[Y]], %[[NEAR2]]
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[EXACT:.*]] = arith.divf %[[ONE]], %[[X]]
// CHECK-NEXT: %[[EXACTY:.*]] = arith.mulf %[[EXACT]], %[[FACTOR]]
// CHECK-NEXT: %[[EXACT2:.*]] = arith.divf %[[ONE]], %[[EXACTY]]
// CHECK-NEXT: scf.yield %[[EXACT]], %[[EXACTY]], %[[EXACT2]]
// Ops that need the first reciprocal come after the branch.
// CHECK: arith.addf %[[RESULTS]]#0, %[[X]]
// CHECK: memref.store
// CHECK: arith.addf %[[RESULTS]]#1, %[[RESULTS]]#2
// PTX-LABEL: .entry chain_any
// PTX-COUNT-2: rcp.approx.ftz.f32
// PTX: bra
// PTX-COUNT-2: rcp.rn.f32
mlafix.kernel @chain(%y: !numbers {mlafix.dims = ["n"], mlafix.access = "write"}, %z: !numbers {mlafix.dims = ["n"], mlafix.access = "write"},
                     %x: !numbers {mlafix.dims = ["n"], mlafix.access = "read"}, %factor: f32) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %n = memref.dim %y, %c0 : !numbers
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !numbers -> f32
    %a = arith.divf %one, %v : f32
    %sum = arith.addf %a, %v : f32
    %product = arith.mulf %a, %factor : f32
    %b = arith.divf %one, %product : f32
    mlafix.store %sum, %y[%t] : f32, !numbers
    %all = arith.addf %product, %b : f32
    mlafix.store %all, %z[%t] : f32, !numbers
  }
}

// A single reciprocal is left to the assembler, and so are two if the first is stored before the second is computed.
// CHECK-LABEL: mlafix.kernel @apart_any
// CHECK-NOT: scf.if %{{.*}} ->
// CHECK: arith.divf
// CHECK: memref.store
// CHECK: arith.divf
// CHECK: memref.store
mlafix.kernel @apart(%y: !numbers {mlafix.dims = ["n"], mlafix.access = "write"}, %z: !numbers {mlafix.dims = ["n"], mlafix.access = "write"},
                     %x: !numbers {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %n = memref.dim %y, %c0 : !numbers
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !numbers -> f32
    %a = arith.divf %one, %v : f32
    mlafix.store %a, %y[%t] : f32, !numbers
    %twice = arith.addf %v, %v : f32
    %b = arith.divf %one, %twice : f32
    mlafix.store %b, %z[%t] : f32, !numbers
  }
}
