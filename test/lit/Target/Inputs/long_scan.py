"""Prints a kernel that replaces a row by its prefix sums plus its maximum, a given number of times.

Each time, the kernel loops over the packs of the row.
"""

import sys

count = int(sys.argv[1])
print("""!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!tile = tensor<1024xf32, #mlafix.dim<"d" most 1024>>
mlafix.kernel @k(%y: !rows {mlafix.dims = ["n", "d"], mlafix.access = "write"}, %x: !rows {mlafix.dims = ["n", "d"], mlafix.access = "read"}) attributes {most = {d = 1024 : i64}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %r0 = mlafix.load %x[%t] : !rows -> !tile""")
for i in range(1, count + 1):
    print(f"""    %s{i} = mlafix.scan add %r{i - 1} : !tile
    %m{i} = mlafix.reduce max %r{i - 1} : !tile
    %b{i} = mlafix.splat %m{i} : f32 -> !tile
    %r{i} = arith.addf %s{i}, %b{i} : !tile""")
print(f"""    mlafix.store %r{count}, %y[%t] : !tile, !rows
  }}
}}""")
