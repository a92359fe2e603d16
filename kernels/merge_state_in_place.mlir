// Merges a second partial attention state into the first, row by row: v, s = (v, s) (+) (v_other, s_other).
//
//   v       [n, H, D] T    read and written
//   s       [n, H]    f32  read and written
//   v_other [n, H, D] T
//   s_other [n, H]    f32
//   mask    [n]       u8   optional: the rows of a token whose mask is 0 are neither read nor written
//
// The lse is in base e, or in base 2 where B = 2. A boolean mask is passed as its bytes.

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!mask = memref<?xui8, strided<[?], offset: ?>>

mlafix.kernel @merge_state_in_place(
    %v: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "update"},
    %s: !lses {mlafix.dims = ["n", "H"], mlafix.access = "update"},
    %v_other: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %s_other: !lses {mlafix.dims = ["n", "H"], mlafix.access = "read"},
    %mask: !mask {mlafix.dims = ["n"], mlafix.access = "read", mlafix.optional}) attributes {defaults = {B = "e"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %v, %c0 : !rows
  %H = memref.dim %v, %c1 : !rows
  mlafix.forall (%t, %h) in (%n, %H) {
    %off = arith.constant 0 : i8
    %on = arith.constant 1 : i8
    %masked = mlafix.present %mask : !mask
    %byte = mlafix.load %mask[%t] if %masked else %on : !mask -> i8
    %live = arith.cmpi ne, %byte, %off : i8
    scf.if %live {
      %a = mlafix.load_state %v[%t, %h] lse %s[%t, %h] : !rows, !lses -> !mlafix.state<"D", "B">
      %b = mlafix.load_state %v_other[%t, %h] lse %s_other[%t, %h] : !rows, !lses -> !mlafix.state<"D", "B">
      %m = mlafix.merge %a, %b : !mlafix.state<"D", "B">
      mlafix.store_state %m to %v[%t, %h] lse %s[%t, %h] : !mlafix.state<"D", "B">, !rows, !lses
    }
  }
}
