// A CPU function takes the parameter slots and a range of rows. Library calls are expanded.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3},mlafix.kernel(mlafix-distribute),canonicalize,cse,mlafix-to-cpu)" | FileCheck %s --check-prefixes=CHECK,V3
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64},mlafix.kernel(mlafix-distribute),canonicalize,cse,mlafix-to-cpu)" | FileCheck %s --check-prefixes=CHECK,BASE

!bf = memref<?x16xbf16, strided<[?, 1], offset: ?>>
!hf = memref<?x16xf16, strided<[?, 1], offset: ?>>

// CHECK-LABEL: llvm.func @k_any(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK-SAME: mlafix.variant = #mlafix.variant<"k_any"
mlafix.kernel @k(
    %out: !bf {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %x: !hf {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !bf
  mlafix.forall (%t) in (%n) {
    // V3: arith.extf %{{.*}} : vector<16xf16> to vector<16xf32>
    // BASE-NOT: arith.extf %{{.*}} : vector<16xf16>
    %v = mlafix.load %x[%t] : !hf -> tensor<16xf32, #mlafix.dim<16>>
    // CHECK-NOT: math.exp
    // V3: math.fma
    // BASE-NOT: math.fma
    %e = math.exp2 %v : tensor<16xf32, #mlafix.dim<16>>
    // CHECK-NOT: math.log
    %l = math.log2 %e : tensor<16xf32, #mlafix.dim<16>>
    // CHECK-NOT: math.rsqrt
    %r = math.rsqrt %l : tensor<16xf32, #mlafix.dim<16>>
    // CHECK-NOT: arith.truncf %{{.*}} to vector<16xbf16>
    mlafix.store %r, %out[%t] : tensor<16xf32, #mlafix.dim<16>>, !bf
    // CHECK: llvm.return
  }
}
