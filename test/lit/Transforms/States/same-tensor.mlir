// mlafix.same_tensor becomes false if a guard says that its arguments are distinct tensors. If one argument is bound as
// absent, the op is true if the other one is omitted, too. Otherwise, the op compares addresses.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=128},mlafix-plan-kernel{target=sm_90})" | FileCheck %s --check-prefix=LAYOUT
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=128,out=absent})" | FileCheck %s --check-prefix=ABSENT
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=128,out=absent,y=absent},canonicalize)" | FileCheck %s --check-prefix=BOTH
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=128},mlafix-plan-kernel{target=sm_90 variant=any},mlafix.kernel(mlafix-distribute),mlafix-to-nvvm)" | FileCheck %s --check-prefix=NVVM
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=128},mlafix-plan-kernel{target=x86-64-v3 variant=any},mlafix.kernel(mlafix-distribute),mlafix-to-cpu)" | FileCheck %s --check-prefix=CPU

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>

// LAYOUT-LABEL: @k_dense
// LAYOUT-SAME: #mlafix.guard<distinct, args = [0, 1]>
// LAYOUT-NOT: mlafix.same_tensor %out, %x
// LAYOUT: mlafix.store %{{.*}}, %z[%{{.*}}] if %false
// LAYOUT-LABEL: @k_place
// LAYOUT: mlafix.same_tensor %out, %x
// LAYOUT: mlafix.same_tensor %out, %y

// x is always given, so it is not the same as the absent out. y is the same as out if y is omitted, too.
// ABSENT: %[[FALSE:.*]] = arith.constant false
// ABSENT: %[[GIVEN:.*]] = mlafix.present %y
// ABSENT: %[[OMITTED:.*]] = arith.xori %[[GIVEN]], %true
// ABSENT: mlafix.store %{{.*}}, %z[%{{.*}}] if %[[FALSE]]
// ABSENT: mlafix.store %{{.*}}, %z[%{{.*}}] if %[[OMITTED]]
// BOTH-NOT: mlafix.store {{.*}} if
// BOTH: mlafix.store %{{.*}}, %z[%{{[^]]*}}] :
// BOTH-NOT: mlafix.store

// NVVM: llvm.func @k_any(%[[OUT:.*]]: !llvm.ptr<1>, %[[X:.*]]: !llvm.ptr<1>, %{{.*}}: i64, %[[Y:.*]]: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>, %{{.*}}: i64
// NVVM: llvm.icmp "eq" %[[OUT]], %[[X]] : !llvm.ptr<1>
// NVVM: llvm.icmp "eq" %[[OUT]], %[[Y]] : !llvm.ptr<1>
// CPU: llvm.func @k_any(
// CPU-COUNT-2: llvm.icmp "eq" %{{.*}}, %{{.*}} : !llvm.ptr
mlafix.kernel @k(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write", mlafix.optional},
    %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read", mlafix.optional},
    %z: !rows {mlafix.dims = ["m", "D"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %z, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %is_x = mlafix.same_tensor %out, %x : !rows, !rows
    %is_y = mlafix.same_tensor %out, %y : !rows, !rows
    %row = mlafix.load %x[%t] : !rows -> tensor<?xf32, #mlafix.dim<"D">>
    mlafix.store %row, %z[%t] if %is_x : tensor<?xf32, #mlafix.dim<"D">>, !rows
    mlafix.store %row, %z[%t] if %is_y : tensor<?xf32, #mlafix.dim<"D">>, !rows
  }
}
