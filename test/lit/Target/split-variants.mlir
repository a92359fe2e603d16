// The code of each variant is generated separately. The results form one PTX module, in the order of the variants, with
// everything that the variants use.
// RUN: %mlafix-opt %s --target=sm_90 --emit=ptx | FileCheck %s
// RUN: %mlafix-opt %s --target=sm_90 --emit=llvm | FileCheck %s --check-prefix=LLVM
// RUN: sed 's/call @other/call @helper/' %s | %mlafix-opt --target=sm_90 --emit=ptx | FileCheck %s --check-prefix=SHARED
// RUN: sed 's,// TABLE ,,; s/llvm.call @helper(%v) : (f32)/llvm.load volatile %%table : !llvm.ptr/' %s | %mlafix-opt --target=sm_90 --emit=ptx | FileCheck %s --check-prefix=TABLE
// RUN: sed 's/nvvm.barrier0/%%i32 = builtin.unrealized_conversion_cast %%v : f32 to i32/' %s | not %mlafix-opt --target=sm_90 --emit=ptx 2>&1 | FileCheck %s --check-prefix=ERRORS

// CHECK: .version
// CHECK-NOT: .version
// CHECK: .func {{.*}} helper(
// CHECK-NOT: .func
// CHECK: .entry first(
// CHECK: .shared .align 16 .b8 first_shared[128];
// CHECK: call.uni (retval0), helper
// CHECK-NOT: .version
// CHECK: .func {{.*}} other(
// CHECK: .entry second(
// CHECK: .shared .align 16 .b8 second_shared[256];
// CHECK: call.uni (retval0), other
// CHECK-NOT: {{\.version|\.entry|\.func}}

// LLVM: define {{.*}} @first(
// LLVM: define {{.*}} @second(

// A function that two variants use occurs once.
// SHARED: .version
// SHARED: .func {{.*}} helper(
// SHARED-NOT: {{\.version|\.func}}
// SHARED: .entry first(
// SHARED: call.uni (retval0), helper
// SHARED-NOT: {{\.version|\.func}}
// SHARED: .entry second(
// SHARED: call.uni (retval0), helper
// SHARED-NOT: {{\.version|\.func}}

// A variant that uses a global also needs the function that the initial value of the global refers to.
// TABLE: .global {{.*}} table = helper;
// TABLE: .func {{.*}} helper(
// TABLE: .entry first(
// TABLE: .func {{.*}} other(
// TABLE: .entry second(

// Several threads generate the code of the variants, but error messages are printed in the order of the variants.
// ERRORS: <stdin>:[[#FIRST:]]:12: error: LLVM Translation failed for operation: builtin.unrealized_conversion_cast
// ERRORS: <stdin>:[[#FIRST+11]]:12: error: LLVM Translation failed for operation: builtin.unrealized_conversion_cast
// ERRORS: error: expected a module that can be translated to LLVM IR, got one that cannot
module attributes {mlafix.signature = {name = "k"}} {
  llvm.mlir.global internal @first_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<128 x i8>
  llvm.mlir.global internal @second_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<256 x i8>
  // TABLE llvm.mlir.global internal constant @table(@helper) : !llvm.ptr
  llvm.func internal @helper(%x: f32) -> f32 attributes {no_inline} {
    %y = llvm.fadd %x, %x : f32
    llvm.return %y : f32
  }
  llvm.func internal @other(%x: f32) -> f32 attributes {no_inline} {
    %y = llvm.fmul %x, %x : f32
    llvm.return %y : f32
  }
  llvm.func @first(%p: !llvm.ptr<1>, %i: i64) attributes {nvvm.kernel, mlafix.variant = #mlafix.variant<"first", guards = [], params = [], geometry = #mlafix.grid<[], rows_per_block = 1, threads = 32, least_threads = 32>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    // TABLE %table = llvm.mlir.addressof @table : !llvm.ptr
    %s = llvm.mlir.addressof @first_shared : !llvm.ptr<3>
    %e = llvm.getelementptr %s[%i] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
    %v = llvm.load %p : !llvm.ptr<1> -> f32
    %w = llvm.call @helper(%v) : (f32) -> f32
    llvm.store %w, %e : f32, !llvm.ptr<3>
    nvvm.barrier0
    %r = llvm.load %s : !llvm.ptr<3> -> f32
    llvm.store %r, %p : f32, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @second(%p: !llvm.ptr<1>, %i: i64) attributes {nvvm.kernel, mlafix.variant = #mlafix.variant<"second", guards = [], params = [], geometry = #mlafix.grid<[], rows_per_block = 1, threads = 32, least_threads = 32>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
    %s = llvm.mlir.addressof @second_shared : !llvm.ptr<3>
    %e = llvm.getelementptr %s[%i] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
    %v = llvm.load %p : !llvm.ptr<1> -> f32
    %w = llvm.call @other(%v) : (f32) -> f32
    llvm.store %w, %e : f32, !llvm.ptr<3>
    nvvm.barrier0
    %r = llvm.load %s : !llvm.ptr<3> -> f32
    llvm.store %r, %p : f32, !llvm.ptr<1>
    llvm.return
  }
}
