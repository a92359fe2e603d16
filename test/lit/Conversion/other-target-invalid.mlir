// A kernel that was distributed for the other kind of target is refused.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics --mlafix-kernels-to-cpu
// RUN: sed 's/x86-64-v3/sm_90/; s/#mlafix.grid<\(.*\)\], .*>,/#mlafix.cpu<\1], rows_per_block = 1>,/; s/for a CPU/for a GPU/' %s | %mlafix-opt --split-input-file --verify-diagnostics --mlafix-kernels-to-nvvm

module attributes {mlafix.target = "x86-64-v3"} {
  // expected-error @below {{expected a kernel distributed for a CPU, got one that is not}}
  mlafix.kernel @threads(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "update"})
      attributes {geometry = #mlafix.grid<[<arg = 0, dim = 0>], rows_per_block = 1, threads = 128, least_threads = 128>,
                  guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {}
}

// -----

module attributes {mlafix.target = "x86-64-v3"} {
  // expected-error @below {{expected a kernel distributed for a CPU, got one that is not}}
  mlafix.kernel @no_range(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "update"})
      attributes {geometry = #mlafix.cpu<[<arg = 0, dim = 0>], rows_per_block = 1>, guards = [],
                  plan = #mlafix.plan<layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {}
}
