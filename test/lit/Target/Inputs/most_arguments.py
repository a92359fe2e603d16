"""Prints a kernel with a given number of arguments: one tensor and scalars."""
import sys

ROW = "memref<?xf32, strided<[1], offset: ?>>"
numbers = "".join(f", %s{i}: f32" for i in range(int(sys.argv[1]) - 1))
print(f"""mlafix.kernel @k(%x: {ROW} {{mlafix.dims = ["n"], mlafix.access = "update"}}{numbers}) {{
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : {ROW}
  mlafix.forall (%t) in (%n) {{
    mlafix.store %s0, %x[%t] : f32, {ROW}
  }}
}}""")
