// LLVM computes the sum of a loop's counter as a 65-bit product, and the number of iterations by a 65-bit division. CPU
// code must compute both without a call of the compiler's runtime library. NVPTX's code generator has no such library,
// and must not fail.

// RUN: split-file %s %t
// RUN: %mlafix-opt %t/rows.mlir --specialize=D=1 --target=x86-64-v4 --emit=object -o %t.o
// RUN: %mlafix-opt %t/rows.mlir --specialize=D=1 --target=x86-64 --emit=object -o %t.o
// RUN: %mlafix-opt %t/rows.mlir --specialize=D=1 --target=aarch64 --emit=object -o %t.o
// RUN: %mlafix-opt %t/loop.mlir --specialize=D=1 --target=sm_90 --emit=ptx | FileCheck %s
// CHECK: .visible .entry k
// CHECK: mul.hi.u64

//--- rows.mlir
mlafix.kernel @k(%y: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.access = "write", mlafix.dims = ["n", "D"]},
                 %x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.access = "read", mlafix.dims = ["k", "D"]})
    attributes {allow = ["bounds"]} {
  %c0 = arith.constant 0 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %n = memref.dim %y, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %sum = scf.for %i = %t to %c6 step %c7 iter_args(%v = %c0) -> (index) {
      %next = arith.addi %v, %i : index
      scf.yield %next : index
    }
    %row = mlafix.load %x[%sum] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"D">>
    mlafix.store %row, %y[%t] : tensor<?xf32, #mlafix.dim<"D">>, memref<?x?xf32, strided<[?, 1], offset: ?>>
  }
}

//--- loop.mlir
mlafix.kernel @k(%y: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.access = "write", mlafix.dims = ["n", "D"]},
                 %x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.access = "read", mlafix.dims = ["k", "D"]})
    attributes {allow = ["bounds"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %zero = arith.constant 0.0 : f32
  %zeros = mlafix.splat %zero : f32 -> tensor<?xf32, #mlafix.dim<"D">>
  %n = memref.dim %y, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %rows = scf.for %s = %c0 to %n step %c1 iter_args(%sums = %zeros) -> (tensor<?xf32, #mlafix.dim<"D">>) {
      %sum = scf.for %i = %s to %c6 step %c7 iter_args(%v = %c0) -> (index) {
        %next = arith.addi %v, %i : index
        scf.yield %next : index
      }
      %row = mlafix.load %x[%sum] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"D">>
      %more = arith.addf %sums, %row : tensor<?xf32, #mlafix.dim<"D">>
      scf.yield %more : tensor<?xf32, #mlafix.dim<"D">>
    }
    mlafix.store %rows, %y[%t] : tensor<?xf32, #mlafix.dim<"D">>, memref<?x?xf32, strided<[?, 1], offset: ?>>
  }
}
