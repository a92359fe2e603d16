// Steps of launch checks compute with booleans as 0 and 1. In signed comparisons of booleans, true is -1, so that it is
// below false: the operands are exchanged.
// RUN: %mlafix-opt %s --emit=signature | FileCheck %s

// CHECK: "checks":[{"steps":[{"arg":0,"op":"scalar"},{"arg":1,"op":"scalar"},{"of":[1,0],"op":"lt"}],"text":"a slt b"}
// CHECK-SAME: {"steps":[{"arg":0,"op":"scalar"},{"arg":1,"op":"scalar"},{"of":[0,1],"op":"lt"}],"text":"a sgt b"}
// CHECK-SAME: {"steps":[{"arg":0,"op":"scalar"},{"arg":1,"op":"scalar"},{"of":[0,1],"op":"lt"},{"op":"constant","value":1},{"of":[2,3],"op":"xor"}],"text":"a sle b"}
// CHECK-SAME: {"steps":[{"arg":0,"op":"scalar"},{"arg":1,"op":"scalar"},{"of":[1,0],"op":"lt"},{"op":"constant","value":1},{"of":[2,3],"op":"xor"}],"text":"a sge b"}
// CHECK-SAME: {"steps":[{"arg":0,"op":"scalar"},{"arg":1,"op":"scalar"},{"of":[0,1],"op":"ult"}],"text":"a ult b"}
// CHECK-SAME: {"steps":[{"arg":2,"op":"scalar"},{"arg":3,"op":"scalar"},{"of":[0,1],"op":"lt"}],"text":"k slt l"}
mlafix.kernel @k(%a: i1, %b: i1, %k: i32, %l: i32) {
  %below = arith.cmpi slt, %a, %b : i1
  mlafix.assume %below, "a slt b"
  %above = arith.cmpi sgt, %a, %b : i1
  mlafix.assume %above, "a sgt b"
  %most = arith.cmpi sle, %a, %b : i1
  mlafix.assume %most, "a sle b"
  %least = arith.cmpi sge, %a, %b : i1
  mlafix.assume %least, "a sge b"
  %lower = arith.cmpi ult, %a, %b : i1
  mlafix.assume %lower, "a ult b"
  %smaller = arith.cmpi slt, %k, %l : i32
  mlafix.assume %smaller, "k slt l"
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}
