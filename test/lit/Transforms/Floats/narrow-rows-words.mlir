// Rows of bf16 that the kernel computes with are widened and masked in words of two elements. Rows that are only moved
// are not. Between a widening and a narrowing, LLVM computes in the type that is stored if it has enough digits. For
// bf16 that is stored as f16, LLVM would compute in f16, although its range is smaller. Such bf16 is therefore widened
// by a shift, which LLVM does not recognise.
// RUN: %mlafix-opt %s --kernel=mixed --target=sm_90 --emit=ptx | FileCheck %s --check-prefix=MIXED --implicit-check-not=cvt.f32.bf16 --implicit-check-not=cvt.f32.f16
// RUN: %mlafix-opt %s --kernel=alike --target=sm_90 --emit=ptx | FileCheck %s --check-prefix=ALIKE

!bf16s = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!f16s = memref<?x64xf16, strided<[?, 1], offset: ?>>
!f32s = memref<?x64xf32, strided<[?, 1], offset: ?>>
!bools = memref<?xi1, strided<[?], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>

// MIXED-LABEL: .entry mixed_dense(
// MIXED: ld.global{{.*}}.b32
// MIXED: div.rn.f32
// MIXED: cvt.rn.f16x2.f32
mlafix.kernel @mixed(%y: !f16s {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !f16s
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !bf16s -> !tile
    %two = arith.constant 2.0 : f32
    %twos = mlafix.splat %two : f32 -> !tile
    %q = arith.divf %twos, %v : !tile
    mlafix.store %q, %y[%t] : !tile, !f16s
  }
}

// If bf16 is stored, the two elements of a word are widened by a shift and a mask.
// ALIKE-LABEL: .entry alike_dense(
// ALIKE-NOT: cvt.f32.bf16
// ALIKE: shl.b32
// ALIKE: and.b32 {{.*}}, -65536;
// ALIKE-NOT: cvt.f32.bf16
// ALIKE: cvt.rn.bf16x2.f32
mlafix.kernel @alike(%y: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !bf16s
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !bf16s -> !tile
    %two = arith.constant 2.0 : f32
    %twos = mlafix.splat %two : f32 -> !tile
    %q = arith.divf %twos, %v : !tile
    mlafix.store %q, %y[%t] : !tile, !bf16s
  }
}

