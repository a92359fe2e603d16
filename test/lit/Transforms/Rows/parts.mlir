// Tests accesses to groups and members of rows along a product. A group is accessed as a row at an offset. If members
// are adjacent in pairs, whole pairs are loaded and stored, and the members are extracted from them.
// RUN: %mlafix-opt %s --kernel=halves --specialize=K=64 --target=sm_90 --emit=distributed --variant=dense | FileCheck %s --check-prefix=HALVES
// RUN: %mlafix-opt %s --kernel=halves --specialize=K=64 --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=HALVES-PTX
// RUN: %mlafix-opt %s --kernel=halves --specialize=K=64 --target=x86-64-v3 --emit=distributed --variant=any | FileCheck %s --check-prefix=HALVES-CPU
// RUN: %mlafix-opt %s --kernel=pairs --specialize=K=64 --target=sm_90 --emit=distributed --variant=dense | FileCheck %s --check-prefix=PAIRS
// RUN: %mlafix-opt %s --kernel=pairs --specialize=K=64 --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=PAIRS-PTX
// RUN: %mlafix-opt %s --kernel=pairs --specialize=K=64 --target=x86-64-v3 --emit=distributed --variant=any | FileCheck %s --check-prefix=PAIRS-CPU
// RUN: %mlafix-opt %s --kernel=pairs --specialize=K=4096 --target=x86-64-v3 --emit=distributed --variant=any | FileCheck %s --check-prefix=PAIRS-LOOP
// RUN: %mlafix-opt %s --kernel=even --specialize=K=64 --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=EVEN-PTX
// RUN: %mlafix-opt %s --kernel=even --specialize=K=64 --target=x86-64-v3 --emit=distributed --variant=any | FileCheck %s --check-prefix=EVEN-CPU
// RUN: %mlafix-opt %s --kernel=thirds --specialize=K=64 --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=THIRDS

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!part = tensor<?xf32, #mlafix.dim<"K">>

