// If ptxas 13.0 spills registers, it may compute an address from an overwritten register (seed 71002303 of the random
// kernels). Kernels that spill are therefore assembled with -O1, and if they still spill, with more registers.
// REQUIRES: ptxas

// With two blocks of 512 threads per multiprocessor, a thread has 64 registers. The loop needs more registers, except
// at -O1.
// RUN: %mlafix-opt %kernels/combine_split_kv.mlir --specialize=H=16,D=64,T=f32,O=bf16 --target=sm_90 --emit=cubin -o %t --resource-usage --mlafix-remarks 2>&1 | FileCheck %s --check-prefix=FEWER --implicit-check-not="more registers"
// FEWER: remark: combine_split_kv_dense on sm_90: the assembler spilled registers, where ptxas 13.0 may compute a wrong address: assembled again with -O1 [missed: spills]
// FEWER: combine_split_kv_dense sm_90: {{[3-6][0-9]}} registers, 0 bytes local

// With four blocks of 512 threads per multiprocessor, a thread has 32 registers. These are too few even at -O1.
// RUN: %mlafix-opt %kernels/combine_split_kv.mlir --specialize=H=16,D=64,T=f32,O=bf16 --target=sm_90 --mlafix-plan=resident=4 --emit=cubin -o %t --resource-usage --mlafix-remarks 2>&1 | FileCheck %s --check-prefix=BOUND
// BOUND: remark: combine_split_kv_dense on sm_90: the assembler spilled registers, where ptxas 13.0 may compute a wrong address: assembled again with -O1 [missed: spills]
// BOUND: remark: combine_split_kv_dense on sm_90: {{.*}}: assembled again with more registers [missed: spills]
// BOUND: combine_split_kv_dense sm_90: {{6[5-9]|[7-9][0-9]|1[0-9][0-9]}} registers, 0 bytes local
// BOUND: combine_split_kv_fast sm_90: {{[0-9]+}} registers, 0 bytes local

// Nothing spills, so there is no remark.
// RUN: %mlafix-opt %s --target=sm_90 --mlafix-plan=dense.lanes=16 --emit=cubin -o %t --resource-usage --mlafix-remarks 2>&1 | FileCheck %s --check-prefix=NONE --implicit-check-not="missed: spills"
// NONE: center_dense sm_90: {{[0-9]+}} registers, 0 bytes local

// A lane keeps 32 partial results in local memory, which the kernel allocates. Their frame has no gap that would pass for
// spilled registers.
// RUN: %mlafix-opt %s --target=sm_90 --mlafix-plan=dense.lanes=8 --emit=cubin -o %t --resource-usage --mlafix-remarks 2>&1 | FileCheck %s --check-prefix=LOCAL --implicit-check-not="missed: spills"
// LOCAL: center_dense sm_90: {{[0-9]+}} registers, 128 bytes local
!rows = memref<?x2048xf32, strided<[?, 1], offset: ?>>
!row = tensor<2048xf32, #mlafix.dim<2048>>
mlafix.kernel @center(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                      %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !row
    %most = mlafix.reduce max %v : !row
    %all = mlafix.splat %most : f32 -> !row
    %rest = arith.subf %v, %all : !row
    mlafix.store %rest, %y[%t] : !row, !rows
  }
}
