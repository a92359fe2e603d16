"""Prints a kernel whose rows merge a given number of states, one after the other. A row loads the lse of each state."""

import sys

count = int(sys.argv[1])
print("""!rows = memref<?x?x128xf32, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!out = memref<?x128xf32, strided<[?, 1], offset: ?>>
!lse = memref<?xf32, strided<[?], offset: ?>>
!state = !mlafix.state<128, e>
mlafix.kernel @k(%y: !out {mlafix.dims = ["n", "128"], mlafix.access = "write"}, %s: !lse {mlafix.dims = ["n"], mlafix.access = "write"},
                 %x: !rows {mlafix.dims = ["n", "k", "128"], mlafix.access = "read"}, %l: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !out
  mlafix.forall (%t) in (%n) {
    %m0 = mlafix.load_state %x[%t, %c0] lse %l[%t, %c0] : !rows, !lses -> <128, e>""")
for i in range(1, count):
    print(f"""    %i{i} = arith.constant {i} : index
    %v{i} = mlafix.load_state %x[%t, %i{i}] lse %l[%t, %i{i}] : !rows, !lses -> <128, e>
    %m{i} = mlafix.merge %m{i - 1}, %v{i} : <128, e>""")
print(f"""    mlafix.store_state %m{count - 1} to %y[%t] lse %s[%t] : <128, e>, !out, !lse
  }}
}}""")
