// Plans are printed and parsed. Also tests the errors of wrong plans.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// The fields are printed in a fixed order.
// CHECK: test.plan = #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 8, rows = 16>, block = in_place, least_threads = 128, plain_rows = yes>
module attributes {test.plan = #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 8, rows = 16>, plain_rows = yes, least_threads = 128, block = in_place>} {}

// -----

// Fields that have their initial values are not printed.
// CHECK: test.plan = #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 8, rows = 16>>
module attributes {test.plan = #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 8, rows = 16>, plain_rows = no, block = bytes>} {}

// -----

// expected-error @below {{expected a field of a plan (block, least_threads, plain_rows}}
#p = #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 8, rows = 16>, threads = 4>

// -----

// expected-error @below {{expected 'block' to be bytes, ragged, no_rows, exchange, half_bytes, in_place, got 'large'}}
#p = #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 8, rows = 16>, block = large>

// -----

// expected-error @below {{expected 'least_threads' to be an integer from 1 to 1024, got '2048'}}
#p = #mlafix.plan<layout = <lanes = 16, packs = 1, pack = 8, rows = 16>, least_threads = 2048>