// A row of bf16 or f16 that one condition masks is masked in words.
// RUN: %mlafix-opt %s --kernel=masked --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=MASKED
// RUN: %mlafix-opt %s --kernel=masked --target=sm_100 --emit=ptx --variant=dense | FileCheck %s --check-prefix=PAIRS
// MASKED-LABEL: .entry masked_dense(
// MASKED-COUNT-8: selp.b32 {{.*}}-2147450880,
// MASKED-NOT: selp
// MASKED: st.global
// Targets with arithmetic on pairs do not mask words.
// PAIRS-LABEL: .entry masked_dense(
// PAIRS-NOT: -2147450880
mlafix.kernel @masked(%y: !f32s {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                      %z: !f16s {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %c: !bools {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %minus = arith.constant -0.0 : f32
  %n = memref.dim %y, %c0 : !f32s
  mlafix.forall (%t) in (%n) {
    %p = mlafix.load %c[%t] : !bools -> i1
    %v = mlafix.load %x[%t] : !bf16s -> !tile
    %u = mlafix.load %z[%t] : !f16s -> !tile
    %none = mlafix.splat %minus : f32 -> !tile
    %first = arith.select %p, %none, %v : !tile
    %second = arith.select %p, %none, %u : !tile
    %sum = arith.addf %first, %second : !tile
    mlafix.store %sum, %y[%t] : !tile, !f32s
  }
}

// RUN: %mlafix-opt %s --kernel=moved --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=MOVED
// A copy keeps its bits, also those of NaN.
// MOVED-LABEL: .entry moved_dense(
// MOVED-NOT: cvt.{{rn|f32}}
// MOVED: st.global
mlafix.kernel @moved(%y: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                     %c: !bools {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %two = arith.constant 2.0 : f32
  %n = memref.dim %y, %c0 : !bf16s
  mlafix.forall (%t) in (%n) {
    %p = mlafix.load %c[%t] : !bools -> i1
    %v = mlafix.load %x[%t] : !bf16s -> !tile
    %twos = mlafix.splat %two : f32 -> !tile
    %w = arith.select %p, %v, %twos : !tile
    mlafix.store %w, %y[%t] : !tile, !bf16s
  }
}

// If both branches yield words, the words are widened after the branches.
// RUN: %mlafix-opt %s --kernel=joined --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=JOINED
// JOINED-LABEL: .entry joined_dense(
// JOINED: ld.global.v4.b32
// JOINED-COUNT-4: shl.b32 %{{.*}}, 16;
// JOINED-NOT: shl.b32
// JOINED: st.global
mlafix.kernel @joined(%y: !f32s {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                      %z: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %c: !bools {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !f32s
  mlafix.forall (%t) in (%n) {
    %p = mlafix.load %c[%t] : !bools -> i1
    %row = scf.if %p -> (!tile) {
      %v = mlafix.load %x[%t] : !bf16s -> !tile
      scf.yield %v : !tile
    } else {
      %w = mlafix.load %z[%t] : !bf16s -> !tile
      scf.yield %w : !tile
    }
    %square = arith.mulf %row, %row : !tile
    mlafix.store %square, %y[%t] : !tile, !f32s
  }
}

// Runs the pass alone.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90},mlafix.kernel(mlafix-distribute,mlafix-narrow-rows))" | FileCheck %s --check-prefix=ALONE
// ALONE-LABEL: mlafix.kernel @mixed
// ALONE-NOT: arith.extf {{.*}}bf16
// ALONE: arith.truncf {{.*}} to {{.*}}f16
// ALONE-LABEL: mlafix.kernel @alike_dense
// ALONE: arith.shli {{.*}} : vector<{{[0-9]}}xi32>
// ALONE: vector.interleave
// ALONE-LABEL: mlafix.kernel @joined_dense
// ALONE: %[[ROW:.*]] = scf.if %{{.*}} -> (vector<8xbf16>)
// ALONE-NOT: arith.shli %{{.*}} : vector
// ALONE: %[[WORDS:.*]] = vector.bitcast %[[ROW]] : vector<8xbf16> to vector<4xi32>
// ALONE: arith.shli %[[WORDS]]

// One condition selects between two rows: the words are selected, and then widened once.
// RUN: %mlafix-opt %s --kernel=either --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=EITHER
// EITHER-LABEL: .entry either_dense(
// EITHER-COUNT-4: selp.b32
// EITHER-NOT: selp
// EITHER: st.global
mlafix.kernel @either(%y: !f32s {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                      %z: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %c: !bools {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !f32s
  mlafix.forall (%t) in (%n) {
    %p = mlafix.load %c[%t] : !bools -> i1
    %v = mlafix.load %x[%t] : !bf16s -> !tile
    %w = mlafix.load %z[%t] : !bf16s -> !tile
    %one = arith.select %p, %v, %w : !tile
    %sum = arith.addf %one, %v : !tile
    %product = arith.mulf %sum, %w : !tile
    mlafix.store %product, %y[%t] : !tile, !f32s
  }
}

// A row of fp8 is multiplied by a number and masked. Words of four elements are masked, and the number is replaced by 1
// where the mask applies.
// RUN: %mlafix-opt %s --kernel=scaled --target=sm_90 --mlafix-plan=lanes=16 --emit=ptx --variant=dense | FileCheck %s --check-prefix=SCALED
// SCALED-LABEL: .entry scaled_dense(
// SCALED: selp.b32 {{.*}}-2139062144,
// SCALED-NOT: selp
// SCALED: cvt.rn.f16x2.e4m3x2
// SCALED: selp.f32 {{.*}}0f3F800000,
// SCALED-NOT: selp
// SCALED: st.global
!bytes = memref<?x64xf8E4M3FN, strided<[?, 1], offset: ?>>
!scales = memref<?xf32, strided<[?], offset: ?>>
mlafix.kernel @scaled(%y: !f32s {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !bytes {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                      %s: !scales {mlafix.dims = ["n"], mlafix.access = "read"}, %c: !bools {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %minus = arith.constant -0.0 : f32
  %one = arith.constant 1.0 : f32
  %n = memref.dim %y, %c0 : !f32s
  mlafix.forall (%t) in (%n) {
    %p = mlafix.load %c[%t] : !bools -> i1
    %v = mlafix.load %x[%t] : !bytes -> !tile
    %scale = mlafix.load %s[%t] : !scales -> f32
    %scales = mlafix.splat %scale : f32 -> !tile
    %wide = arith.mulf %v, %scales : !tile
    %none = mlafix.splat %minus : f32 -> !tile
    %masked = arith.select %p, %none, %wide : !tile
    %ones = mlafix.splat %one : f32 -> !tile
    %sum = arith.addf %masked, %ones : !tile
    mlafix.store %sum, %y[%t] : !tile, !f32s
  }
}

// If both paths of a branch compute with a row, and one masks the row in words, the row is widened on both paths. No
// f32 elements exist before the branch.
// RUN: %mlafix-opt %s --kernel=both --target=sm_90 --emit=ptx --variant=dense | FileCheck %s --check-prefix=BOTH
// BOTH-LABEL: .entry both_dense(
// BOTH-NOT: {{and.b32 .*-65536|cvt.f32|e4m3}}
// BOTH: setp.ne.b64 %[[SECOND:p[0-9]+]], %rd{{[0-9]+}}, 0;
// BOTH-NOT: {{and.b32 .*-65536|cvt.f32|e4m3}}
// BOTH: @%[[SECOND]] bra
// BOTH-COUNT-4: cvt.rn.f16x2.e4m3x2
// BOTH-COUNT-4: and.b32 {{.*}}, -65536;
// BOTH: bra.uni
// BOTH-COUNT-4: selp.b32 {{.*}}-2147450880,
// BOTH-COUNT-4: and.b32 {{.*}}, -65536;
// BOTH-COUNT-4: cvt.rn.f16x2.e4m3x2
// BOTH: st.global
mlafix.kernel @both(%y: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %x: !bf16s {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                    %z: !bytes {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %c: !bools {mlafix.dims = ["n"], mlafix.access = "read"},
                    %which: index) {
  %c0 = arith.constant 0 : index
  %minus = arith.constant -0.0 : f32
  %n = memref.dim %y, %c0 : !bf16s
  mlafix.forall (%t) in (%n) {
    %p = mlafix.load %c[%t] : !bools -> i1
    %v = mlafix.load %x[%t] : !bf16s -> !tile
    %u = mlafix.load %z[%t] : !bytes -> !tile
    %isFirst = arith.cmpi eq, %which, %c0 : index
    %none = mlafix.splat %minus : f32 -> !tile
    %sum = scf.if %isFirst -> (!tile) {
      %masked = arith.select %p, %none, %v : !tile
      %first = math.fma %masked, %masked, %u : !tile
      scf.yield %first : !tile
    } else {
      %second = math.fma %u, %u, %v : !tile
      scf.yield %second : !tile
    }
    mlafix.store %sum, %y[%t] : !tile, !bf16s
  }
}
