// A condition that is the same for all packs of a row is tested before the loop over the packs. Other loops stay
// unchanged.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unswitch-loops))" | FileCheck %s

!rows = memref<?x64xf32, strided<[?, 1], offset: ?>>
module attributes {mlafix.target = "x86-64-v3"} {
  // CHECK-LABEL: mlafix.kernel @copy
  mlafix.kernel @copy(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %p: i1) {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %zeros = arith.constant dense<0.0> : vector<16xf32>
    %n = memref.dim %x, %c0 : !rows
    // CHECK: mlafix.forall (%[[T:.*]]) in
    mlafix.forall (%t) in (%n) {
      // CHECK: %[[ALL:.*]] = arith.cmpi eq, %p, %[[TRUE:.*]] : i1
      // CHECK-NEXT: scf.if %[[ALL]] {
      // CHECK-NEXT: scf.for
      // CHECK: arith.select %[[TRUE]]
      // CHECK: } else {
      // CHECK-NEXT: scf.for
      // CHECK: arith.select %p
      scf.for %i = %c0 to %c64 step %c16 {
        %v = vector.load %x[%t, %i] : !rows, vector<16xf32>
        %w = arith.select %p, %v, %zeros : vector<16xf32>
        vector.store %w, %x[%t, %i] : !rows, vector<16xf32>
      }
      // CHECK-NOT: scf.if
      // CHECK: scf.for
      // CHECK-NOT: scf.if
      scf.for %j = %c0 to %c64 step %c16 {
        %v = vector.load %x[%j, %c0] : !rows, vector<16xf32>
        %w = arith.select %p, %v, %zeros : vector<16xf32>
        vector.store %w, %x[%j, %c0] : !rows, vector<16xf32>
      }
    }
  }
}
