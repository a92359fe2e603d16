// A kernel without a grid has no rows to distribute.
// RUN: %mlafix-opt %s --verify-diagnostics --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90})"
// expected-error @below {{expected a kernel with a grid to plan for, got a thread's program}}
mlafix.kernel @k(%x: memref<?xf32, strided<[?], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"})
    attributes {geometry = #mlafix.grid<[<arg = 0, dim = 0>], rows_per_block = 1, threads = 128, least_threads = 128>, guards = [],
                plan = #mlafix.plan<layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {}
