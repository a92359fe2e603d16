// Tests the code of a merge of a list of states. The addresses of the list's tensors are parameters. Loads are as wide
// and as many at a time as for one tensor. No code waits for other ranks.

// RUN: %mlafix-opt %s --specialize=H=64,D=128,T=bf16,k=2 --target=sm_90 --variant=dense --emit=ptx -o %t.ptx
// RUN: FileCheck %s < %t.ptx
// RUN: FileCheck %s --check-prefix=NEVER < %t.ptx
// RUN: %mlafix-opt %s --specialize=H=64,D=128,T=bf16 --target=sm_90 --emit=ptx -o %t.many.ptx
// RUN: FileCheck %s --check-prefix=NEVER < %t.many.ptx
// RUN: FileCheck %s --check-prefix=MANY < %t.many.ptx
// RUN: %mlafix-opt %s --specialize=H=64,D=128,T=bf16 --target=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=CPU
// RUN: %mlafix-opt %s --specialize=H=64,D=128,T=bf16 --target=cpu --emit=header --name=merge_list | FileCheck %s --check-prefix=HEADER
// RUN: %mlafix-opt %s --emit=signature | FileCheck %s --check-prefix=SIGNATURE

// HEADER: rows {{.*}}a list, each bf16 [k, n, H = 64, D = 128]
// HEADER: const mlafix_tensor *out, const mlafix_peers * rows, const mlafix_peers * lses
// HEADER: mlafix_list_arg(rows)
// SIGNATURE: "kind":"list"
// SIGNATURE-SAME: "most":8

// NEVER-NOT: .sys.
// NEVER-NOT: fence
// NEVER-NOT: bar.red

// CHECK: .entry merge_list_dense(
// CHECK: .param .align 8 .b8 merge_list_dense_param_{{[0-9]+}}[16]
// CHECK: .param .align 8 .b8 merge_list_dense_param_{{[0-9]+}}[16]
// Both rows are loaded before one is used.
// CHECK: ld.global{{.*}}.v4.b32
// CHECK-NOT: st.global
// CHECK: ld.global{{.*}}.v4.b32
// CHECK: st.global.v4.b32
// MANY: _param_{{[0-9]+}}[64]
// MANY: _param_{{[0-9]+}}[64]
// MANY: ld.global{{.*}}.v4.b32
// CPU: define {{.*}}void @merge_list_any(ptr

!outs = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!rows = memref<?x?x?x?xbf16, strided<[?, ?, ?, 1], offset: ?>>
!parts = memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>

mlafix.kernel @merge_list(
    %out: !outs {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %rows: !rows {mlafix.dims = ["k", "n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read", mlafix.list = 8},
    %lses: !parts {mlafix.dims = ["k", "n", "H"], mlafix.access = "read", mlafix.list = 8}) attributes {defaults = {B = "e"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !outs
  %H = memref.dim %out, %c1 : !outs
  %count = memref.dim %rows, %c0 : !rows
  mlafix.forall (%t, %h) in (%n, %H) {
    %none = mlafix.identity : !mlafix.state<"D", "B">
    %all = scf.for %i = %c0 to %count step %c1 iter_args(%acc = %none) -> (!mlafix.state<"D", "B">) {
      %part = mlafix.load_state %rows[%i, %t, %h] lse %lses[%i, %t, %h] : !rows, !parts -> !mlafix.state<"D", "B">
      %sum = mlafix.merge %acc, %part : !mlafix.state<"D", "B">
      scf.yield %sum : !mlafix.state<"D", "B">
    }
    mlafix.store_state %all to %out[%t, %h] : !mlafix.state<"D", "B">, !outs
  }
}
