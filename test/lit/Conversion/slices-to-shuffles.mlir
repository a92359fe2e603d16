// RUN: %mlafix-opt %s --mlafix-slices-to-shuffles | FileCheck %s

// Slices of vectors become shuffles.

// CHECK-LABEL: llvm.func @slice(
// CHECK: vector.shuffle %arg0, %arg0 [2, 3, 4, 5] : vector<8xf32>, vector<8xf32>
llvm.func @slice(%row: vector<8xf32>, %p: !llvm.ptr) {
  %part = vector.extract_strided_slice %row {offsets = [2], sizes = [4], strides = [1]} : vector<8xf32> to vector<4xf32>
  llvm.store %part, %p : vector<4xf32>, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @insert(
// CHECK: %[[PART:.*]] = vector.shuffle %arg1, %arg1 [0, 1, 2, 3, 0, 0, 0, 0]
// CHECK: vector.shuffle %[[PART]], %arg0 [8, 9, 10, 11, 0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
llvm.func @insert(%row: vector<8xf32>, %part: vector<4xf32>, %p: !llvm.ptr) {
  %whole = vector.insert_strided_slice %part, %row {offsets = [4], strides = [1]} : vector<4xf32> into vector<8xf32>
  llvm.store %whole, %p : vector<8xf32>, !llvm.ptr
  llvm.return
}
