// mlafix-specialize removes `sink` from the types of states, so a sink becomes a state whose payload is zeros. If only
// one branch merges a sink, the other branch yields the state unchanged.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=128,B=2,T=f16})" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=128,B=2,T=f16},canonicalize)" | FileCheck %s --check-prefix=FOLDED
// RUN: %mlafix-opt %s --specialize=D=128,B=2,T=f16 --target=sm_90 --emit=ptx --variant=dense -o - | FileCheck %s --check-prefix=PTX

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!lses = memref<?xf32, strided<[?], offset: ?>>
!tile = tensor<?xf32, #mlafix.dim<"D">>
!state = !mlafix.state<"D", "B">
!sink = !mlafix.state<"D", "B", sink>

// CHECK-LABEL: mlafix.kernel @sink_of_output_alone(
// CHECK-NOT: sink>
// FOLDED-LABEL: mlafix.kernel @sink_of_output_alone(
// FOLDED: scf.if
// FOLDED: mlafix.merge %{{.*}}, %{{.*}} : <128, 2>
// FOLDED: else
// FOLDED-NEXT: scf.yield %[[S:.*]] : !mlafix.state<128, 2>
// PTX-LABEL: .entry sink_of_output_alone
// PTX: ld.global{{.*}}.v4
// PTX-NOT: ld.global{{.*}}.b16
// PTX: st.global{{.*}}.v4
mlafix.kernel @sink_of_output_alone(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %out_lse: !lses {mlafix.dims = ["n"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %lse: !lses {mlafix.dims = ["n"], mlafix.access = "read"},
    %logits: !lses {mlafix.dims = ["n"], mlafix.access = "read", mlafix.optional}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %s = mlafix.load_state %x[%t] lse %lse[%t] : !rows, !lses -> !state
    mlafix.store_state %s lse %out_lse[%t] : !state, !lses
    %has = mlafix.present %logits : !lses
    %m = scf.if %has -> (!sink) {
      %logit = mlafix.load %logits[%t] : !lses -> f32
      %zeros = mlafix.splat %zero : f32 -> !tile
      %sink = mlafix.make_state %zeros lse %logit : !tile -> !sink
      %both = mlafix.merge %s, %sink : (!state, !sink) -> !sink
      scf.yield %both : !sink
    } else {
      %none = mlafix.merge %s : (!state) -> !sink
      scf.yield %none : !sink
    }
    mlafix.store_state %m to %out[%t] : !sink, !rows
  }
}
