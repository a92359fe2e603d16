// PTX accepts fewer names than the object files of CPUs.
// RUN: %mlafix-opt %s '--kernel=plain$1' --target=sm_90 --emit=ptx | FileCheck %s --check-prefix=PLAIN
// RUN: %mlafix-opt %s --kernel=a.b-c --target=x86-64 --emit=object -o %t
// RUN: not %mlafix-opt %s --kernel=a.b-c --target=sm_90 --emit=ptx 2>&1 | FileCheck %s
!vec = memref<?xf32, strided<[1], offset: ?>>

// PLAIN: .visible .entry plain$1_
mlafix.kernel @plain$1(%x: !vec {mlafix.dims = ["n"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %one = arith.constant 1.0 : f32
    mlafix.store %one, %x[%t] : f32, !vec
  }
}

// CHECK: names.mlir:[[@LINE+1]]:1: error: expected a name of letters, digits, '_' and '$' for sm_90, got 'a.b-c'
mlafix.kernel @"a.b-c"(%x: !vec {mlafix.dims = ["n"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %one = arith.constant 1.0 : f32
    mlafix.store %one, %x[%t] : f32, !vec
  }
}
