// Floats that a target only moves become integers. Conversions of these floats are from or to f32 only, although folds
// may combine conversions. On CPUs, LLVM calls library functions for bf16, even for a select, and has no fp8.
// RUN: %mlafix-opt %s --specialize=D=16 --target=x86-64-v3 --emit=llvm -o - | FileCheck %s --check-prefixes=CPU,V3 --implicit-check-not=bfloat
// RUN: %mlafix-opt %s --specialize=D=16 --target=x86-64 --emit=llvm -o - | FileCheck %s --check-prefixes=CPU --implicit-check-not=bfloat --implicit-check-not=half
// RUN: %mlafix-opt %s --specialize=D=16 --target=x86-64 --emit=object -o /dev/null
// RUN: %mlafix-opt %s --specialize=D=16 --target=sm_75 --emit=ptx -o - | FileCheck %s --check-prefixes=GPU,OLD
// RUN: %mlafix-opt %s --specialize=D=16 --target=sm_90 --emit=ptx -o - | FileCheck %s --check-prefixes=GPU,NEW

!bf = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!hf = memref<?x?xf16, strided<[?, 1], offset: ?>>
!q = memref<?x?xf8E4M3FN, strided<[?, 1], offset: ?>>
!int = memref<?x?xi32, strided<[?, 1], offset: ?>>
!flags = memref<?xi1, strided<[?], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>
!ints = tensor<?xi32, #mlafix.dim<"D">>

// CPU: define {{.*}}void @k_
// CPU-DAG: store <16 x i16>
// CPU-DAG: store <16 x i8>
// V3-DAG: sitofp <16 x i32> %{{.*}} to <16 x float>
// V3-DAG: fptrunc <16 x float> %{{.*}} to <16 x half>
// GPU: .entry k_dense
// GPU-DAG: cvt.rn.f32.s32
// GPU-DAG: cvt.rn.f16{{(x2)?}}.f32
// OLD-NOT: e4m3x2
// NEW-DAG: cvt.rn.satfinite.e4m3x2.f32
mlafix.kernel @k(
    %moved: !bf {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %narrowed: !q {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %half: !hf {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %byte: !q {mlafix.dims = ["n", "D"], mlafix.access = "write"},
    %x: !bf {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %i: !int {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %p: !flags {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !bf
  mlafix.forall (%t) in (%n) {
    // A row is moved under a condition. Folds remove the conversions of this row to f32 and back.
    %here = mlafix.load %p[%t] : !flags -> i1
    %v = mlafix.load %x[%t] if %here : !bf -> !tile
    mlafix.store %v, %moved[%t] : !tile, !bf
    mlafix.store %v, %narrowed[%t] : !tile, !q
    // The integer is first rounded to f32, as the kernel says, and not converted directly to the type in memory.
    %w = mlafix.load %i[%t] : !int -> !ints
    %f = arith.sitofp %w : !ints to !tile
    mlafix.store %f, %half[%t] : !tile, !hf
    mlafix.store %f, %byte[%t] : !tile, !q
  }
}
