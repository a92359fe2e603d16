// On a CPU, a row of bf16 is widened as 32-bit words of two elements: a shift gives the lower elements, a mask the
// upper ones. Results are joined to words in the same way. All ops between widening and joining must be elementwise.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3},mlafix.kernel(mlafix-distribute),canonicalize,cse,mlafix-to-cpu)" | FileCheck %s
// RUN: %mlafix-opt %s --kernel=paired --target=x86-64-v3 --emit=object | llvm-objdump -d - | FileCheck %s --check-prefix=CODE

!bf = memref<?x16xbf16, strided<[?, 1], offset: ?>>
!hf = memref<?x16xf16, strided<[?, 1], offset: ?>>
!tile = tensor<16xf32, #mlafix.dim<16>>

// CHECK-LABEL: llvm.func @paired_any
// CHECK: %[[WORDS:.*]] = vector.bitcast %{{.*}} : vector<16xi16> to vector<8xi32>
// CHECK: %[[SHIFT:.*]] = arith.constant dense<16> : vector<8xi32>
// CHECK: arith.shli %[[WORDS]], %[[SHIFT]]
// CHECK: %[[MASK:.*]] = arith.constant dense<-65536> : vector<8xi32>
// CHECK: arith.andi %[[WORDS]], %[[MASK]]
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : vector<8xf32>, vector<8xf32>
// CHECK: arith.mulf
// CHECK: vector.shuffle %{{.*}} [0, 1, 2, 3, 4, 5, 6, 7] : vector<16xi32>
// CHECK: vector.shuffle %{{.*}} [8, 9, 10, 11, 12, 13, 14, 15] : vector<16xi32>
// CHECK: vector.bitcast %{{.*}} : vector<8xi32> to vector<16xi16>
// No instruction moves elements to another place of a vector register.
// CODE-LABEL: <paired_any>:
// CODE-NOT: vpmovzx
// CODE-NOT: vpackus
// CODE: ret
mlafix.kernel @paired(
    %out: !bf {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %x: !bf {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %p: i1, %w: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !bf
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] if %p : !bf -> !tile
    %s = mlafix.splat %w : f32 -> !tile
    %m = arith.mulf %v, %s : !tile
    %none = arith.constant dense<0.0> : !tile
    %r = arith.select %p, %m, %none : !tile
    mlafix.store %r, %out[%t] : !tile, !bf
  }
}

// A row that is combined with a row of another type keeps the order of memory, and so does their result, which is
// stored.
// CHECK-LABEL: llvm.func @mixed_any
// CHECK-NOT: to vector<8xi32>
// CHECK: arith.extui %{{.*}} : vector<16xi16> to vector<16xi32>
// CHECK: arith.trunci %{{.*}} : vector<16xi32> to vector<16xi16>
// CHECK: llvm.return
mlafix.kernel @mixed(
    %out: !bf {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %x: !bf {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %y: !hf {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !bf
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !bf -> !tile
    %w = mlafix.load %y[%t] : !hf -> !tile
    %m = arith.mulf %v, %w : !tile
    mlafix.store %m, %out[%t] : !tile, !bf
  }
}

// A reduction needs the elements in the order of memory, too (N9 of docs/Dialect.md).
// CHECK-LABEL: llvm.func @reduced_any
// CHECK-NOT: to vector<8xi32>
// CHECK: llvm.return
mlafix.kernel @reduced(
    %out: !bf {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %x: !bf {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !bf
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !bf -> !tile
    %sum = mlafix.reduce add %v : !tile
    %s = mlafix.splat %sum : f32 -> !tile
    %m = arith.mulf %v, %s : !tile
    mlafix.store %m, %out[%t] : !tile, !bf
  }
}

// A row that a loop carries has the order of memory, since its first value is not a loaded row.
// CHECK-LABEL: llvm.func @carried_any
// CHECK-NOT: vector<8xi32>
// CHECK: arith.trunci %{{.*}} : vector<16xi32> to vector<16xi16>
// CHECK-NOT: vector<8xi32>
// CHECK: llvm.return
mlafix.kernel @carried(
    %out: memref<?x?x16xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "k", "D"], mlafix.access = "write"},
    %x: memref<?x?x16xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %w: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : memref<?x?x16xbf16, strided<[?, ?, 1], offset: ?>>
  %k = memref.dim %out, %c1 : memref<?x?x16xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant dense<0.0> : !tile
    %s = mlafix.splat %w : f32 -> !tile
    %end = scf.for %i = %c0 to %k step %c1 iter_args(%previous = %zero) -> (!tile) {
      %m = arith.mulf %previous, %s : !tile
      mlafix.store %m, %out[%t, %i] : !tile, memref<?x?x16xbf16, strided<[?, ?, 1], offset: ?>>
      %v = mlafix.load %x[%t, %i] : memref<?x?x16xbf16, strided<[?, ?, 1], offset: ?>> -> !tile
      scf.yield %v : !tile
    }
  }
}

// Runs the pass alone, on a row that is converted from bf16 and back.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3 variant=any},mlafix.kernel(mlafix-distribute),canonicalize,cse,mlafix.kernel(mlafix-pair-rows))" | FileCheck %s --check-prefix=ALONE
// ALONE-LABEL: mlafix.kernel @paired_any
// ALONE-NOT: arith.extf
// ALONE: vector.bitcast %{{.*}} : vector<16xbf16> to vector<8xi32>
// ALONE-NOT: arith.truncf
// ALONE-LABEL: mlafix.kernel @mixed_any
// ALONE: arith.extf %{{.*}} : vector<16xbf16> to vector<16xf32>
// ALONE: arith.truncf