// Four lanes with two packs of 16 bytes each cover a half of 64 elements.
// HALVES-LABEL: mlafix.kernel @halves_dense(
// HALVES-SAME: guards = [#mlafix.guard<align, args = [0], bytes = 16>
// HALVES-SAME: lanes = 4, packs = 2, pack = 8
// HALVES: %[[SECOND:.*]] = arith.addi %[[AT:.*]], %c64
// HALVES: vector.load %x[%{{.*}}, %[[SECOND]]] {alignment = 16 : i64} : {{.*}}vector<8xbf16>
// HALVES-COUNT-4: vector.store %{{.*}} {alignment = 16 : i64} : {{.*}}vector<8xbf16>
// HALVES-NOT: vector.store
// HALVES-PTX-LABEL: .entry halves_dense(
// HALVES-PTX-COUNT-4: ld.global.v4.b32
// HALVES-PTX-NOT: ld.global
// HALVES-PTX-COUNT-4: st.global.v4.b32
// HALVES-PTX-NOT: st.global
// HALVES-CPU-LABEL: mlafix.kernel @halves_any(
// HALVES-CPU: scf.for %[[I:.*]] = %c0 to %c64 step %c16
// HALVES-CPU: %[[SECOND:.*]] = arith.addi %[[I]], %c64
// HALVES-CPU: vector.load %x[%{{.*}}, %[[SECOND]]] {{.*}}vector<16xbf16>
mlafix.kernel @halves(%x: !rows {mlafix.dims = ["n", "(2 K)"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %a = mlafix.load %x[%t] group %c0 : !rows -> !part
    %b = mlafix.load %x[%t] group %c1 : !rows -> !part
    %sum = arith.addf %a, %b : !part
    %difference = arith.subf %a, %b : !part
    mlafix.store %sum, %x[%t] group %c0 : !part, !rows
    mlafix.store %difference, %x[%t] group %c1 : !part, !rows
  }
}

// Four pairs of bf16 are 16 bytes.
// PAIRS-LABEL: mlafix.kernel @pairs_dense(
// PAIRS-SAME: guards = [#mlafix.guard<align, args = [0], bytes = 16>
// PAIRS-SAME: pack = 4
// PAIRS: %[[PAIRS:.*]] = vector.load %x[%{{.*}}] {alignment = 16 : i64} : {{.*}}vector<8xbf16>
// PAIRS: vector.shuffle %[[PAIRS]], %[[PAIRS]] [0, 2, 4, 6] : vector<8xbf16>
// PAIRS: vector.shuffle %[[PAIRS]], %[[PAIRS]] [1, 3, 5, 7] : vector<8xbf16>
// PAIRS: vector.interleave %{{.*}} : vector<4xf32> -> vector<8xf32>
// PAIRS: arith.truncf %{{.*}} : vector<8xf32> to vector<8xbf16>
// PAIRS-COUNT-2: vector.store %{{.*}} {alignment = 16 : i64} : {{.*}}vector<8xbf16>
// PAIRS-PTX-LABEL: .entry pairs_dense(
// PAIRS-PTX-COUNT-2: ld.global.v4.b32
// PAIRS-PTX-NOT: ld.global
// PAIRS-PTX-COUNT-2: st.global.v4.b32
// PAIRS-PTX-NOT: st.global
// PAIRS-CPU-LABEL: mlafix.kernel @pairs_any(
// PAIRS-CPU: vector.load %x[{{.*}}vector<32xbf16>
// PAIRS-CPU: vector.store %{{.*}}, %x[{{.*}}vector<32xbf16>
// A long row is processed in one loop.
// PAIRS-LOOP-LABEL: mlafix.kernel @pairs_any(
// PAIRS-LOOP: scf.for
// PAIRS-LOOP: scf.for %[[I:.*]] = %c0 to %c4096 step %c16
// PAIRS-LOOP: vector.load %x[{{.*}}vector<32xbf16>
// PAIRS-LOOP-NOT: vector.load
// PAIRS-LOOP: vector.store %{{.*}}, %x[{{.*}}vector<32xbf16>
// PAIRS-LOOP-NOT: scf.for %{{.*}} to %c4096
mlafix.kernel @pairs(%x: !rows {mlafix.dims = ["n", "(K 2)"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %a = mlafix.load %x[%t] member %c0 : !rows -> !part
    %b = mlafix.load %x[%t] member %c1 : !rows -> !part
    %sum = arith.addf %a, %b : !part
    %difference = arith.subf %a, %b : !part
    mlafix.store %sum, %x[%t] member %c0 : !part, !rows
    mlafix.store %difference, %x[%t] member %c1 : !part, !rows
  }
}

// Every second element is loaded in packs, but stored element by element. Every third element is also loaded element by
// element.
// EVEN-PTX-LABEL: .entry even_dense(
// EVEN-PTX-COUNT-4: ld.global.b64
// EVEN-PTX-NOT: st.global.v
// EVEN-PTX-COUNT-4: st.global.b16
// THIRDS-LABEL: .entry thirds_dense(
// THIRDS-COUNT-8: ld.global{{.*}}.b16
// EVEN-CPU-LABEL: mlafix.kernel @even_any(
// EVEN-CPU: vector.shuffle
// EVEN-CPU-COUNT-16: memref.store
mlafix.kernel @even(%x: !rows {mlafix.dims = ["n", "(K 2)"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %a = mlafix.load %x[%t] member %c0 : !rows -> !part
    %sum = arith.addf %a, %a : !part
    mlafix.store %sum, %x[%t] member %c0 : !part, !rows
  }
}
mlafix.kernel @thirds(%x: !rows {mlafix.dims = ["n", "(K 3)"], mlafix.access = "read"}, %y: !rows {mlafix.dims = ["n", "K"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %a = mlafix.load %x[%t] member %c2 : !rows -> !part
    mlafix.store %a, %y[%t] : !part, !rows
  }
}
