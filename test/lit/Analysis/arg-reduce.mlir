// argmin and argmax give an index within the row's dim. An access with this index needs no guard.
// RUN: %mlafix-opt %s --emit=report | FileCheck %s
// RUN: sed 's/%i = mlafix.arg_reduce max %v : tensor<?xi32, #mlafix.dim<"D">>/%u, %i = mlafix.top_k %v : tensor<?xi32, #mlafix.dim<"D">> -> i32, i32/' %s | %mlafix-opt --emit=report | FileCheck %s
// RUN: sed 's/%i = mlafix.arg_reduce max %v : tensor<?xi32, #mlafix.dim<"D">>/%i, %u = mlafix.top_k %v : tensor<?xi32, #mlafix.dim<"D">> -> i32, i32/' %s | %mlafix-opt --emit=report | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/arg_reduce max/reduce max/' %s | %mlafix-opt --emit=report | FileCheck %s --check-prefix=OTHER
!rows = memref<?x?xi32, strided<[?, 1], offset: ?>>
!col = memref<?xi32, strided<[1], offset: ?>>
// CHECK: "question":"bounds","verdict":"proved"}],"name":"y"
// CHECK-NOT: {{unknown|refuted}}
// OTHER: "question":"bounds",{{.*}}"verdict":"unknown"
mlafix.kernel @top(%y: !col {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !col
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> tensor<?xi32, #mlafix.dim<"D">>
    %i = mlafix.arg_reduce max %v : tensor<?xi32, #mlafix.dim<"D">>
    %at = arith.index_cast %i : i32 to index
    %top = mlafix.load %x[%t, %at] : !rows -> i32
    mlafix.store %top, %y[%t] : i32, !col
  }
}
