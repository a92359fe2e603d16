// Tests every message about the attributes that describe a launch: those of the attributes themselves, and those of the
// kernel's verifier, which compares the attributes with the arguments of the kernel.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expected the kind of a guard (align, distinct, same_strides, beyond_cache, max_rows, stride, packed, multiple, at_most), got moon}}
#a = #mlafix.guard<moon, args = [0]>

// -----

// expected-error @below {{expected the kind of a guard (align, distinct, same_strides, beyond_cache, max_rows, stride, packed, multiple, at_most), got none}}
#a = #mlafix.guard<[0]>

// -----

// expected-error @below {{expected one argument or more for guard 'align', got 0}}
#a = #mlafix.guard<align, args = [], bytes = 16>

// -----

// expected-error @below {{expected two arguments for guard 'distinct', got 3}}
#a = #mlafix.guard<distinct, args = [0, 1, 2]>

// -----

// expected-error @below {{expected two arguments or more for guard 'same_strides', got 1}}
#a = #mlafix.guard<same_strides, args = [0]>

// -----

// expected-error @below {{expected different arguments for guard 'distinct', got 2 twice}}
#a = #mlafix.guard<distinct, args = [2, 2]>

// -----

// expected-error @below {{expected arg from 0 to 63, got 64}}
#a = #mlafix.guard<beyond_cache, args = [0, 64]>

// -----

// expected-error @below {{expected dim from 0 to 7, got 8}}
#a = #mlafix.guard<stride, arg = 0, dim = 8, value = 1>

// -----

// expected-error @below {{expected a power of two from 1 to 4096 for 'bytes' of guard 'align', got 24}}
#a = #mlafix.guard<align, args = [0], bytes = 24>

// -----

// expected-error @below {{expected an integer of at least 0 for 'value' of guard 'max_rows', got -1}}
#a = #mlafix.guard<max_rows, value = -1>

// -----

// expected-error @below {{expected 'value'}}
#a = #mlafix.guard<max_rows, bytes = 16>

// -----

// expected-error @below {{expected '>'}}
#a = #mlafix.guard<distinct, args = [0, 1], bytes = 16>

// -----

// expected-error @below {{expected the kind of a parameter (pointer, size, stride, reciprocal, lines, scalar, group_threads, local, peers, group), got stream}}
#a = #mlafix.param<stream>

// -----

// expected-error @below {{expected arg from 0 to 63, got -1}}
#a = #mlafix.param<pointer, arg = -1>

// -----

// expected-error @below {{expected dim from 0 to 7, got 9}}
#a = #mlafix.param<size, arg = 0, dim = 9>

// -----

// expected-error @below {{expected '>'}}
#a = #mlafix.param<group_threads, arg = 0>

// -----

// expected-error @below {{expected value from 0 to 9223372036854775807, got -1}}
#a = #mlafix.extent<value = -1>

// -----

// expected-error @below {{expected arg from 0 to 63, got -1}}
#a = #mlafix.extent<arg = -1>

// -----

// expected-error @below {{expected dim from 0 to 7, got -1}}
#a = #mlafix.extent<arg = 0, dim = -1>

// -----

// expected-error @below {{expected at most 8 extents, got 9}}
#a = #mlafix.grid<[<value = 1>, <value = 1>, <value = 1>, <value = 1>, <value = 1>, <value = 1>, <value = 1>, <value = 1>, <value = 1>], rows_per_block = 1, threads = 32, least_threads = 32>

// -----

// expected-error @below {{expected rows_per_block from 1 to 1048576, got 0}}
#a = #mlafix.grid<[], rows_per_block = 0, threads = 32, least_threads = 32>

// -----

// expected-error @below {{expected threads from 1 to 1024, got 2048}}
#a = #mlafix.grid<[], rows_per_block = 1, threads = 2048, least_threads = 32>

// -----

// expected-error @below {{expected least_threads from 1 to 128, got 256}}
#a = #mlafix.grid<[], rows_per_block = 1, threads = 128, least_threads = 256>

// -----

// expected-error @below {{expected a power of two from 1 to 8 for cluster, got 3}}
#a = #mlafix.grid<[], rows_per_block = 1, threads = 128, least_threads = 128, cluster = 3>

// -----

