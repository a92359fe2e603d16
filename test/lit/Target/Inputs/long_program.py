"""Prints a kernel that reads a short row into a long one a given number of times, each time from another element on."""

import sys

print("""!rows = memref<?x512xf32, strided<[?, 1], offset: ?>>
!short = memref<?x24xf32, strided<[?, 1], offset: ?>>
!tile = tensor<512xf32, #mlafix.dim<512>>
mlafix.kernel @k(%y: !rows {mlafix.dims = ["n", "512"], mlafix.access = "write"}, %x: !short {mlafix.dims = ["n", "24"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %r0 = mlafix.load_into %x[%t] from 0 : !short -> !tile""")
for i in range(1, int(sys.argv[1])):
    print(f"""    %v{i} = mlafix.load_into %x[%t] from {i % 64} each {1 + i % 5} : !short -> !tile
    %r{i} = arith.addf %r{i - 1}, %v{i} : !tile""")
print(f"""    mlafix.store %r{int(sys.argv[1]) - 1}, %y[%t] : !tile, !rows
  }}
}}""")
