// On request, PTX contains the source line of each instruction. All variants refer to one file number.
// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx --specialize=D=128 --line-info | FileCheck %s
// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx --specialize=D=128 | FileCheck %s --check-prefix=WITHOUT
// The same code is generated with and without line information, apart from directives, label numbers and comments.
// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx --specialize=D=128 --line-info | grep -v "\.loc\|\.file\|debug\|^//\|^\$L__tmp\|^\$L__func\|^[[:space:]]*//" | grep -v "^[[:space:]]*[{}]*$" | sed "s/BB[0-9]*_/BB_/; s/[[:space:]]*\/\/.*//" > %t.with
// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx --specialize=D=128 | grep -v "^//\|^[[:space:]]*//" | grep -v "^[[:space:]]*[{}]*$" | sed "s/BB[0-9]*_/BB_/; s/[[:space:]]*\/\/.*//" > %t.without
// RUN: diff %t.with %t.without

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>

// CHECK: .entry twice_dense
// CHECK: .loc 1 [[#@LINE+13]] 10
// CHECK: ld.global
// CHECK: .loc 1 [[#@LINE+12]] 12
// CHECK: add{{.*}}f32
// CHECK: .entry twice_any
// CHECK: .file 1 "{{.*}}line-info.mlir"
// CHECK-NOT: .file 2
// WITHOUT-NOT: .loc
// WITHOUT-NOT: .file
mlafix.kernel @twice(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %sum = arith.addf %v, %v : !tile
    mlafix.store %sum, %y[%t] : !tile, !rows
  }
}
