// Written by scripts/gen-kernels from python-bindings/mlafix/kernels/merge.py: edit that.
//
// Merges a second partial attention state into the first, row by row: v, s = (v, s) (+) (v_other, s_other).
//
//   v       [n, H, D] T    read and written
//   s       [n, H]    f32  read and written
//   v_other [n, H, D] T
//   s_other [n, H]    f32
//   mask    [n]       u8   optional: the rows of a token whose mask is 0 are neither read nor written
//
// B is the base of s, e by default. SuffixBase is the base of s_other, B by default. A boolean mask is passed
// as its bytes.

!bf16_3d = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!f32_2d = memref<?x?xf32, strided<[?, ?], offset: ?>>
!ui8_1d = memref<?xui8, strided<[?], offset: ?>>

mlafix.kernel @merge_state_in_place(
    %v: !bf16_3d {mlafix.access = "update", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T"},
    %s: !f32_2d {mlafix.access = "update", mlafix.dims = ["n", "H"]},
    %v_other: !bf16_3d {mlafix.access = "read", mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T"},
    %s_other: !f32_2d {mlafix.access = "read", mlafix.dims = ["n", "H"]},
    %mask: !ui8_1d {mlafix.access = "read", mlafix.dims = ["n"], mlafix.optional}) attributes {defaults = {B = "e", SuffixBase = "B"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1_i8 = arith.constant 1 : i8
  %c0_i8 = arith.constant 0 : i8
  %n = memref.dim %v, %c0 : !bf16_3d
  %H = memref.dim %v, %c1 : !bf16_3d
  mlafix.forall (%t, %h) in (%n, %H) {
    %0 = mlafix.present %mask : !ui8_1d
    %byte = mlafix.load %mask[%t] if %0 else %c1_i8 : !ui8_1d -> i8
    %1 = arith.cmpi ne, %byte, %c0_i8 : i8
    scf.if %1 {
      %a = mlafix.load_state %v[%t, %h] lse %s[%t, %h] : !bf16_3d, !f32_2d -> <"D", "B">
      %2 = mlafix.load_state %v_other[%t, %h] lse %s_other[%t, %h] : !bf16_3d, !f32_2d -> <"D", "SuffixBase">
      %b = mlafix.rebase %2 : <"D", "SuffixBase"> -> <"D", "B">
      %3 = mlafix.merge %a, %b : <"D", "B">
      mlafix.store_state %3 to %v[%t, %h] lse %s[%t, %h] : <"D", "B">, !bf16_3d, !f32_2d
    }
  }
}