// expected-error @below {{expected 'rows_per_block' to be 1 where several blocks share a row (a cluster or parts), got 2}}
#a = #mlafix.grid<[], rows_per_block = 2, threads = 128, least_threads = 128, cluster = 2>

// -----

// expected-error @below {{expected 'rows_per_block' to be 1 where several blocks share a row (a cluster or parts), got 2}}
#a = #mlafix.grid<[] parts <value = 4>, rows_per_block = 2, threads = 128, least_threads = 128>

// -----

// expected-error @below {{expected a cluster or parts of a row, got both}}
#a = #mlafix.grid<[] parts <value = 4>, rows_per_block = 1, threads = 128, least_threads = 128, cluster = 2>

// -----

// expected-error @below {{expected per from 1 to 2147483647, got 0}}
#a = #mlafix.extent<arg = 0, dim = 0, per = 0>

// -----

// expected-error @below {{expected at most 8 extents, got 9}}
#a = #mlafix.ragged<rows = <value = 1>, inner = [<value = 1>, <value = 1>, <value = 1>, <value = 1>, <value = 1>, <value = 1>, <value = 1>, <value = 1>, <value = 1>], rows_per_block = 1, threads = 32, blocks_per_sm = 1>

// -----

// expected-error @below {{expected rows_per_block from 1 to 1048576, got 1048577}}
#a = #mlafix.ragged<rows = <value = 1>, inner = [], rows_per_block = 1048577, threads = 32, blocks_per_sm = 1>

// -----

// expected-error @below {{expected threads from 1 to 1024, got 0}}
#a = #mlafix.ragged<rows = <value = 1>, inner = [], rows_per_block = 1, threads = 0, blocks_per_sm = 1>

// -----

// expected-error @below {{expected blocks_per_sm from 1 to 32, got 33}}
#a = #mlafix.ragged<rows = <value = 1>, inner = [], rows_per_block = 1, threads = 32, blocks_per_sm = 33>

// -----

// expected-error @below {{expected lanes from 1 to 2147483647, got 0}}
#a = #mlafix.groups<[], lanes = 0, threads = 512, most = 16, chunk = 4, least_threads = 32, threads_per_sm = 2048, pieces = <value = 1>>

// -----

// expected-error @below {{expected a power of two from 1 to 32 for most, got 12}}
#a = #mlafix.groups<[], lanes = 64, threads = 512, most = 12, chunk = 4, least_threads = 32, threads_per_sm = 2048, pieces = <value = 1>>

// -----

// expected-error @below {{expected chunk from 1 to 1048576, got 0}}
#a = #mlafix.groups<[], lanes = 64, threads = 512, most = 16, chunk = 0, least_threads = 32, threads_per_sm = 2048, pieces = <value = 1>>

// -----

// expected-error @below {{expected a power of two from 1 to 64 for least_threads, got 128}}
#a = #mlafix.groups<[], lanes = 64, threads = 512, most = 16, chunk = 4, least_threads = 128, threads_per_sm = 2048, pieces = <value = 1>>

// -----

// expected-error @below {{expected threads_per_sm from 1 to 1048576, got 0}}
#a = #mlafix.groups<[], lanes = 64, threads = 512, most = 16, chunk = 4, least_threads = 32, threads_per_sm = 0, pieces = <value = 1>>

// -----

// expected-error @below {{expected threads from 512 to 1024, got 256}}
#a = #mlafix.groups<[], lanes = 64, threads = 256, most = 16, chunk = 4, least_threads = 32, threads_per_sm = 2048, pieces = <value = 1>>

// -----

// expected-error @below {{expected the rows of a ragged grid as its first extent, got no extents}}
#a = #mlafix.cpu<ragged [], rows_per_block = 1>

// -----

// expected-error @below {{expected at most 8 extents, got 9}}
#a = #mlafix.cpu<[<value = 1>, <value = 1>, <value = 1>, <value = 1>, <value = 1>, <value = 1>, <value = 1>, <value = 1>, <value = 1>], rows_per_block = 1>

// -----

// expected-error @below {{expected rows_per_block from 1 to 1048576, got 0}}
#a = #mlafix.cpu<[], rows_per_block = 0>

// -----

// expected-error @below {{expected the name of a variant, got an empty one}}
#a = #mlafix.variant<"", guards = [], params = [], geometry = #mlafix.cpu<[], rows_per_block = 1>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>

// -----

