// Unsigned bytes are loaded, computed with and stored on every target.
// RUN: %mlafix-opt %s --specialize=D=64 --target=sm_90 --emit=ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: %mlafix-opt %s --specialize=D=64 --target=x86-64-v3 --emit=llvm -o - | FileCheck %s --check-prefix=LLVM
!rows = memref<?x?xui8, strided<[?, 1], offset: ?>>
!flags = memref<?xui8, strided<[1], offset: ?>>
mlafix.kernel @invert(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"},
                      %mask: !flags {mlafix.dims = ["n"], mlafix.access = "update"}, %p: i1) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // PTX-DAG: ld.global.v4.b32
    // LLVM: load <16 x i8>
    %v = mlafix.load %x[%t] : !rows -> tensor<?xi8, #mlafix.dim<"D">>
    %one = arith.constant 1 : i8
    // PTX-DAG: ld.global.{{[bs]}}8
    %m = mlafix.load %mask[%t] if %p else %one : !flags -> i8
    %ms = mlafix.splat %m : i8 -> tensor<?xi8, #mlafix.dim<"D">>
    %w = arith.xori %v, %ms : tensor<?xi8, #mlafix.dim<"D">>
    // PTX: st.global.v4.b32
    // LLVM: store <16 x i8>
    mlafix.store %w, %x[%t] : tensor<?xi8, #mlafix.dim<"D">>, !rows
    // PTX: st.global.b8
    mlafix.store %m, %mask[%t] if %p : i8, !flags
  }
}
