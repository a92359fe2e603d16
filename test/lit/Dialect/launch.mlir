// Guards, parameters and geometries are printed and parsed.
// RUN: %mlafix-opt %s --split-input-file | %mlafix-opt --split-input-file | FileCheck %s

// CHECK: test.guards = [#mlafix.guard<align, args = [0, 2, 4], bytes = 16>, #mlafix.guard<distinct, args = [0, 2]>, #mlafix.guard<same_strides, args = [3, 5, 1]>, #mlafix.guard<beyond_cache, args = [0, 2]>, #mlafix.guard<max_rows, value = 134217727>, #mlafix.guard<stride, arg = 0, dim = 1, value = 128>, #mlafix.guard<packed, arg = 0, dim = 0, value = 128>, #mlafix.guard<multiple, arg = 1, dim = 0, value = 4>, #mlafix.guard<at_most, arg = 1, dim = 0, value = 256>]
module attributes {test.guards = [
  #mlafix.guard<align, args = [0, 2, 4], bytes = 16>, #mlafix.guard<distinct, args = [0, 2]>, #mlafix.guard<same_strides, args = [3, 5, 1]>,
  #mlafix.guard<beyond_cache, args = [0, 2]>, #mlafix.guard<max_rows, value = 134217727>, #mlafix.guard<stride, arg = 0, dim = 1, value = 128>, #mlafix.guard<packed, arg = 0, dim = 0, value = 128>, #mlafix.guard<multiple, arg = 1, dim = 0, value = 4>, #mlafix.guard<at_most, arg = 1, dim = 0, value = 256>]} {}

// -----

// CHECK: test.params = [#mlafix.param<pointer, arg = 0>, #mlafix.param<size, arg = 0, dim = 1>, #mlafix.param<stride, arg = 0, dim = 1>, #mlafix.param<reciprocal, arg = 0, dim = 1>, #mlafix.param<lines, arg = 3>, #mlafix.param<scalar, arg = 6>, #mlafix.param<group_threads>, #mlafix.param<peers, arg = 2, ranks = 8>, #mlafix.param<group, ranks = 72>]
module attributes {test.params = [
  #mlafix.param<pointer, arg = 0>, #mlafix.param<size, arg = 0, dim = 1>, #mlafix.param<stride, arg = 0, dim = 1>, #mlafix.param<reciprocal, arg = 0, dim = 1>, #mlafix.param<lines, arg = 3>,
  #mlafix.param<scalar, arg = 6>, #mlafix.param<group_threads>, #mlafix.param<peers, arg = 2, ranks = 8>, #mlafix.param<group, ranks = 72>]} {}

// -----

// CHECK: #mlafix.grid<[<arg = 0, dim = 1>, <arg = 3>, <value = 128>], rows_per_block = 16, threads = 256, least_threads = 128>
// CHECK-SAME: #mlafix.grid<[], rows_per_block = 1, threads = 32, least_threads = 32>
// CHECK-SAME: #mlafix.grid<[], rows_per_block = 1, threads = 512, least_threads = 512, cluster = 8>
// CHECK-SAME: #mlafix.ragged<rows = <arg = 0, dim = 0>, inner = [<value = 16>], rows_per_block = 64, threads = 256, blocks_per_sm = 1>
// CHECK-SAME: #mlafix.ragged<rows = <arg = 3>, inner = [], rows_per_block = 64, threads = 256, blocks_per_sm = 1>
// CHECK-SAME: #mlafix.groups<[<value = 16>], lanes = 64, threads = 512, most = 16, chunk = 4, least_threads = 32, threads_per_sm = 2048, pieces = <arg = 2, dim = 0>>
// CHECK-SAME: #mlafix.cpu<[<arg = 0, dim = 0>], rows_per_block = 16>, #mlafix.cpu<[], rows_per_block = 1>, #mlafix.cpu<ragged [<arg = 3>, <value = 16>], rows_per_block = 1>
module attributes {test.geometries = [
  #mlafix.grid<[<arg = 0, dim = 1>, <arg = 3>, <value = 128>], rows_per_block = 16, threads = 256, least_threads = 128>,
  #mlafix.grid<[], rows_per_block = 1, threads = 32, least_threads = 32>,
  #mlafix.grid<[], rows_per_block = 1, threads = 512, least_threads = 512, cluster = 8>,
  #mlafix.ragged<rows = <arg = 0, dim = 0>, inner = [<value = 16>], rows_per_block = 64, threads = 256, blocks_per_sm = 1>,
  #mlafix.ragged<rows = <arg = 3>, inner = [], rows_per_block = 64, threads = 256, blocks_per_sm = 1>,
  #mlafix.groups<[<value = 16>], lanes = 64, threads = 512, most = 16, chunk = 4, least_threads = 32, threads_per_sm = 2048, pieces = <arg = 2, dim = 0>>,
  #mlafix.cpu<[<arg = 0, dim = 0>], rows_per_block = 16>, #mlafix.cpu<[], rows_per_block = 1>,
  #mlafix.cpu<ragged [<arg = 3>, <value = 16>], rows_per_block = 1>]} {}

// -----

// CHECK: test.variant = #mlafix.variant<"k", guards = [<max_rows, value = 1>], params = [<pointer, arg = 0>, <group_threads>], geometry = #mlafix.groups<[], lanes = 64, threads = 512, most = 16, chunk = 4, least_threads = 32, threads_per_sm = 2048, pieces = <value = 1>>, layout = <lanes = 64, packs = 2, pack = 4, rows = 1, groups = 16>, dependent_launch = true>
module attributes {test.variant = #mlafix.variant<
  "k", guards = [<max_rows, value = 1>], params = [<pointer, arg = 0>, <group_threads>],
  geometry = #mlafix.groups<[], lanes = 64, threads = 512, most = 16, chunk = 4, least_threads = 32, threads_per_sm = 2048, pieces = <value = 1>>,
  layout = <lanes = 64, packs = 2, pack = 4, rows = 1, groups = 16>, dependent_launch = true>} {}
