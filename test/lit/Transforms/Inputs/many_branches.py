"""Prints a kernel that stores a row in each of 40 branches, then reads one element of it."""

BRANCHES = "    scf.if %p { mlafix.store %v, %x[%t] : !tile, !rows }\n" * 40

print(f"""
!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>
!col = memref<?xf32, strided<[1], offset: ?>>

mlafix.kernel @k(%x: !rows {{mlafix.dims = ["n", "D"], mlafix.access = "update"}},
                 %y: !col {{mlafix.dims = ["n"], mlafix.access = "write"}}, %p: i1) {{
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {{
    %v = mlafix.load %x[%t] : !rows -> !tile
{BRANCHES}
    %s = mlafix.load %x[%t, %c0] : !rows -> f32
    mlafix.store %s, %y[%t] : f32, !col
  }}
}}
""")