// expected-error @below {{expected a launch geometry, got 1 : i64}}
#a = #mlafix.variant<"k", guards = [], params = [], geometry = 1, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>

// -----

// expected-error @below {{expected a parameter 'group_threads' only beside a geometry of lane groups, got #mlafix.cpu}}
#a = #mlafix.variant<"k", guards = [], params = [<group_threads>], geometry = #mlafix.cpu<[], rows_per_block = 1>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>

// -----

// expected-error @below {{expected 'dependent_launch' on a GPU only, got #mlafix.cpu}}
#a = #mlafix.variant<"k", guards = [], params = [], geometry = #mlafix.cpu<[], rows_per_block = 1>, layout = <lanes = 1, packs = 1, pack = 1, rows = 1>, dependent_launch = true>

// -----

// expected-error @below {{expected argument 3 of #mlafix.guard<beyond_cache, args = [3]> to be a tensor that is not absent, got f32}}
mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                 %y: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "write", mlafix.optional},
                 %z: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}, %f: f32) attributes {guards = [#mlafix.guard<beyond_cache, args = [3]>]} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{expected argument 4 of #mlafix.guard<distinct, args = [0, 4]> to be a tensor that is not absent, got a kernel of 4 arguments}}
mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                 %y: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "write", mlafix.optional},
                 %z: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}, %f: f32) attributes {guards = [#mlafix.guard<distinct, args = [0, 4]>]} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{expected a dim below 1 in #mlafix.guard<stride, arg = 2, dim = 1, value = 1>, got 1}}
mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                 %y: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "write", mlafix.optional},
                 %z: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}) attributes {guards = [#mlafix.guard<stride, arg = 2, dim = 1, value = 1>]} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{expected the first argument of #mlafix.guard<same_strides, args = [1, 0]> to be one that is never omitted, got an optional one}}
mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                 %y: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "write", mlafix.optional}) attributes {guards = [#mlafix.guard<same_strides, args = [1, 0]>]} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{expected arguments of one rank in #mlafix.guard<same_strides, args = [0, 2]>, got ranks 2 and 1}}
mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                 %y: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "write", mlafix.optional},
                 %z: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}) attributes {guards = [#mlafix.guard<same_strides, args = [0, 2]>]} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{attribute 'guards' failed to satisfy constraint: guards}}
mlafix.kernel @k() attributes {guards = [16]} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{attribute 'geometry' failed to satisfy constraint: launch geometry}}
mlafix.kernel @k() attributes {geometry = {kind = "rows"}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{expected a plan beside a geometry, got none}}
mlafix.kernel @k() attributes {geometry = #mlafix.cpu<[], rows_per_block = 1>} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{expected argument 3 of #mlafix.extent<arg = 3> to be an index, i64 or i32, got f32}}
mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                 %y: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "write", mlafix.optional},
                 %z: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}, %f: f32) attributes {geometry = #mlafix.cpu<[<arg = 3>], rows_per_block = 1>, plan = #mlafix.plan<layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{expected argument 5 of #mlafix.extent<arg = 5> to be an index, i64 or i32, got a kernel of 4 arguments}}
mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                 %y: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "write", mlafix.optional},
                 %z: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}, %f: f32) attributes {geometry = #mlafix.grid<[<arg = 5>], rows_per_block = 1, threads = 32, least_threads = 32>, plan = #mlafix.plan<layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{expected a dim below 2 in #mlafix.extent<arg = 0, dim = 2>, got 2}}
mlafix.kernel @k(%y: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "write", mlafix.optional}) attributes {geometry = #mlafix.ragged<rows = <arg = 0, dim = 0>, inner = [<arg = 0, dim = 2>], rows_per_block = 1, threads = 32, blocks_per_sm = 1>, plan = #mlafix.plan<layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{expected argument 3 of #mlafix.extent<arg = 3, dim = 0> to be a tensor that is not absent, got f32}}
mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                 %y: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "write", mlafix.optional},
                 %z: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}, %f: f32) attributes {geometry = #mlafix.groups<[], lanes = 64, threads = 512, most = 16, chunk = 4, least_threads = 32, threads_per_sm = 2048, pieces = <arg = 3, dim = 0>>, plan = #mlafix.plan<layout = <lanes = 1, packs = 1, pack = 1, rows = 1>>} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}
