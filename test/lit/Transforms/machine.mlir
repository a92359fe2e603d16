// Passes read numbers, such as the bytes that a block should move, from the machine model of the target. The option
// `machine` replaces numbers of this model.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 variant=fast})" | FileCheck %s --check-prefix=H200
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 variant=fast machine=blockBytes=4096})" | FileCheck %s --check-prefix=BYTES
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 variant=fast machine=minBlockThreads=64,maxBlockThreads=64})" | FileCheck %s --check-prefix=THREADS
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 machine=blockByte=4096})" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 machine=blockBytes=-1})" 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_91})" 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unroll-loops{target=sm_91}))" 2>&1 | FileCheck %s --check-prefix=TARGET

// The passes after mlafix-plan-kernel read the target and the replaced numbers from the module.
// RUN: %mlafix-opt %s --mlafix-pipeline="target=sm_90" | FileCheck %s --check-prefix=WAIT
// RUN: %mlafix-opt %s --mlafix-pipeline="target=sm_90 machine=dependentLaunch=0,blockBytes=4096" | FileCheck %s --check-prefix=NOWAIT
// RUN: not %mlafix-opt %kernels/combine_split_kv.mlir --mlafix-pipeline="bindings=H=16,D=512,O=bf16,T=f32,B=e target=sm_90 machine=collectedChunks=4" 2>&1 | FileCheck %s --check-prefix=COLLECTED
// COLLECTED: error: expected 'collected_chunks' to be from 1 to 2, got 4

// H200-NOT: mlafix.machine
// H200: layout = <lanes = 16, packs = 1, pack = 8, rows = 16>
// BYTES: module attributes {mlafix.machine = ["blockBytes=4096"]
// BYTES: layout = <lanes = 16, packs = 1, pack = 8, rows = 8>
// THREADS: layout = <lanes = 16, packs = 1, pack = 8, rows = 4>
// NAME: error: expected NAME=NUMBER with a name out of threadsPerMultiprocessor, {{.*}}, rangeRows, got 'blockByte'
// VALUE: error: expected blockBytes to be an integer that is not negative, got '-1'
// TARGET: error: expected a target out of sm_75, {{.*}}, x86-64, aarch64, got 'sm_91'
// WAIT: griddepcontrol
// NOWAIT-NOT: griddepcontrol
mlafix.kernel @copy(
    %out: memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>>
  %H = memref.dim %out, %c1 : memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %H) {
    %v = mlafix.load %x[%t, %h] : memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<128xf32, #mlafix.dim<128>>
    mlafix.store %v, %out[%t, %h] : tensor<128xf32, #mlafix.dim<128>>, memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>>
  }
}
